package worktree

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/workspace"
)

// This file makes the same random edits in a checkout of every kind, and in one that another process has: that all who use a workspace need
// only whole operations, which can be sent.

// request is one operation on a workspace, and answer what comes of it. Neither has a path of the host, a descriptor or a process id.
type request struct {
	Op      string
	Path    string // relative to the project
	Version string // that is replaced
	Data    []byte
	Script  string
	Tree    string
	Onto    string
}

type answer struct {
	Kind    centurion.Kind // of a failure
	Failed  string
	Data    []byte
	Mode    uint32
	Version string
	Names   []string
	Exit    int
	ID      string // of a tree or a commit
}

// desk answers the requests for one workspace.
type desk struct {
	repo *Repo
	run  *sandbox.Runner
	c    *Checkout
	ws   *workspace.Workspace
	at   string
}

// files opens the files of the workspace, again if its helper has ended.
func (d *desk) files(ctx context.Context, project *workspace.Workspace) (centurion.Place, error) {
	at, place, err := d.c.Files(ctx)
	if err != nil || at == d.at {
		return place, err
	}
	root, err := os.OpenRoot(at)
	if err == nil {
		d.ws, d.at = project.CopyIn(root, place), at
	}
	return place, err
}

func (d *desk) answer(ctx context.Context, project *workspace.Workspace, q request) answer {
	a, err := d.try(ctx, project, q)
	if err != nil {
		a.Kind, a.Failed = centurion.KindOf(err), err.Error()
	}
	return a
}

func (d *desk) try(ctx context.Context, project *workspace.Workspace, q request) (a answer, err error) {
	if q.Op == "open" {
		d.c, err = d.repo.Take(ctx, Want{Branch: q.Path, Commit: q.Tree})
		return a, err
	}
	place, err := d.files(ctx, project)
	if err != nil {
		return a, err
	}
	switch q.Op {
	case "read":
		f, err := d.ws.Read(q.Path, 1<<20)
		return answer{Data: f.Data, Mode: uint32(f.Mode), Version: f.Version}, err
	case "write":
		return a, d.ws.Replace(q.Path, q.Version, q.Data)
	case "remove":
		return a, d.ws.Remove(q.Path)
	case "walk":
		for e, err := range d.ws.Walk(ctx, workspace.WalkOptions{}) {
			if err != nil {
				return a, err
			}
			a.Names = append(a.Names, fmt.Sprint(e.Path, " ", e.Mode.Type(), e.Mode.Perm()&0o100))
		}
		return a, nil
	case "run":
		res, err := d.run.Run(ctx, centurion.Command{Script: q.Script, Dir: place.Dir, Workspace: place.Workspace})
		return answer{Exit: res.ExitCode, Data: []byte(res.Output)}, err
	case "changed":
		a.Names, err = d.c.Uncommitted(ctx)
		slices.Sort(a.Names)
		return a, err
	case "save":
		a.ID, err = d.repo.Look(ctx, d.c.Where())
		return a, err
	case "commit":
		done, err := d.c.Commit(ctx, "Work")
		return answer{ID: done.ID}, err
	case "lay":
		return a, d.c.Lay(ctx, q.Tree, q.Onto)
	case "close":
		return a, errors.Join(d.ws.Close(), func() error { _, err := d.c.Release(ctx, ""); return err }())
	}
	return a, fmt.Errorf("operation %q is not known", q.Op)
}

// openDesk opens a repository as a host of its own does, which keeps its workspaces at home.
func openDesk(ctx context.Context, dir, home, kind string) (*desk, *workspace.Workspace, error) {
	r := &sandbox.Runner{Grace: 50 * time.Millisecond, Env: []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}}
	if kind == WorkspacesOverlay {
		r.Confine = &sandbox.Confinement{Way: confine.Full, Read: []string{dir}, Hide: []string{home}, Empty: []string{"/dev/shm"}, Dir: home + "-places"}
	}
	repo, err := Open(ctx, Options{Dir: dir, Home: home, Runner: r, Workspaces: kind})
	if err != nil {
		return nil, nil, err
	}
	ws, err := workspace.Open(dir)
	return &desk{repo: repo, run: r}, ws, err
}

