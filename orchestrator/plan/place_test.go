package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// plansOf lists the plans of a project with what stands in them.
func plansOf(t *testing.T, ws *workspace.Workspace) string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(ws.Dir()), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), "todo") {
			b, rerr := os.ReadFile(filepath.Join(ws.Dir(), path))
			err = errors.Join(err, rerr)
			all = append(all, strings.TrimPrefix(path, workspace.Directory+"/")+" "+strings.TrimSpace(string(b)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " | ")
}

// A new mission gets the place of the plan: that of an ended mission is archived, that of another one has its mission's name, and nobody's is put
// aside under a free name. What cannot be moved stays.
func TestPlaceIsClaimed(t *testing.T) {
	t.Parallel()
	const mine, aside = "- [ ] T1 Old", "todo-20000101-000000"
	owner := func(s centurion.MissionStatus) centurion.Mission {
		return centurion.Mission{Status: s, Todo: workspace.TodoPath, HadItems: true}
	}
	for name, c := range map[string]struct {
		owner   centurion.Mission
		running bool
		text    string
		given   string
		before  string // another file
		want    string // the plans afterwards
		todo    string // of the owner
		kind    centurion.Kind
	}{
		"completed":           {owner(centurion.MissionCompleted), false, mine, "", "", "archive/todo-msn_0.md " + mine, ".opencode/archive/todo-msn_0.md", ""},
		"failed":              {owner(centurion.MissionFailed), false, mine, "", "", "archive/todo-msn_0.md " + mine, ".opencode/archive/todo-msn_0.md", ""},
		"cancelled":           {owner(centurion.MissionCancelled), false, mine, "", "", "archive/todo-msn_0.md " + mine, ".opencode/archive/todo-msn_0.md", ""},
		"paused":              {owner(centurion.MissionPaused), false, mine, "", "", "todo-msn_0.md " + mine, ".opencode/todo-msn_0.md", ""},
		"it runs":             {owner(centurion.MissionRunning), true, mine, "", "", "todo-msn_0.md " + mine, ".opencode/todo-msn_0.md", ""},
		"it has not written":  {owner(centurion.MissionRunning), true, "", "", "", "", ".opencode/todo-msn_0.md", ""},
		"never written":       {owner(centurion.MissionPaused), false, "", "", "", "", ".opencode/todo-msn_0.md", ""},
		"it had no plan":      {centurion.Mission{Status: centurion.MissionFailed, Todo: workspace.TodoPath}, false, mine, "", "", aside + ".md " + mine, workspace.TodoPath, ""},
		"another place":       {centurion.Mission{Status: centurion.MissionPaused, Todo: ".opencode/todo-msn_0.md", HadItems: true}, false, mine, "", "", aside + ".md " + mine, ".opencode/todo-msn_0.md", ""},
		"a name in use":       {centurion.Mission{}, false, mine, "", ".opencode/" + aside + ".md", aside + "-2.md " + mine + " | " + aside + ".md x", "", ""},
		"blank":               {centurion.Mission{}, false, " \n", "", "", "todo.md ", "", ""},
		"no archive":          {owner(centurion.MissionCompleted), false, mine, "", "outside", "todo.md " + mine, workspace.TodoPath, centurion.KindPermission},
		"given beside it":     {owner(centurion.MissionPaused), false, mine, "d/../todo.txt", "todo.txt", "todo-msn_0.md " + mine + " | todo.md x | todo.txt x", ".opencode/todo-msn_0.md", ""},
		"given, in its place": {centurion.Mission{}, false, mine, "./.opencode/todo.md", "", "todo.md " + mine, "", ""},
		"given, of another":   {owner(centurion.MissionPaused), false, mine, "./.opencode/todo.md", "", "todo-msn_0.md " + mine + " | todo.md " + mine, ".opencode/todo-msn_0.md", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := planned(t, "", centurion.Mission{})
				ws, err := workspace.Open(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer ws.Close()
				for path, text := range map[string]string{workspace.TodoPath: c.text, c.before: "x\n"} {
					if path != "" && text != "" {
						write(t, ws, path, text)
					}
				}
				if c.before == "outside" {
					if err := os.Symlink(t.TempDir(), filepath.Join(ws.Dir(), workspace.ArchivePath)); err != nil {
						if runtime.GOOS == "windows" { // links need a right there
							t.Skip(err)
						}
						t.Fatal(err)
					}
				}
				c.owner.ID = "msn_0"
				if err := p.st.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&c.owner) }); err != nil {
					t.Fatal(err)
				}
				var own *File
				if c.running {
					own = newPlanFile(ws.Todo(), nil)
				}
				_, err = NewDesk(p.st.Store, ws, func(string) *File { return own }, func([]byte) bool { return false }).ClaimTodo(t.Context(), c.given)
				m, merr := p.st.Store.Mission(t.Context(), "msn_0")
				if got := plansOf(t, ws); (err == nil) != (c.kind == "") || merr != nil || m.Todo != c.todo || got != c.want {
					t.Errorf("%q, the owner's is %s; %v, %v", got, m.Todo, err, merr)
				}
				if own != nil {
					if file, _ := own.Where(); file.Path() != c.todo {
						t.Errorf("it goes on with %s", file.Path())
					}
				}
			})
		})
	}
}

