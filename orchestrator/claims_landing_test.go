package orchestrator

import "testing"

// Files of work that waits to be merged are in nobody's way once they are written, and may still not be written.
func TestClaimsOfWorkThatIsMerged(t *testing.T) {
	t.Parallel()
	var c claims
	c.settle("T1", []string{"a"}, false)
	for _, test := range []struct {
		landing, landed, free bool
	}{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
		c.setLanding("T1", test.landing)
		_, held := c.settle("T2", []string{"a"}, test.landed)
		if free := len(held) == 0; free != test.free {
			t.Errorf("%+v: held by %v", test, held)
		}
		c.drop("T2")
	}
}
