package event

import (
	"slices"
	"testing"
)

// ORCH-134, ORCH-135: the newest hundred are kept, in order, and the oldest go first.
func TestRing(t *testing.T) {
	var r Ring[int]
	if r.Last() != nil || len(r.All()) != 0 {
		t.Fatal("an empty ring has something")
	}
	for i := range 250 {
		r.Add(i)
		all := r.All()
		if len(all) != min(i+1, 100) || all[0] != max(0, i-99) || !slices.IsSorted(all) || *r.Last() != i {
			t.Fatalf("after %d: %d kept, from %d, last %d", i, len(all), all[0], *r.Last())
		}
	}
	*r.Last() = 1000
	if all := r.All(); all[99] != 1000 || all[98] != 248 {
		t.Errorf("changed in place: %v", all[98:])
	}
	few := Ring[string]{Max: 2}
	for _, s := range []string{"a", "b", "c"} {
		few.Add(s)
	}
	if got := few.All(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("two of three: %q", got)
	}
	one := Ring[string]{Max: 1}
	one.Add("a")
	one.Add("b")
	if got := one.All(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("one of two: %q", got)
	}
}
