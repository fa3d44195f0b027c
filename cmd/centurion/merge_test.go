package main

import (
	"strings"
	"testing"

	"centurion"
	"centurion/takeover"
)

// A merge names how it is taken back as it would work: of a mission that runs, after a pause. What git ignores is named with its place.
func TestMergeSays(t *testing.T) {
	c := &cli{}
	for running, want := range map[bool]string{false: "\nundo: centurion undo msn_1\n", true: "\nundo: centurion pause msn_1 && centurion undo msn_1\n"} {
		var b strings.Builder
		got := takeover.MergeReport{Mission: "msn_1", Branch: "main", Running: running, Aside: []centurion.Aside{{Dir: "/kept", Files: []string{"out/a.txt"}}}}
		if err := c.printMerge(&b, got); err != nil {
			t.Fatal(err)
		}
		if err := c.merged(&b, got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "! git ignores out/a.txt: not merged, kept in /kept\n") {
			t.Errorf("running %t:\n%s", running, b.String())
		}
	}
}
