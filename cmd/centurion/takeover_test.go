package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"centurion"
	"centurion/host"
	"centurion/server"
	"centurion/takeover"
)

// taking is a host that answers every merge and undo alike, and notes what it was asked.
type taking struct {
	server.Person
	merge takeover.MergeReport
	undo  takeover.UndoReport
	err   error
	asked []string
}

func (p *taking) say(what string, dry bool) error {
	if dry {
		what = "look at " + what
	}
	p.asked = append(p.asked, what)
	return p.err
}

func (p *taking) Merge(_ context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	r := p.merge
	r.Mission, r.DryRun = id, q.DryRun
	return r, p.say("merge", q.DryRun)
}

func (p *taking) Undo(_ context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	r := p.undo
	r.Mission, r.DryRun = id, q.DryRun
	return r, p.say("undo", q.DryRun)
}

// The work of a complete mission is merged if --merge says so, otherwise the command for it is named where there is something to merge;
// a merge that is refused is the exit code 4.
func TestAfterAMission(t *testing.T) {
	refused := &takeover.Refusal{Why: "no room", Next: "make some"}
	complete := centurion.Mission{ID: "msn_1", Status: centurion.MissionCompleted, Isolation: centurion.IsolationWorktree}
	paused, shared := complete, complete
	paused.Status, shared.Isolation = centurion.MissionPaused, centurion.IsolationShared
	conflict := &centurion.Error{Kind: centurion.KindConflict, Msg: "nothing to merge"}
	for name, tt := range map[string]struct {
		m      centurion.Mission
		f      runFlags
		p      taking
		hinted bool
		asked  []string
		code   int
		errs   string
		fails  bool
	}{
		"named":               {m: complete, asked: []string{"look at merge"}, errs: "next: centurion merge msn_1\n"},
		"named before":        {m: complete, hinted: true, asked: []string{"look at merge"}},
		"merged":              {m: complete, f: runFlags{merge: true}, asked: []string{"look at merge", "merge"}},
		"merged among events": {m: complete, f: runFlags{merge: true, format: "json"}, asked: []string{"look at merge", "merge"}, errs: "merged into"},
		"refused":             {m: complete, f: runFlags{merge: true}, p: taking{merge: takeover.MergeReport{Refused: refused}}, asked: []string{"look at merge"}, code: exitBlocked, errs: "nothing was changed: no room\nnext: make some"},
		"nothing to merge":    {m: complete, f: runFlags{merge: true}, p: taking{err: conflict}, asked: []string{"look at merge"}},
		"it cannot be seen":   {m: complete, p: taking{err: errors.New("no git")}, asked: []string{"look at merge"}, errs: "next: centurion merge msn_1\n"},
		"it cannot be merged": {m: complete, f: runFlags{merge: true}, p: taking{err: errors.New("no git")}, asked: []string{"look at merge"}, fails: true},
		"not complete":        {m: paused, f: runFlags{merge: true}},
		"in the project":      {m: shared, f: runFlags{merge: true}},
	} {
		var out, errs strings.Builder
		c := &runner{&cli{in: strings.NewReader(""), out: &out, err: &errs}, &tt.f}
		err := c.afterMission(t.Context(), &tt.p, tt.m, tt.hinted)
		if (err != nil) != tt.fails || !slices.Equal(tt.p.asked, tt.asked) || c.code != tt.code || tt.errs == "" && errs.Len() > 0 || !strings.Contains(errs.String(), tt.errs) {
			t.Errorf("%s: %v, asked %q, code %d, %q", name, err, tt.p.asked, c.code, errs.String())
		}
		if tt.f.format == "json" && out.Len() > 0 {
			t.Errorf("%s: among the events stands %q", name, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := taking{}
	c := &runner{&cli{err: io.Discard, out: io.Discard}, &runFlags{merge: true}}
	if err := c.afterMission(ctx, &p, complete, false); err != nil || len(p.asked) > 0 {
		t.Errorf("after Ctrl-C: %v, asked %q", err, p.asked)
	}
}

// A merge is looked at before it is made, and neither made when it is refused nor when it is only looked at.
func TestMergeIsLookedAtFirst(t *testing.T) {
	refused := takeover.MergeReport{Refused: &takeover.Refusal{Why: "no", Next: "yes"}}
	for name, tt := range map[string]struct {
		format string
		q      takeover.MergeRequest
		report takeover.MergeReport
		asked  []string
		code   int
	}{
		"merged":        {"text", takeover.MergeRequest{}, takeover.MergeReport{}, []string{"look at merge", "merge"}, 0},
		"only a look":   {"text", takeover.MergeRequest{DryRun: true}, takeover.MergeReport{}, []string{"look at merge"}, 0},
		"refused":       {"text", takeover.MergeRequest{}, refused, []string{"look at merge"}, exitBlocked},
		"finished":      {"text", takeover.MergeRequest{}, takeover.MergeReport{Finished: true}, []string{"look at merge"}, 0},
		"JSON":          {"json", takeover.MergeRequest{}, takeover.MergeReport{}, []string{"merge"}, 0},
		"JSON, refused": {"json", takeover.MergeRequest{}, refused, []string{"merge"}, exitBlocked},
	} {
		var out strings.Builder
		p := taking{merge: tt.report}
		v := &view{&cli{in: strings.NewReader(""), out: &out, err: io.Discard}, &host.View{}, tt.format}
		if err := v.merge(t.Context(), &p, "msn_1", tt.q); err != nil || !slices.Equal(p.asked, tt.asked) || v.code != tt.code {
			t.Errorf("%s: %v, asked %q, code %d", name, err, p.asked, v.code)
		}
		if (tt.format == "json") != strings.HasPrefix(out.String(), "{") {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

// An undo that is refused has the exit code 4 in either format.
func TestRefusedUndo(t *testing.T) {
	for format, object := range map[string]bool{"text": false, "json": true} {
		for _, refused := range []bool{false, true} {
			p := taking{undo: takeover.UndoReport{Title: "x"}}
			want := 0
			if refused {
				p.undo.Refused, want = &takeover.Refusal{Why: "no", Next: "yes"}, exitBlocked
			}
			var out strings.Builder
			v := &view{&cli{in: strings.NewReader(""), out: &out, err: io.Discard}, &host.View{}, format}
			if err := v.undo(t.Context(), &p, "msn_1", takeover.UndoRequest{}); err != nil || v.code != want || !slices.Equal(p.asked, []string{"undo"}) || object != strings.HasPrefix(out.String(), "{") {
				t.Errorf("%s, refused %v: %v, code %d, asked %q, %s", format, refused, err, v.code, p.asked, out.String())
			}
		}
	}
}

// Of what ended a mission several times the newest is told.
func TestLastEnd(t *testing.T) {
	all := []centurion.Event{{Seq: 1, Type: centurion.EventMissionPaused}, {Seq: 2, Type: centurion.EventMissionResumed}, {Seq: 3, Type: centurion.EventMissionCompleted}, {Seq: 4, Type: centurion.EventMergeDone}}
	var got []int64
	for e, err := range lastEnd(func(yield func(centurion.Event, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if !slices.Equal(got, []int64{3}) {
		t.Errorf("ends %v", got)
	}
	missions := []server.Mission{{ID: "a", Started: centurion.MillisTime(1)}, {ID: "b", Started: centurion.MillisTime(3)}, {ID: "c", Started: centurion.MillisTime(2)}}
	slices.SortStableFunc(missions, newestFirst)
	if missions[0].ID != "b" || missions[2].ID != "a" {
		t.Errorf("%v", missions)
	}
}

// broken is a pipe whose reader is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// A closed output interrupts the program once; a key that is typed ends at Ctrl-C or Ctrl-D.
func TestStreamsEnd(t *testing.T) {
	n := 0
	o := &outlet{to: broken{}, interrupt: func() { n++ }}
	c := &cli{out: o}
	if c.outputClosed() {
		t.Error("it is closed before anything is written")
	}
	for range 3 {
		if _, err := o.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Error(err)
		}
	}
	if n != 1 || !c.outputClosed() || !c.isOutputClosed(centurion.ErrShutdown) || c.isOutputClosed(errors.New("x")) {
		t.Errorf("interrupted %d times", n)
	}
	for typed, end := range map[string]byte{"key": 0, "ke\x03y": ctrlC, "k\x04ey": ctrlD} {
		r := &passwordReader{Reader: strings.NewReader(typed)}
		b, err := io.ReadAll(r)
		if err != nil || r.end != end || end == 0 && string(b) != typed || end != 0 && len(b) > 0 {
			t.Errorf("%q: %q, %v, ended by %d", typed, b, err, r.end)
		}
	}
	for in, want := range map[string]string{" key \nmore": "key", "key": "key", "\n": "", "": ""} {
		got, err := (&cli{in: strings.NewReader(in)}).secret(t.Context(), "")
		if got != want || (err == nil) != (want != "") || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// A command of the person's own says who works on it and with what; what is given on the command line counts more.
func TestCommandOfThePerson(t *testing.T) {
	const worker = "Do x.\n\n---\nDelegate this as one task to the agent worker, and report its result."
	for name, tt := range map[string]struct {
		head string
		f    runFlags
		want request
		set  runFlags // the flags afterwards: agent and model
		note string
		kind centurion.Kind
	}{
		"alone":                  {"", runFlags{}, request{goal: "Do x."}, runFlags{}, "", ""},
		"a model":                {"model: p/m", runFlags{}, request{goal: "Do x."}, runFlags{model: "p/m"}, "", ""},
		"another model":          {"model: p/m", runFlags{model: "q/n"}, request{goal: "Do x."}, runFlags{model: "q/n"}, "", ""},
		"OpenCode's planner":     {"agent: Plan", runFlags{}, request{goal: "Do x.", planOnly: true}, runFlags{}, "", ""},
		"OpenCode's builder":     {"agent: build", runFlags{}, request{goal: "Do x."}, runFlags{}, `the agent "build" is OpenCode's own`, ""},
		"an owner":               {"agent: commander", runFlags{}, request{goal: "Do x."}, runFlags{agent: "commander"}, "", ""},
		"a worker":               {"agent: worker", runFlags{}, request{goal: worker}, runFlags{}, "", ""},
		"a task":                 {"subtask: true", runFlags{}, request{goal: worker}, runFlags{}, "", ""},
		"a given agent":          {"agent: worker", runFlags{agent: "own"}, request{goal: "Do x."}, runFlags{agent: "own"}, "", ""},
		"a task of an assistant": {"subtask: true", runFlags{profile: "assistant"}, request{goal: "Do x.\n\n---\nHand this as one task to a sub-agent with sub_agent, and report its result.", subAgent: true}, runFlags{}, "", ""},
		"nobody":                 {"agent: wroker", runFlags{}, request{}, runFlags{}, "", centurion.KindConfig},
	} {
		home, dir := t.TempDir(), t.TempDir()
		path := filepath.Join(home, ".config", "opencode", "command", "x.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("---\n"+tt.head+"\n---\nDo $1.\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		tt.f.dir = dir
		c := &runner{&cli{out: io.Discard, err: &errs, env: []string{"HOME=" + home, "CENTURION_HOME=" + home}}, &tt.f}
		got, err := c.readRequest(t.Context(), "/x x", c.configured)
		if got.typed == nil {
			t.Errorf("%s: the command is not told", name)
		}
		got.typed = nil
		if got != tt.want || centurion.KindOf(err) != tt.kind || err == nil && (c.f.agent != tt.set.agent || c.f.model != tt.set.model) || !strings.Contains(errs.String(), tt.note) || tt.note == "" && errs.Len() > 0 {
			t.Errorf("%s: %+v, %v; agent %q, model %q, %q", name, got, err, c.f.agent, c.f.model, errs.String())
		}
	}
}

// What of a change is printed is what was asked for: names, numbers, or the patch byte for byte.
func TestChangeIsPrinted(t *testing.T) {
	change := takeover.Change{Files: []centurion.FileChange{{Path: "a\x1b.txt", Added: 1}}, Patch: "+a\xff\n", Raw: []byte("+a\xff\n"), Undone: centurion.Time{Time: time.Unix(1, 0)}}
	for name, tt := range map[string]struct {
		format      string
		stat, names bool
		says        string
		noted       bool
	}{
		"the patch": {"text", false, false, "+a\xff\n", true},
		"names":     {"text", false, true, "a\\x1b.txt\n", false},
		"JSON":      {"json", false, true, "{", false},
		"numbers":   {"text", true, false, "+1", true},
	} {
		var out, errs bytes.Buffer
		v := &view{&cli{in: strings.NewReader(""), out: &out, err: &errs}, &host.View{}, tt.format}
		if err := v.printChange(change, tt.stat, tt.names); err != nil || !strings.Contains(out.String(), tt.says) || strings.Contains(errs.String(), "it was reverted") != tt.noted {
			t.Errorf("%s: %q, %q, %v", name, out.String(), errs.String(), err)
		}
		if name == "the patch" && out.String() != tt.says {
			t.Errorf("the patch is %q", out.String())
		}
	}
	var errs bytes.Buffer
	v := &view{&cli{in: strings.NewReader(""), out: io.Discard, err: &errs}, &host.View{}, "text"}
	if err := v.printChange(takeover.Change{}, false, false); err != nil || !strings.Contains(errs.String(), "nothing was changed") {
		t.Errorf("no change: %q, %v", errs.String(), err)
	}
	if how, why := (&cli{env: []string{"HOME=" + t.TempDir()}}).confinement(t.TempDir()); how.Way == "" || (why == nil) != (how.Way == "full") {
		t.Errorf("confined %+v, %v", how, why)
	}
}
