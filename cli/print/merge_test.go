package print

import (
	"strings"
	"testing"

	"centurion"
	"centurion/takeover"
	"centurion/trust"
	"centurion/tui"
)

// A merge names how it is taken back as it would work: of a mission that runs, after a pause. What git ignores is named with its place.
func TestMergeSays(t *testing.T) {
	for running, want := range map[bool]string{false: "\nundo: centurion undo msn_1\n", true: "\nundo: centurion pause msn_1 && centurion undo msn_1\n"} {
		var b strings.Builder
		got := takeover.MergeReport{Mission: "msn_1", Branch: "main", Running: running, Lost: strings.Repeat("ab", 20), Aside: []centurion.Aside{{Dir: "/kept", Files: []string{"out/a.txt"}}}}
		if err := Merge(&b, got, tui.ShowOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := Merged(&b, got); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "! git ignores out/a.txt: not merged, kept in /kept\n") ||
			!strings.Contains(b.String(), "! main no longer contains ababababab, where the mission began") {
			t.Errorf("running %t:\n%s", running, b.String())
		}
	}
}

// A merge names below its files which of them the plan did not give to the items that changed them.
func TestMergeNamesFilesOutside(t *testing.T) {
	for _, test := range []struct {
		items []takeover.MergedItem
		want  string
	}{
		{[]takeover.MergedItem{{Item: "T1", Outside: []string{"README.md"}}, {Item: "T2"}, {Item: "T1", Outside: []string{"README.md"}}}, "outside its item's files: README.md (T1)\n"},
		{[]takeover.MergedItem{{Item: "T1", Outside: []string{"b", "a"}}, {Item: "T2", Outside: []string{"a"}}}, "outside their items' files: a (T1, T2), b (T1)\n"},
		{[]takeover.MergedItem{{Item: "T1", Task: "tsk_1"}}, ""},
	} {
		var b strings.Builder
		if err := Merge(&b, takeover.MergeReport{Mission: "msn_1", Branch: "main", Items: test.items}, tui.ShowOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.HasSuffix(got, test.want) || strings.Contains(got, "outside") != (test.want != "") {
			t.Errorf("got\n%s\nwant %q", got, test.want)
		}
	}
}

// A merge names the files in it that configure agents: they are not trusted with their new content.
func TestMergeNamesWhatNeedsTrust(t *testing.T) {
	var b strings.Builder
	got := takeover.MergeReport{Files: []centurion.FileChange{{Path: "opencode.json"}}, Trust: []string{"opencode.json"}}
	if err := Merge(&b, got, tui.ShowOptions{}); err != nil || !strings.Contains(b.String(), "until you trust them (centurion trust): opencode.json\n") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// A command is shown so that a person sees all of what they trust.
func TestTrustShowsWhatRuns(t *testing.T) {
	var b strings.Builder
	err := Trust(&b, []trust.State{{Name: "f", Items: []trust.Change{{Op: "+", Item: trust.Item{Line: 1, Kind: trust.Setup, Text: "npm ci # all\nrm -rf \u202eb"}}}}})
	if want := `+ f:1  setup       "npm ci # all\nrm -rf \u202eb"`; err != nil || !strings.Contains(b.String(), want) {
		t.Errorf("%s, %v; want %s", b.String(), err, want)
	}
}