// A state that does not say whose a plan is leaves it where it is.
func TestPlaceIsNotClaimedBlindly(t *testing.T) {
	t.Parallel()
	ws := project(t)
	write(t, ws, workspace.TodoPath, "- [ ] T1 One\n")
	for _, unwritten := range []bool{false, true} {
		st := planned(t, "", centurion.Mission{Todo: workspace.TodoPath}).st.Store
		mend := refuse(t, st, "mission", unwritten)
		_, err := NewDesk(st, ws, func(string) *File { return nil }, nil).ClaimTodo(t.Context(), "")
		if mend(); err == nil || !unwritten && plansOf(t, ws) != "todo.md - [ ] T1 One" {
			t.Errorf("%v, %s", err, plansOf(t, ws))
		}
	}
}

// A claim is recorded whole; checks that nobody has trusted are adopted, and no more.
func TestFill(t *testing.T) {
	t.Parallel()
	c := Claim{path: "a", owns: true, lines: []string{"make"}, aside: "b"}
	var m centurion.Mission
	if note := c.Fill(&m); note != "no mission of this project wrote the plan in a: it is now in b; to carry it out: centurion run --plan b GOAL" ||
		!reflect.DeepEqual(m, centurion.Mission{Todo: "a", OwnsTodo: true, PutAside: "b", Adopted: []string{"make"}}) {
		t.Errorf("%q, %+v", note, m)
	}
	c.known, c.aside, m = true, "", centurion.Mission{}
	if note := c.Fill(&m); note != "" || !reflect.DeepEqual(m, centurion.Mission{Todo: "a", OwnsTodo: true, Approved: []string{"make"}}) {
		t.Errorf("%q, %+v", note, m)
	}
	ws := project(t)
	write(t, ws, workspace.TodoPath, "- verify: `make`\n```\n")
	given, err := NewDesk(planned(t, "", centurion.Mission{}).st.Store, ws, nil, func([]byte) bool { return false }).ClaimTodo(t.Context(), workspace.TodoPath)
	if want := (Claim{path: workspace.TodoPath, owns: true}); err != nil || !reflect.DeepEqual(given, want) {
		t.Errorf("one that cannot be read, in its place: %+v, %v", given, err)
	}
}

// A plan that the mission has not announced is met once: its checks are nobody's word unless a person trusts it or has given it.
func TestMeetPlan(t *testing.T) {
	t.Parallel()
	const text = "- [ ] T1 One\n  - verify: `make`\n"
	for name, c := range map[string]struct {
		text    string
		is      centurion.Mission
		trusted bool
		want    string // adopted, approved, whether it has had items, how much was told
	}{
		"found":          {text, centurion.Mission{}, false, "[make] [] true 2"},
		"found, trusted": {text, centurion.Mission{}, true, "[] [make] true 2"},
		"given":          {text, centurion.Mission{OwnsTodo: true, Approved: []string{"x"}}, false, "[] [x] true 2"},
		"known":          {text, centurion.Mission{HadItems: true}, true, "[] [] true 0"},
		"without checks": {"- [ ] T1 One\n", centurion.Mission{Adopted: []string{"x"}}, false, "[x] [] true 2"},
		"not readable":   {"```\n", centurion.Mission{}, false, "[] [] false 0"},
	} {
		p := planned(t, c.text, c.is)
		p.trusted = func(b []byte) bool { return c.trusted && string(b) == c.text }
		err := p.MeetPlan(t.Context(), c.is)
		m, merr := p.st.Store.Mission(t.Context(), "msn_1")
		if got := fmt.Sprint(m.Adopted, m.Approved, m.HadItems, p.st.Store.LastSeq()); got != strings.ReplaceAll(c.want, "] [", "] [") || err != nil || merr != nil {
			t.Errorf("%s: %s; %v, %v", name, got, err, merr)
		}
	}
}

