package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"centurion"
	"centurion/config"
	"centurion/server"
	"centurion/store"
	"centurion/tui"
	"centurion/workspace"
)

// place is where a project and its state are.
type place struct {
	dir   string // the project
	state string // its state directory
	token string // lets clients in
}

// owner is what the process that hosts a project leaves beside its lock, so that others find it.
type owner struct {
	PID      int            `json:"pid"`
	Boot     string         `json:"boot,omitempty"` // of which start of the machine PID is a number
	Socket   string         `json:"socket"`
	Since    centurion.Time `json:"since"`
	Detached bool           `json:"detached,omitempty"`
}

func (p place) lockFile() string  { return filepath.Join(p.state, "lock") }
func (p place) ownerFile() string { return filepath.Join(p.state, "owner.json") }
func (p place) database() string  { return filepath.Join(p.state, "centurion.db") }

// locate finds the state of the project in dir.
func (c *cli) locate(dir string) (place, *workspace.Workspace, error) {
	ws, err := workspace.Open(cmp.Or(dir, "."))
	if err != nil {
		return place{}, nil, err
	}
	state, err := config.StateDir(c.getenv)
	if err != nil {
		return place{}, nil, err
	}
	p := place{dir: ws.Dir(), state: config.ProjectDir(state, ws.Dir())}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return place{}, nil, stateError(state, err)
	}
	p.token, err = readToken(filepath.Join(state, "token"))
	return p, ws, err
}

// confirmDirectory asks before agents work on the home directory or on a whole file system, which nobody means by a project. Without a
// terminal it refuses, unless the person is sure.
func (c *cli) confirmDirectory(ctx context.Context, dir string, f *runFlags, sure bool) error {
	what := ""
	switch home, err := filepath.EvalSymlinks(c.getenv("HOME")); {
	case filepath.Dir(dir) == dir:
		what = "the root of a file system"
	case err == nil && dir == home:
		what = "your home directory"
	}
	if what == "" || sure {
		return nil
	}
	refused := &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: dir + " is " + what + ": agents would read and change everything in it",
		Hint: "go to a project directory, or name one with --dir; --yes starts here all the same"}
	if !tui.CanLive(c.in, c.out, c.env) || f.format == "json" {
		return refused
	}
	fmt.Fprintf(c.out, "%s is %s. Agents would read and change everything in it.\n", tui.Clean(dir), what)
	key, err := tui.Choose(ctx, tui.Choice{Text: "start here? (y/N)", Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
	if err == nil && key != "y" {
		return refused
	}
	return err
}

func stateError(dir string, err error) error {
	return &centurion.Error{Op: "open state", Kind: centurion.KindConfig, Msg: "the state directory " + dir + " cannot be used", Err: err,
		Hint: "set CENTURION_HOME to a directory that can be written"}
}

// readToken returns the token in a file, which is made at the first use.
func readToken(file string) (string, error) {
	if b, err := os.ReadFile(file); err == nil {
		if t := strings.TrimSpace(string(b)); t != "" {
			return t, nil
		}
	}
	token := rand.Text()
	mine := file + "." + token[:8]
	if err := os.WriteFile(mine, []byte(token+"\n"), 0o600); err != nil {
		return "", stateError(filepath.Dir(file), err)
	}
	defer os.Remove(mine)
	// A link, unlike a rename, does not replace what somebody else has made meanwhile. Not every file system has links.
	if err := os.Link(mine, file); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(mine, file); err != nil {
			return "", stateError(filepath.Dir(file), err)
		}
	}
	b, err := os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

// errHeld is why a project cannot be hosted here: another process does.
type errHeld struct{ who string }

func (e errHeld) Error() string { return e.who }

func isHeld(err error) bool {
	_, held := errors.AsType[errHeld](err)
	return held
}

// heldBy says who hosts a project.
func heldBy(p place) error {
	who, pid := "another centurion works in "+p.dir, "PID"
	if o, err := readOwner(p); err == nil {
		pid = strconv.Itoa(o.PID)
		who += fmt.Sprintf(" (process %d, since %s)", o.PID, o.Since.Local().Format(time.TimeOnly))
	}
	return &centurion.Error{Op: "host project", Kind: centurion.KindConflict, Err: errHeld{who},
		Hint: "it does not answer; if it was stopped (Ctrl-Z), wake it with `fg` or `kill -CONT " + pid + "`; if it hangs, end it: what it was at goes on with `centurion resume`"}
}

func readOwner(p place) (owner, error) {
	var o owner
	b, err := os.ReadFile(p.ownerFile())
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	return o, err
}

// api returns what reads and drives a project from outside: the hosting process if there is one, else the store itself.
func (p place) api(ctx context.Context) (server.API, func() error, error) {
	if c, _ := p.connect(ctx); c != nil {
		return c, func() error { c.Close(); return nil }, nil
	}
	if !store.Exists(p.database()) {
		return nil, nil, &centurion.Error{Kind: centurion.KindNotFound, Err: errNoMission{p.dir}, Hint: `start one: centurion run "GOAL"`}
	}
	s, err := store.Open(ctx, p.database())
	if store.Unwritable(err) { // what is there can be looked at all the same
		if look, e := store.OpenReadOnly(ctx, p.database()); e == nil {
			s, err = look, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return &server.Local{Store: s}, s.Close, nil
}

// errNoMission is the error of a project that has no state yet.
type errNoMission struct{ dir string }

func (e errNoMission) Error() string { return "no mission has run in " + e.dir + " yet" }
