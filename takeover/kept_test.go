package takeover

import "testing"

// Of several states that were dropped, the newest is taken back, and the next one gets a name of its own.
func TestKeptIsTheNewest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := r.workOf(t.Context(), r.mission.ID)
	if err == nil {
		w.repo, err = r.host.Project.Repository(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	refs := "refs/centurion/undone/" + r.mission.ID + "/"
	newest := ""
	for _, n := range []string{"1", "2", "3"} {
		if got, next, err := w.kept(t.Context()); err != nil || got != newest || next != refs+n {
			t.Errorf("before %s: %q, then %q, %v", n, got, next, err)
		}
		newest = refs + n
		r.git("update-ref", newest, "HEAD")
	}
}
