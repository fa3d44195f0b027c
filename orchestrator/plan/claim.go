package plan

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Claim is the place for a new mission's plan.
type Claim struct {
	path  string   // of the plan
	owns  bool     // there is a plan that the person wants carried out
	lines []string // its verify lines
	known bool     // a person has trusted it
	aside string   // where an ownerless plan was moved to; empty if there was none
}

// Fill records the claim in a new mission, and returns a note for the person.
func (c Claim) Fill(m *centurion.Mission) (note string) {
	m.Todo, m.OwnsTodo, m.PutAside = c.path, c.owns, c.aside
	if c.known {
		m.Approved = c.lines
	} else {
		m.Adopted = c.lines
	}
	if c.aside != "" {
		note = PutAsideNote(c.path, c.aside)
	}
	return note
}

// PutAsideNote tells a person that an ownerless plan was moved, and how to carry it out.
func PutAsideNote(from, to string) string {
	return fmt.Sprintf("no mission of this project wrote the plan in %s: it is now in %s; to carry it out: centurion run --plan %s GOAL", from, to, to)
}

// ClaimTodo makes room for a new mission's plan: it archives the plan of an ended mission, renames that of a running or resumable one
// after its mission, and moves an ownerless one aside. given is the file with the plan that the person wants carried out, if any. It is
// called with h.starting held.
func (h *Desk) ClaimTodo(ctx context.Context, given string) (Claim, error) {
	file := h.ws.Todo()
	c := Claim{path: file.Path()}
	var text []byte
	if given != "" {
		given = path.Clean(filepath.ToSlash(given))
		b, _, err := h.ws.ReadFile(given, 0)
		if err != nil {
			return c, &centurion.Error{Op: "read plan", Kind: centurion.KindUsage, Err: err, Hint: "name a file of the project: --plan " + c.path}
		}
		text = b
	}
	owner, err := h.todoOwner(ctx, c.path)
	if err != nil {
		return c, err
	}
	inPlace := owner.ID == "" && given == c.path
	if given != "" && !inPlace {
		if _, err := todo.Parse(text); err != nil {
			return c, &centurion.Error{Op: given, Kind: centurion.KindOf(err), Hint: centurion.HintOf(err), Err: err}
		}
	}
	if owner.ID != "" {
		err = h.makeWay(ctx, owner)
	}
	if err == nil && !inPlace {
		c.aside, err = h.putAside(file)
	}
	if err != nil || given == "" {
		return c, err
	}
	if !inPlace {
		if _, err := file.Replace(ctx, string(text), nil); err != nil {
			return c, err
		}
	}
	c.owns, c.known = true, h.trusted(text)
	doc, _, err := file.Load()
	if centurion.KindOf(err) == centurion.KindUsage { // the mission is blocked on that until the person fixes it
		return c, nil
	}
	c.lines = View{doc}.VerifyLines()
	return c, err
}

// makeWay renames the plan of an earlier mission.
func (h *Desk) makeWay(ctx context.Context, owner centurion.Mission) error {
	file, name := h.ws.Todo(), "todo-"+owner.ID+".md"
	if own := h.planOf(owner.ID); own != nil {
		return own.move(h.ws, name, func(path string) error { return h.setTodo(ctx, owner.ID, path) })
	}
	put := file.Rename
	switch owner.Status {
	case centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled:
		put = file.Archive
	}
	kept, err := put(name)
	switch centurion.KindOf(err) {
	case "", centurion.KindNotFound: // it may never have been written
	case centurion.KindConflict: // it was moved before this process was killed; the current file belongs to others
	default:
		return err
	}
	return h.setTodo(ctx, owner.ID, kept)
}

// putAside moves an ownerless plan to a free name and returns its new path, "" if there is nothing to keep.
func (h *Desk) putAside(file *workspace.TodoFile) (string, error) {
	b, _, err := h.ws.ReadFile(file.Path(), 0)
	if centurion.KindOf(err) == centurion.KindNotFound || err == nil && len(bytes.TrimSpace(b)) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	stem := "todo-" + centurion.Now().UTC().Format("20060102-150405")
	for n, name := 2, stem+".md"; ; n, name = n+1, fmt.Sprintf("%s-%d.md", stem, n) {
		aside, err := file.Rename(name)
		if centurion.KindOf(err) != centurion.KindConflict {
			return aside, err
		}
	}
}

// todoOwner returns the newest mission whose plan is the file at path, or the zero mission if there is none.
func (h *Desk) todoOwner(ctx context.Context, path string) (centurion.Mission, error) {
	all, err := h.store.Missions(ctx)
	i := slices.IndexFunc(all, func(m centurion.Mission) bool { return m.Todo == path })
	if err != nil || i < 0 || !all[i].HasPlan() {
		return centurion.Mission{}, err
	}
	return all[i], nil
}

// setTodo records the new path of a mission's plan.
func (h *Desk) setTodo(ctx context.Context, mission, path string) error {
	return h.store.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Mission(mission)
		if err != nil {
			return err
		}
		m.Todo = path
		return tx.PutMission(&m)
	})
}

// MeetPlan takes in a plan that the mission has not announced yet: it adopted one, its host died right after writing one, or someone
// added one while the mission was not running. The verify lines of the last kind are not accepted.
func (m *Plan) MeetPlan(ctx context.Context, rec centurion.Mission) error {
	p, err := m.Read()
	if rec.HadItems || err != nil || p.Doc == nil {
		return nil // errors of the plan are reported when the mission is idle
	}
	if lines := p.VerifyLines(); !rec.OwnsTodo && len(lines) > 0 {
		err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
			now, err := tx.Mission(m.st.ID)
			if err != nil {
				return err
			}
			if m.trusted(p.Doc.Bytes()) {
				now.Approved = lines
			} else {
				now.Adopted = lines
			}
			return tx.PutMission(&now)
		})
		if err != nil {
			return err
		}
	}
	return m.TellTodo(ctx)
}

// ownTodo records that the plan's file belongs to the mission.
func (m *Plan) ownTodo(ctx context.Context) error {
	if m.ownsTodo.Load() {
		return nil
	}
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil || rec.OwnsTodo {
			return err
		}
		rec.OwnsTodo = true
		return tx.PutMission(&rec)
	})
	if err == nil {
		m.ownsTodo.Store(true)
	}
	return err
}

// Copy copies a plan to the mission's own name, and reports whether it has items. A missing plan is not copied; an unreadable one is
// copied unchanged.
func Copy(ctx context.Context, ws *workspace.Workspace, from, mission string) (path string, items bool, err error) {
	path = workspace.Directory + "/todo-" + mission + ".md"
	if from == "" {
		return path, false, nil
	}
	b, _, err := ws.ReadFile(from, 0)
	switch {
	case centurion.KindOf(err) == centurion.KindNotFound:
		return path, false, nil
	case err != nil:
		return path, false, err
	}
	doc, err := ws.TodoAt(path).Replace(ctx, string(b), nil)
	if centurion.KindOf(err) == centurion.KindUsage {
		return path, true, ws.WriteFile(path, b)
	}
	return path, doc != nil && len(doc.Items()) > 0, err
}

// OwnPath returns the path for the plan of a mission that is revived: an archived plan gets a name of its own again.
func OwnPath(ctx context.Context, ws *workspace.Workspace, m centurion.Mission) (string, error) {
	if !strings.HasPrefix(m.Todo, workspace.ArchivePath+"/") {
		return m.Todo, nil
	}
	path, _, err := Copy(ctx, ws, m.Todo, m.ID)
	return path, err
}
