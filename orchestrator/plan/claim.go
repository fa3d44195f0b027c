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

// Claim is the place that a new mission has for its plan.
type Claim struct {
	path  string   // of the plan
	owns  bool     // there is one: the person wants it carried out
	lines []string // its verify lines, which nobody has accepted yet
	aside string   // where a plan that no mission owned was put; empty if there was none
}

// Fill records in a new mission what was claimed for it, and returns what the person is told of it.
func (c Claim) Fill(m *centurion.Mission) (note string) {
	m.Todo, m.OwnsTodo, m.Adopted, m.PutAside = c.path, c.owns, c.lines, c.aside
	if c.aside != "" {
		note = PutAsideNote(c.path, c.aside)
	}
	return note
}

// PutAsideNote tells a person that a plan which no mission owned was moved, and how it is carried out.
func PutAsideNote(from, to string) string {
	return fmt.Sprintf("no mission of this project wrote the plan in %s: it is now in %s; to carry it out: centurion run --plan %s GOAL", from, to, to)
}

// ClaimTodo makes room for a new mission's plan: the plan of a mission that has ended is archived, that of one that runs or can be
// resumed is kept under the mission's own name, and one that no mission owns is put aside. Given is the file with the plan that the
// person wants carried out, if any. It is called with h.starting held.
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
	c.owns = true
	doc, _, err := file.Load()
	if centurion.KindOf(err) == centurion.KindUsage { // the mission is blocked on that, and the person mends it
		return c, nil
	}
	c.lines = View{doc}.VerifyLines()
	return c, err
}

// makeWay gives the plan of an earlier mission another name.
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
	case centurion.KindConflict: // it was put there before this process was killed: what is here now is somebody else's
	default:
		return err
	}
	return h.setTodo(ctx, owner.ID, kept)
}

// putAside gives a plan that no mission owns a name that nothing has yet, and returns where it is then. It is empty if there is
// nothing to keep.
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

// setTodo records that a mission's plan is another file from now on.
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

// MeetPlan takes in a plan that the mission has not told of yet: it adopted one, its host died right after it wrote one, or somebody put
// one there while nobody worked on the mission. Nobody has accepted the verify lines of the last kind.
func (m *Plan) MeetPlan(ctx context.Context, rec centurion.Mission) error {
	p, err := m.Read()
	if rec.HadItems || err != nil || p.Doc == nil {
		return nil // what is wrong with it is told when the mission is idle
	}
	if lines := p.VerifyLines(); !rec.OwnsTodo && len(lines) > 0 {
		err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
			now, err := tx.Mission(m.st.ID)
			if err != nil {
				return err
			}
			now.Adopted = lines
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

// Copy copies a plan to a name of a mission's own, and reports whether it has items. One that is not there is not
// copied; one that cannot be read as a plan is copied as it is.
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

// OwnPath returns where the plan of a mission is to be that comes back to life: one that was archived when a newer
// mission began gets a name of its own again.
func OwnPath(ctx context.Context, ws *workspace.Workspace, m centurion.Mission) (string, error) {
	if !strings.HasPrefix(m.Todo, workspace.ArchivePath+"/") {
		return m.Todo, nil
	}
	path, _, err := Copy(ctx, ws, m.Todo, m.ID)
	return path, err
}
