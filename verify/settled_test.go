package verify

import (
	"testing"

	"centurion"
)

// One attempt after another is made until one shows something: a green run without a single piece shows nothing of the others.
func TestSettled(t *testing.T) {
	t.Parallel()
	green, red := centurion.CheckRun{Passed: true}, centurion.CheckRun{ExitCode: 1}
	broken := centurion.CheckRun{ExitCode: 1, Broken: "the build failed"}
	of := func(h how, r centurion.CheckRun, kept string) attempt {
		return attempt{how: h, run: result{CheckRun: r, green: kept}}
	}
	for name, c := range map[string]struct {
		reds []attempt
		want bool
	}{
		"none":                     {nil, false},
		"the build breaks":         {[]attempt{of(allOut, broken, "")}, false},
		"it fails":                 {[]attempt{of(allOut, broken, ""), of(reverted, red, "")}, true},
		"green without the work":   {[]attempt{of(allOut, green, "")}, true},
		"green when it is stubbed": {[]attempt{of(allOut, broken, ""), of(stubbed, green, "")}, true},
		"its tests stay green":     {[]attempt{of(allOut, broken, "go test ./...")}, true},
		"green without a piece":    {[]attempt{of(allOut, broken, ""), of(onePiece, green, "")}, false},
		"a piece, tests green":     {[]attempt{of(allOut, broken, ""), of(onePiece, broken, "go test ./...")}, false},
		"red without a piece":      {[]attempt{of(allOut, broken, ""), of(onePiece, green, ""), of(onePiece, red, "")}, true},
		"it did not end":           {[]attempt{of(allOut, centurion.CheckRun{Error: "stopped", Broken: "x"}, "")}, true},
	} {
		if got := (&proving{facts: facts{reds: c.reds}}).settled(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
