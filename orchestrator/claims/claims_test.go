package claims

import (
	"fmt"
	"testing"

	"centurion"
)

// What one has taken or written nobody else takes or writes, until it is dropped; who was refused holds nothing of it.
func TestRegistry(t *testing.T) {
	t.Parallel()
	var r Registry
	task := centurion.NewID(centurion.PrefixTask)
	say := func(what string, got any, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	settle := func(holder string, files ...string) string {
		wider, held := r.Settle(holder, files)
		return fmt.Sprint(wider, held)
	}
	take := func(item string, files ...string) string {
		other, ok := r.Take(item, files)
		return fmt.Sprint(other, ok)
	}
	say("the first takes", take("T1", "a/**"), "true")
	say("the second is refused", take("T2", "b", "a/x/*.go"), "T1false")
	say("it holds", r.Of("T2"), "[]")
	say("who is in its way", r.InTheWay("T2", []string{"a"}), "T1")
	say("who is in nobody's way", r.InTheWay("T2", []string{"b"}), "")
	say("own files are nothing new", settle("T1", "a/x.go"), "[] []")
	say("a file of nobody, twice", settle(task, "c", "c"), "[c] []")
	say("one of two is held", settle("T1", "d", "c"), fmt.Sprintf("[] [c belongs to task %s]", task))
	say("held by an item", settle("T3", "a/y"), "[] [a/y belongs to item T1]")
	say("the Commander holds nothing", settle("", "e"), "[] []")
	say("nor does it write what is held", settle("", "c"), fmt.Sprintf("[] [c belongs to task %s]", task))
	say("the first holds", r.Of("T1"), "[a/**]")
	say("what is written is in the way as well", take("T4", "c"), task+"false")
	say("what it has written", r.Wider(task), "[c]")
	say("what the first has written", r.Wider("T1"), "[]")
	allowed, held := r.Settle("T4", []string{"a/y"}, "T1")
	say("but for one in nobody's way", fmt.Sprint(allowed, held), "[a/y] []")
	say("more that it writes", settle("T4", "f", "e"), "[f e] []")
	say("what it has written, in that order", r.Wider("T4"), "[a/y f e]")
	r.Drop("T4")
	say("an item without files", take("T5"), "true")
	say("the others of the first", r.Others("T1"), fmt.Sprintf("map[%s:[c]]", task))
	r.Drop("T1")
	say("afterwards", take("T2", "b", "a/x/*.go"), "true")
	r.Restore("T2", []string{"z"})
	say("given back", r.Of("T2"), "[b a/x/*.go z]")
	say("taken anew", take("T2", "b"), "true")
	say("what it has written it keeps", r.Of("T2"), "[b z]")
	say("a number", Held{Path: "x", Holder: "w7"}.String(), "x belongs to task w7")
	say("an item that is a number", Held{Path: "x", Holder: "7"}.String(), "x belongs to item 7")
	say("an item that begins like one", Held{Path: "x", Holder: "w7a"}.String(), "x belongs to item w7a")
}
