// Package notes handles the notes that sessions of a project share: context.md and summary.md. It decides who may write how much, and
// which notes a new session gets.
package notes

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/tools"
	"centurion/workspace"
)

// Notebook implements tools.Notebook for one session.
type Notebook struct {
	Workspace *workspace.Workspace
	Plan      *plan.Plan   // its progress determines the size limits
	Agent     string       // the writing agent
	Item      string       // of the session's task, "" if it has none
	Rewrites  bool         // it may replace the texts: it owns the mission, or reviews; other agents only add notes
	Writes    bool         // its agent has the tool
	Current   func() error // refuses writes of a superseded attempt

	shown, told atomic.Int32 // level plus one of the last notice about a long text: one notice for each
}

var _ tools.Notebook = (*Notebook)(nil)

// UpdateContext writes the shared texts, after checking all of them.
func (n *Notebook) UpdateContext(ctx context.Context, call *tools.Call, u tools.ContextUpdate) (string, error) {
	ws, level := n.Workspace, n.Plan.Detail()
	var texts []sharedText
	for _, s := range []sharedText{{ws.Context(), u.Context}, {ws.Summary(), u.Summary}} {
		if s.text != "" {
			texts = append(texts, s)
		}
	}
	for i := range texts {
		if err := n.mayReplace(&texts[i], level); err != nil {
			return "", err
		}
		if i > 0 { // otherwise the first would be written although the next is refused
			now, version, err := texts[i].file.Load()
			if err == nil && now != texts[i].text {
				err = call.Seen.Check(texts[i].file.Path(), version)
			}
			if err != nil {
				return "", err
			}
		}
	}
	var out []string
	for _, s := range texts {
		archived, err := s.file.Replace(ctx, s.text, func(version string) error {
			if err := n.Current(); err != nil {
				return err
			}
			return call.Seen.Check(s.file.Path(), version)
		})
		if err != nil {
			return "", partly(out, err)
		}
		call.Seen.Saw(s.file.Path(), workspace.VersionOf([]byte(s.text)))
		line := room(s.file.Path(), len(s.text), level)
		if archived != "" {
			line += " The old text is in " + archived + "."
		}
		out = append(out, line)
	}
	if u.Note != "" {
		line, err := n.note(ctx, call, u.Note, level)
		if err != nil {
			return "", partly(out, err)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}

type sharedText struct {
	file workspace.SharedFile
	text string
}

// mayReplace checks the role and the size.
func (n *Notebook) mayReplace(s *sharedText, level workspace.Detail) error {
	if !n.Rewrites {
		return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("the %s replaces no shared text, it adds notes", n.Agent),
			Hint: "give note, one line, or say it in your result"}
	}
	s.text += "\n"
	if budget := level.Budget(s.file.Path()); len(s.text) > budget {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: tooLong(s.file.Path(), "has", len(s.text), level),
			Hint: "keep to " + level.Wants() + "; the old text stays in the archive"}
	}
	return nil
}

// note adds one line with its author.
func (n *Notebook) note(ctx context.Context, call *tools.Call, text string, level workspace.Detail) (string, error) {
	f := n.Workspace.Context()
	size := 0
	before, now, err := f.Note(ctx, Signed(text, n.Agent, n.Item), func(whole string) error {
		if err := n.Current(); err != nil {
			return err
		}
		if size = len(whole); size <= level.Budget(f.Path()) {
			return nil
		}
		hint := "replace context.md by a shorter text first"
		if !n.Rewrites {
			hint = "say it in your result: who reads that can make room"
		}
		return &centurion.Error{Kind: centurion.KindUsage, Msg: tooLong(f.Path(), "would have", size, level), Hint: hint}
	})
	if err != nil {
		return "", err
	}
	if call.Seen.Check(f.Path(), before) == nil {
		call.Seen.Saw(f.Path(), now)
	}
	if size == 0 {
		return "That note stands there already.", nil
	}
	return "Noted. " + room(f.Path(), size, level), nil
}

// Signed is a note with its author.
func Signed(note, agent, item string) string {
	if item != "" {
		agent += ", " + item
	}
	return note + " (" + agent + ")"
}

// partly adds the completed writes to an error.
func partly(done []string, err error) error {
	if len(done) == 0 {
		return err
	}
	return &centurion.Error{Kind: centurion.KindOf(err), Err: err, Hint: centurion.HintOf(err), Msg: "only this was written: " + strings.Join(done, " ")}
}

func room(path string, size int, level workspace.Detail) string {
	return fmt.Sprintf("%s has %d of %d bytes (%s: %s).", path, size, level.Budget(path), level, level.Wants())
}

func tooLong(path, has string, size int, level workspace.Detail) string {
	return fmt.Sprintf("%s %s %d bytes and may have %d now (%s: %s)", path, has, size, level.Budget(path), level, level.Wants())
}

// Overlong lists the shared texts that are too long since the level has risen, for sessions that can shorten them.
func (n *Notebook) Overlong() string {
	if !n.Rewrites || !n.Writes {
		return ""
	}
	var sizes [2]int
	ws, long := n.Workspace, false
	paths := [...]string{workspace.ContextPath, workspace.SummaryPath}
	for i, path := range paths {
		if fi, err := ws.Stat(path); err == nil && fi.Mode().IsRegular() {
			sizes[i] = int(fi.Size())
		}
		long = long || sizes[i] > workspace.Finishing.Budget(path)
	}
	if !long { // the usual case, without reading the plan
		return ""
	}
	level := n.Plan.Detail()
	if n.told.Load() == int32(level)+1 {
		return ""
	}
	var lines []string
	for i, path := range paths {
		if sizes[i] > level.Budget(path) {
			lines = append(lines, tooLong(path, "has", sizes[i], level)+": shorten it with update_context.")
		}
	}
	if len(lines) > 0 {
		n.shown.Store(int32(level) + 1)
	}
	return strings.Join(lines, "\n")
}

// Heard records that the model has answered, and so has seen the notice of Overlong.
func (n *Notebook) Heard() { n.told.Store(n.shown.Load()) }
