package workspace

import (
	"slices"
	"testing"

	"centurion/workspace/todo"
)

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