func (d *desk) close(home string) error {
	return errors.Join(d.repo.Close(), d.run.Close(), sandbox.RemovePlaces(home))
}

// deskVariable makes a test process serve a workspace on its standard streams: it has the directory, the home and the kind, by line.
const deskVariable = "CENTURION_TEST_DESK"

// servesDesk serves a workspace if this process was started for that.
func servesDesk() bool {
	want := os.Getenv(deskVariable)
	if want == "" {
		return false
	}
	if err := serveDesk(want); err != nil {
		panic(err)
	}
	return true
}

// late is how long an answer is under way, as from another machine.
const late = 20 * time.Millisecond

// serveDesk answers requests until the input ends.
func serveDesk(want string) error {
	ctx, f := context.Background(), strings.Split(want, "\n")
	d, project, err := openDesk(ctx, f[0], f[1], f[2])
	if err != nil {
		return err
	}
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var q request
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return errors.Join(project.Close(), d.close(f[1]))
		} else if err != nil {
			return err
		}
		a := d.answer(ctx, project, q)
		<-time.After(late)
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// direct answers requests in this process.
func direct(t *testing.T, dir, home, kind string) func(request) answer {
	d, project, err := openDesk(t.Context(), dir, home, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(project.Close(), d.close(home)); err != nil {
			t.Error(err)
		}
	})
	return func(q request) answer { return d.answer(t.Context(), project, q) }
}

// piped has them answered by another process.
func piped(t *testing.T, dir, home, kind string) func(request) answer {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), deskVariable+"="+strings.Join([]string{dir, home, kind}, "\n"))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
			t.Errorf("the other process: %v", err)
		}
	})
	out, in := gob.NewEncoder(stdin), gob.NewDecoder(stdout)
	return func(q request) (a answer) {
		if err := errors.Join(out.Encode(q), in.Decode(&a)); err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// edits returns a script of random edits by commands: some fail, as they do for agents.
func edits(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		p, q, text := randomPath(r), randomPath(r), r.IntN(1000)
		b.WriteString([]string{
			fmt.Sprintf("echo %d > '%s'", text, p),
			fmt.Sprintf("echo %d >> '%s'", text, p),
			fmt.Sprintf("mkdir -p '%s'", p),
			fmt.Sprintf("rm -rf '%s'", p),
			fmt.Sprintf("rm -f '%s'", p),
			fmt.Sprintf("mv -T '%s' '%s'", p, q),
			fmt.Sprintf("rm -rf '%s'; mv -T '%s' '%s'", q, p, q),
			fmt.Sprintf("cp -rT '%s' '%s'", p, q),
			fmt.Sprintf("rm -rf '%s'; mkdir '%s' && echo %d > '%s/new'", p, p, text, p),
			fmt.Sprintf("chmod +x '%s'", p),
			fmt.Sprintf("test -f '%s' && chmod -x '%s'", p, p),
			fmt.Sprintf("ln -sfn 'to %d' '%s'", text, p), // never a circle: git cannot say then what is gone
			fmt.Sprintf("ln -sfn . '%s'", p),
			fmt.Sprintf("ln -f '%s' '%s'", q, p),
			fmt.Sprintf("test -f '%s' && truncate -s %d '%s'", p, text%5, p),
		}[r.IntN(15)] + "\n")
	}
	return "exec 2>/dev/null\n" + b.String() + ":\n"
}

// randomPath is one of few names at most three levels deep, so that edits meet.
func randomPath(r *rand.Rand) string {
	names := []string{"a", "b", "c", "Füße und Hände", "x.log"}
	p := make([]string, 1+r.IntN(3))
	for i := range p {
		p[i] = names[r.IntN(len(names))]
	}
	return strings.Join(p, "/")
}

