package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"centurion/workspace/todo"
)

// What is remembered of a plan in memory is bounded, and the newest is kept.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	text := func(i int, words string) []byte { return fmt.Appendf(nil, "- [ ] T1 %d %s\n", i, words) }
	var many history
	for i := range maxVersions + 10 {
		if !many.remember(text(i, ""), true) {
			t.Fatal("it was not remembered")
		}
	}
	if n := len(many.list); n != maxVersions || !many.isNewest(text(maxVersions+9, "")) || many.isNewest(text(maxVersions+8, "")) || many.knows(VersionOf(text(9, ""))) || !many.knows(VersionOf(text(10, ""))) {
		t.Errorf("%d versions", n)
	}
	var big history
	words := strings.Repeat("x", maxRemembered/4)
	for i := range 8 {
		big.remember(text(i, words), true)
	}
	if n := len(big.list); n < 2 || n > 4 || big.bytes > maxRemembered {
		t.Errorf("%d versions of %d bytes", n, big.bytes)
	}
}

// A mark that a person has set stays although the item is given its id, and other marks, in the meantime.
func TestMarkStaysWhileTheItemGetsItsID(t *testing.T) {
	t.Parallel()
	plan := func(item string) *blocks {
		doc, err := todo.Parse([]byte("# Plan\n\n" + item + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return cut(doc)
	}
	versions := []string{"- [ ] Write it", "- [ ] T1 Write it", "- [~] T1 Write it", "- [x] T1 Write it"}
	var all []step
	for i := range versions[1:] {
		all = append(all, steps(plan(versions[i]), plan(versions[i+1]), true)...)
	}
	p := plan("- [~] Write it")
	p.apply(plan(versions[0]), all)
	if want := plan("- [~] T1 Write it").text(); !slices.Equal(p.text(), want) {
		t.Errorf("the plan is\n%s\nwant\n%s", p.text(), want)
	}
}
