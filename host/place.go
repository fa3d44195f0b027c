package host

import (
	"bytes"
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
	"centurion/workspace"
)

// Place is where a project and its state are.
type Place struct {
	Dir   string // the project
	State string // its state directory
	Token string // for clients
}

// Owner is the information that a hosting process leaves next to its lock, so that others find it.
type Owner struct {
	PID      int            `json:"pid"`
	Boot     string         `json:"boot,omitempty"` // the boot of the machine in which PID is valid
	Socket   string         `json:"socket"`
	Since    centurion.Time `json:"since"`
	Detached bool           `json:"detached,omitempty"`
}

func (p Place) lockFile() string  { return filepath.Join(p.State, "lock") }
func (p Place) OwnerFile() string { return filepath.Join(p.State, "owner.json") }
func (p Place) Database() string  { return filepath.Join(p.State, "centurion.db") }

// Locate finds the state of the project in dir.
func Locate(dir string, getenv func(string) string) (Place, *workspace.Workspace, error) {
	ws, err := workspace.Open(cmp.Or(dir, "."))
	if err != nil {
		return Place{}, nil, err
	}
	state, err := config.StateDir(getenv)
	if err != nil {
		return Place{}, nil, err
	}
	p := Place{Dir: ws.Dir(), State: config.ProjectDir(state, ws.Dir())}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return Place{}, nil, StateError(state, err)
	}
	p.Token, err = readToken(filepath.Join(state, "token"))
	return p, ws, err
}

// StateError returns an error for an unusable state directory.
func StateError(dir string, err error) error {
	return &centurion.Error{Op: "open state", Kind: centurion.KindConfig, Msg: "the state directory " + dir + " cannot be used", Err: err,
		Hint: "set CENTURION_HOME to a directory that can be written"}
}

var errEmpty = errors.New("the file is empty")

// readToken returns the token in a file, created on first use.
func readToken(file string) (string, error) {
	if b, err := os.ReadFile(file); err == nil {
		if t := strings.TrimSpace(string(b)); t != "" {
			return t, nil
		}
	}
	token := rand.Text()
	mine := file + "." + token[:8]
	if err := os.WriteFile(mine, []byte(token+"\n"), 0o600); err != nil {
		return "", StateError(filepath.Dir(file), err)
	}
	defer os.Remove(mine)
	// A link, unlike a rename, does not replace a file that another process has created meanwhile. Not every file system has links, and a
	// power cut may have left a file without its content.
	err := os.Link(mine, file)
	var b []byte
	if errors.Is(err, fs.ErrExist) {
		b, err = os.ReadFile(file)
		if err == nil && len(bytes.TrimSpace(b)) == 0 {
			err = errEmpty
		}
	}
	if err != nil {
		if err := os.Rename(mine, file); err != nil {
			return "", StateError(filepath.Dir(file), err)
		}
	}
	b, err = os.ReadFile(file)
	return strings.TrimSpace(string(b)), err
}

// heldError says that another process hosts the project.
type heldError struct{ who string }

func (e heldError) Error() string { return e.who }

// IsHeld reports whether an error says that another process hosts the project.
func IsHeld(err error) bool {
	_, held := errors.AsType[heldError](err)
	return held
}

// HeldBy returns the error that names the process hosting a project.
func HeldBy(p Place) error {
	who, pid := "another centurion works in "+p.Dir, "PID"
	if o, err := p.Owner(); err == nil {
		pid = strconv.Itoa(o.PID)
		who += fmt.Sprintf(" (process %d, since %s)", o.PID, o.Since.Local().Format(time.TimeOnly))
	}
	return &centurion.Error{Op: "host project", Kind: centurion.KindConflict, Err: heldError{who},
		Hint: "it does not answer; if it was stopped (Ctrl-Z), wake it with `fg` or `kill -CONT " + pid + "`; if it hangs, end it: `centurion resume` continues its missions"}
}

// Owner returns the process that hosts the project, or did so last.
func (p Place) Owner() (Owner, error) {
	var o Owner
	b, err := os.ReadFile(p.OwnerFile())
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	return o, err
}

// API returns the API to read and control a project: that of the hosting process if there is one, else of the store itself.
func (p Place) API(ctx context.Context) (server.API, func() error, error) {
	c, _, refused := p.Connect(ctx)
	if c != nil {
		return c, func() error { c.Close(); return nil }, nil
	}
	if refused != nil {
		return nil, nil, refused
	}
	if !store.Exists(p.Database()) {
		return nil, nil, &centurion.Error{Kind: centurion.KindNotFound, Err: NoMissionError{p.Dir}, Hint: `start one: centurion run "GOAL"`}
	}
	s, err := store.Open(ctx, p.Database())
	if store.Unwritable(err) { // it can still be read
		if look, e := store.OpenReadOnly(ctx, p.Database()); e == nil {
			s, err = look, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return &server.Local{Store: s}, s.Close, nil
}

// NoMissionError is the error of a project that has no state yet.
type NoMissionError struct{ dir string }

func (e NoMissionError) Error() string { return "no mission has run in " + e.dir + " yet" }