// Issue "Fifty workspaces" 9: 2,000 random edits give the same trees, the same changed files and the same answers in a checkout, in layers,
// and in layers that another process has, whose answers are late.
func TestSameEditsEverywhere(t *testing.T) {
	t.Parallel()
	rounds, commands, calls := 20, 90, 10
	kinds := []string{WorkspacesCheckout, WorkspacesOverlay, "piped"}
	x := newRig(t, map[string]string{"a/a": "1\n", "a/b/c": "2\n", "b": "3\n", "c/a/a": "4\n", "c/b": "5\n", ".gitignore": "*.log\n", "Füße und Hände/a": "6\n"})
	first := x.person("rev-parse", "HEAD")
	var desks []func(request) answer
	for _, kind := range kinds {
		home := filepath.Join(t.TempDir(), kind)
		if kind == "piped" {
			desks = append(desks, piped(t, x.dir, home, WorkspacesOverlay))
		} else {
			desks = append(desks, direct(t, x.dir, home, kind))
		}
	}
	// all asks every workspace, and compares what can be the same.
	all := func(q func(kind string) request) (answers []answer) {
		t.Helper()
		for i, ask := range desks {
			a := ask(q(kinds[i]))
			answers = append(answers, a)
			if one := answers[0]; a.Kind != one.Kind || string(a.Data) != string(one.Data) || a.Mode != one.Mode || a.Version != one.Version || !slices.Equal(a.Names, one.Names) || a.Exit != one.Exit {
				t.Fatalf("%+v: %s answers\n%+v, and %s\n%+v", q(kinds[i]), kinds[0], one, kinds[i], a)
			}
		}
		return answers
	}
	same := func(q request) answer { t.Helper(); return all(func(string) request { return q })[0] }
	all(func(kind string) request { return request{Op: "open", Path: "centurion/m/" + kind, Tree: first} })
	r := rand.New(rand.NewPCG(1, 9))
	commits := func() (tips []string) {
		t.Helper()
		for i, a := range all(func(string) request { return request{Op: "commit"} }) {
			tips = append(tips, a.ID)
			if a.Failed != "" || x.person("rev-parse", a.ID+"^{tree}") != x.person("rev-parse", tips[0]+"^{tree}") {
				t.Fatalf("%s commits %+v", kinds[i], a)
			}
		}
		return tips
	}
	for round := range rounds {
		same(request{Op: "run", Script: edits(r, commands)})
		for range calls {
			p := randomPath(r)
			old := same(request{Op: "read", Path: p})
			switch r.IntN(3) {
			case 0:
				same(request{Op: "remove", Path: p})
			case 1:
				same(request{Op: "write", Path: p, Version: old.Version, Data: fmt.Appendf(old.Data, "%d\n", r.IntN(1000))})
			default:
				same(request{Op: "write", Path: p, Version: workspace.VersionOf([]byte("another")), Data: []byte("never\n")})
			}
		}
		same(request{Op: "walk"})
		same(request{Op: "changed"})
		trees := all(func(string) request { return request{Op: "save"} })
		for i, a := range trees {
			if a.Failed != "" || a.ID != trees[0].ID {
				t.Fatalf("round %d: %s saves %+v, and %s %+v\n%s", round, kinds[0], trees[0], kinds[i], a, x.person("diff", "--stat", trees[0].ID, a.ID))
			}
		}
		if round%2 != 1 {
			continue
		}
		tips := commits()
		if x.person("rev-parse", tips[0]+"^{tree}") != trees[0].ID {
			t.Fatalf("round %d: %s is not what was saved", round, tips[0])
		}
		if round%4 == 3 { // the work of the first commit again, on the newest
			all(func(kind string) request {
				return request{Op: "lay", Tree: x.person("rev-parse", first+"^{tree}"), Onto: tips[slices.Index(kinds, kind)]}
			})
			same(request{Op: "run", Script: "find . -mindepth 1 -type d -empty -not -path './.*' -delete"}) // git knows no empty directories, and keeps some
			same(request{Op: "walk"})
			commits()
		}
	}
	if a := same(request{Op: "close"}); a.Failed != "" {
		t.Error(a.Failed)
	}
}