// Whoever writes first makes the file the mission's, and a plan that a check refuses leaves everything as it was: also the checks of items that
// were handed out.
func TestReplacedPlan(t *testing.T) {
	t.Parallel()
	const text, other = "- [~] T1 One\n  - verify: `a`\n- [ ] T2 Two\n  - verify: `a`\n", "- [~] T1 One\n  - verify: `b`\n- [ ] T2 Two\n  - verify: `b`\n"
	p := planned(t, text, centurion.Mission{})
	checks := func() string {
		all := p.File.Frozen.All()
		return fmt.Sprint(len(all), all["T1"].Verify)
	}
	p.File.Frozen.Set(map[string]todo.Checks{"T1": {Verify: []string{"a"}}})
	var kept []string
	p.File.Keep = func(_ context.Context, ids []string) error { kept = append(kept, ids...); return nil }
	refused := errors.New("refused")
	if _, _, err := p.File.Replace(t.Context(), other, false, func(_, _ *todo.Doc) error { return refused }); err != refused || checks() != "1 [a]" {
		t.Errorf("refused by a check: %v, %s", err, checks())
	}
	mend := refuse(t, p.st.Store, "mission", true)
	if _, _, err := p.File.Replace(t.Context(), other, false, func(_, _ *todo.Doc) error { return nil }); err == nil || checks() != "1 [a]" {
		t.Errorf("refused by the state: %v, %s", err, checks())
	}
	mend()
	if doc, err := p.File.Raw(); err != nil || string(doc.Bytes()) != text || len(kept) > 0 {
		t.Fatalf("it was written: %s, %v, kept %s", doc.Bytes(), err, kept)
	}
	doc, _, err := p.File.Replace(t.Context(), other, false, func(_, _ *todo.Doc) error { return nil })
	m, merr := p.st.Store.Mission(t.Context(), "msn_1")
	if err != nil || merr != nil || string(doc.Bytes()) != other || checks() != "1 [b]" || strings.Join(kept, " ") != "T1" || !m.OwnsTodo {
		t.Errorf("%s, %s, kept %s, owned %t; %v, %v", doc.Bytes(), checks(), kept, m.OwnsTodo, err, merr)
	}
	p.File.Keep = func(context.Context, []string) error { return refused }
	if _, _, err := p.File.Replace(t.Context(), text, false, func(_, _ *todo.Doc) error { return nil }); err != refused {
		t.Errorf("checks that could not be kept: %v", err)
	}
	p.File.Frozen.Set(map[string]todo.Checks{"T1": {Verify: []string{"c"}}})
	doc, err = p.File.Load()
	raw, rerr := p.File.Raw()
	edited, eerr := p.File.Edit(t.Context(), func(d *todo.Doc) error { return d.AddNote("T2", "n") })
	for what, d := range map[string]*todo.Doc{"[c]": doc, "[a]": raw, " [c] ": edited} {
		if it, _ := d.Item("T1"); fmt.Sprint(it.Verify) != strings.TrimSpace(what) {
			t.Errorf("%s, want %s", it.Verify, what)
		}
	}
	p.File.Foreign() // what was there before
	werr := os.WriteFile(filepath.Join(p.st.Spent.Load().Directory, workspace.TodoPath), []byte(strings.NewReplacer("Two", "Due", "`c`", "`x`").Replace(string(edited.Bytes()))), 0o600)
	herr := p.File.Heal(t.Context())
	changes := p.File.Foreign()
	if err := errors.Join(err, rerr, eerr, werr, herr); err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	if it, _ := changes[0].To.Item("T1"); fmt.Sprint(it.Verify) != "[c]" {
		t.Errorf("a change beside a frozen check: %s", it.Verify)
	}
}

// The plan is watched wherever it is moved, until the mission ends or the watch fails.
func TestWatchedPlan(t *testing.T) {
	t.Parallel()
	ws := project(t)
	write(t, ws, workspace.TodoPath, "- [ ] T1 One\n")
	p := planned(t, "", centurion.Mission{})
	ctx, end := context.WithCancelCause(t.Context())
	broken := errors.New("broken")
	for name, want := range map[string]error{"ended": nil, "broken": broken} {
		var seen []string
		var w *Plan
		w = New(state.New(ctx, end, p.st.Store, *p.st.Spent.Load(), agents.Default()), nil, func(ctx context.Context, file *workspace.TodoFile, changed func()) error {
			if seen = append(seen, file.Path()); len(seen) == 1 {
				err := w.File.move(ws, "todo-"+name+".md", func(string) error { return nil })
				<-ctx.Done()
				return err
			}
			if name == "ended" {
				end(centurion.ErrShutdown)
				<-ctx.Done()
			}
			return want
		}, ws.TodoAt(workspace.TodoPath), nil)
		if name == "broken" {
			ctx = t.Context()
		}
		if err := w.WatchPlan(ctx); !errors.Is(err, want) || want == nil && err != nil || fmt.Sprint(seen) != "["+workspace.TodoPath+" .opencode/todo-"+name+".md]" {
			t.Errorf("%s: %v, watched %s", name, err, seen)
		}
		ctx, end = context.WithCancelCause(t.Context())
	}
	_ = end
}
