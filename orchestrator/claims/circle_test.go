package claims

import (
	"fmt"
	"strings"
	"testing"
)

// Two who each want a file of the other do not wait for ever: who began later gives up its file, and both are told once.
func TestCircleIsBroken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		order []string // who asks for a file of the other, in this order
		free  string   // what becomes of the last call
	}{
		"the younger asks last": {[]string{"T1", "T2"}, "[] [a belongs to item T1]"},
		"the older asks last":   {[]string{"T2", "T1"}, "[] []"},
	} {
		t.Run(name, func(t *testing.T) {
			var r Registry
			r.Take("T1", []string{"a"})
			r.Take("T2", []string{"b"})
			wants := map[string]string{"T1": "b", "T2": "a"}
			got := ""
			for _, who := range test.order {
				if words := r.Words(who); len(words) > 0 {
					t.Errorf("%s is told too early: %q", who, words)
				}
				wider, held := r.Settle(who, []string{wants[who]})
				got = fmt.Sprint(wider, held)
			}
			if got != test.free {
				t.Errorf("the last call: %s, want %s", got, test.free)
			}
			if words := strings.Join(r.Words("T2"), "\n"); words != "You need a, which belongs to item T1, while item T1 needs b, which was yours: both would wait for ever. "+
				"You began later, so b now belongs to item T1, with what you have written there. Leave both files alone, finish with what you have, and say in your result what is still missing." {
				t.Errorf("the younger is told: %q", words)
			}
			if words := strings.Join(r.Words("T1"), "\n"); words != "b is yours now: item T2 has handed it over because each of you waited for the other. It may be half done: read it before you change it." {
				t.Errorf("the older is told: %q", words)
			}
			if words := append(r.Words("T1"), r.Words("T2")...); len(words) > 0 {
				t.Errorf("told again: %q", words)
			}
			if _, held := r.Settle("T1", []string{"a", "b"}); len(held) > 0 {
				t.Errorf("the older may not write: %v", held)
			}
			if _, held := r.Settle("T2", []string{"b"}); fmt.Sprint(held) != "[b belongs to item T1]" {
				t.Errorf("the younger: %v", held)
			}
			r.Drop("T1")
			if _, held := r.Settle("T2", []string{"a", "b"}); len(held) > 0 {
				t.Errorf("when the older has ended the younger may not write: %v", held)
			}
			if got := fmt.Sprint(r.Of("T2")); got != "[b a b]" {
				t.Errorf("it holds %s", got)
			}
		})
	}
}

// A longer circle is broken at the one who began last; who goes on with other files, or wants one of somebody who waits for nobody, is in none.
func TestLongerCircle(t *testing.T) {
	t.Parallel()
	var r Registry
	for _, who := range []string{"T1", "T2", "T3", "T4"} {
		r.Take(who, []string{"of" + who})
	}
	refused := func(who, file string) {
		t.Helper()
		if _, held := r.Settle(who, []string{file}); len(held) == 0 {
			t.Errorf("%s got %s", who, file)
		}
	}
	refused("T2", "ofT1")
	r.Settle("T2", []string{"ofT2"}) // it goes on with its own: it does not wait
	refused("T1", "ofT2")
	refused("T4", "ofT1")
	refused("T3", "ofT1")
	if words := append(r.Words("T1"), r.Words("T2")...); len(words) > 0 {
		t.Errorf("a circle was broken where there was none: %q", words)
	}
	if _, held := r.Settle("T2", []string{"ofT3"}); len(held) > 0 {
		t.Errorf("T2 waits on: %v", held)
	}
	if words := strings.Join(r.Words("T2"), ""); !strings.Contains(words, "ofT3 is yours now: item T3 has handed it over") {
		t.Errorf("T2 is told %q", words)
	}
	if words := strings.Join(r.Words("T3"), ""); !strings.Contains(words, "You need ofT1, which belongs to item T1, while item T2 needs ofT3") {
		t.Errorf("T3 is told %q", words)
	}
	if words := append(r.Words("T1"), r.Words("T4")...); len(words) > 0 {
		t.Errorf("others are told: %q", words)
	}
}

// Who gives up a file that it had written keeps nothing of it and waits no more; how long somebody has held something counts from
// when it held something first, not from when it was refused.
func TestWhoGivesUp(t *testing.T) {
	t.Parallel()
	var r Registry
	settle := func(who, file, want string) {
		t.Helper()
		wider, held := r.Settle(who, []string{file})
		if got := fmt.Sprint(wider, held); got != want {
			t.Errorf("%s writes %s: %s, want %s", who, file, got, want)
		}
	}
	r.Take("T1", []string{"a"})
	settle("T3", "a", "[] [a belongs to item T1]")
	r.Settle("T3", nil) // a command that changed nothing: it holds nothing yet
	r.Take("T2", []string{"b"})
	settle("T3", "c", "[c] []")
	settle("T3", "d", "[d] []")
	settle("T2", "c", "[] [c belongs to item T3]")
	settle("T3", "b", "[] [b belongs to item T2]")
	if got := fmt.Sprint(r.Of("T3"), r.Of("T2")); got != "[d] [b c]" {
		t.Errorf("they hold %s", got)
	}
	settle("T2", "c", "[] []")
	settle("T2", "d", "[] [d belongs to item T3]")
	r.Words("T2")
	if len(r.Words("T3")) != 1 || len(r.Words("T2")) != 0 {
		t.Error("a circle was broken twice")
	}
}

// Where each writes in a place of its own, only the plan's files keep anybody off, and it is known who has the same file.
func TestApart(t *testing.T) {
	t.Parallel()
	r := Registry{Apart: true}
	r.Take("T1", []string{"a", "c"})
	if wider, held := r.Settle("T2", []string{"a", "b"}); fmt.Sprint(wider, held) != "[a b] []" {
		t.Errorf("T2: %v %v", wider, held)
	}
	r.Settle("T3", []string{"b", "d"})
	if other, ok := r.Take("T4", []string{"b"}); !ok {
		t.Errorf("T4 waits for %s, whom the plan does not give b", other)
	}
	if other, ok := r.Take("T5", []string{"a"}); ok || other != "T1" {
		t.Errorf("T5: %q %v", other, ok)
	}
	if _, ok := r.Take("T5", []string{"a"}, "T1"); !ok {
		t.Error("T5 waits for T1, which waits for T5")
	}
	r.Drop("T5")
	for who, want := range map[string]string{"T1": "map[T2:[a]]", "T2": "map[T1:[a] T3:[b] T4:[b]]", "T3": "map[T2:[b] T4:[b]]", "T4": "map[T2:[b] T3:[b]]", "": "map[]"} {
		if got := fmt.Sprint(r.Shared(who)); got != want {
			t.Errorf("%q shares %s, want %s", who, got, want)
		}
	}
}

// Who begins anew under a name is not told what somebody before it was to hear.
func TestWordsGoWithTheirHolder(t *testing.T) {
	var r Registry
	r.Take("T1", []string{"a"})
	r.Take("T2", []string{"b"})
	r.Settle("T1", []string{"b"})
	r.Settle("T2", []string{"a"})
	r.Drop("T2")
	r.Take("T2", []string{"c"})
	if words := r.Words("T2"); len(words) > 0 || len(r.Words("T1")) == 0 {
		t.Errorf("told: %q", words)
	}
}
