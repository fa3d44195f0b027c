package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
	"centurion/workspace"
)

// Issue "What real use showed", A.3: a rewind marks what was written in the messages that it leaves behind, and going back there takes the
// marks away again; every other byte stays.
func TestRewindMarksNotes(t *testing.T) {
	answers := map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		switch q.Step() {
		case 1:
			return do(shares(args{"note": "the first"}))
		case 2:
			return do(shares(args{"note": "the second", "summary": "All is built."}))
		}
		return say("built")
	}}
	bubble(t, answers, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		read := func(path string) string {
			b, err := os.ReadFile(filepath.Join(r.dir, path))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		context, summary := read(workspace.ContextPath), read(workspace.SummaryPath)
		got, err := r.host.Branches.Rewind(r.ctx, m.Session, "-2", "")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "context", read(workspace.ContextPath), strings.Replace(context, "the second (commander)", "the second (commander) (reverted)", 1))
		equal(t, "summary", read(workspace.SummaryPath), "> Reverted: the conversation of 0/ was rewound to before this was written.\n\n"+summary)
		if _, err := r.host.Branches.Rewind(r.ctx, m.Session, got.Mark, ""); err != nil {
			t.Fatal(err)
		}
		equal(t, "context, back again", read(workspace.ContextPath), context)
		equal(t, "summary, back again", read(workspace.SummaryPath), summary)
	})
}
