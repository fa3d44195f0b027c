package takeover

import (
	"reflect"
	"testing"

	"centurion"
)

// A merge is undone with all undos and redos of single tasks that came after it, and with nothing before it or beside it.
func TestNewestMerge(t *testing.T) {
	t.Parallel()
	older := &centurion.Merged{Commit: "c1", Before: "c0", Commits: []string{"w1"}}
	merge := &centurion.Merged{Commit: "c2", Before: "c1", Only: []string{"T2"}, Squash: true, Commits: []string{"w2"}, Earlier: older}
	chain := merge
	for _, next := range []string{"c3", "c4", "c5"} {
		chain = &centurion.Merged{Commit: next, Before: chain.Commit, Follows: true, Commits: []string{"of " + next}, Earlier: chain}
	}
	all, before := newestMerge(chain)
	if want := (centurion.Merged{Commit: "c5", Before: "c1", Only: []string{"T2"}, Squash: true, Commits: []string{"w2", "of c3", "of c4", "of c5"}, Earlier: older}); !reflect.DeepEqual(all, want) || before != older {
		t.Errorf("%+v, after %+v", all, before)
	}
	if all, before := newestMerge(merge); !reflect.DeepEqual(all, *merge) || before != older {
		t.Errorf("a merge alone: %+v, after %+v", all, before)
	}
	apart := &centurion.Merged{Commit: "c9", Before: "c8", Follows: true, Earlier: merge}
	if all, before := newestMerge(apart); !reflect.DeepEqual(all, *apart) || before != merge {
		t.Errorf("with a commit of the person between them: %+v, after %+v", all, before)
	}
}
