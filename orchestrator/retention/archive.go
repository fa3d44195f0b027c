package retention

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/store"
	"centurion/workspace"
)

// Dir is the directory of archived task records, one file per day, relative to the project.
const Dir = workspace.Directory + "/archive/tasks"

// archived is a line of the archive: a task as the API returns it, with its whole prompt and result, and related data.
type archived struct {
	ID       string               `json:"id"`
	Mission  string               `json:"mission"`
	Parent   string               `json:"parent"` // the session that delegated it
	Agent    string               `json:"agent"`
	Title    string               `json:"title"`
	Status   centurion.TaskStatus `json:"status"`
	Reason   string               `json:"reason,omitempty"`
	Attempt  int                  `json:"attempt"`
	Returns  int                  `json:"returns,omitempty"`
	Session  string               `json:"session"`
	Item     string               `json:"item,omitempty"`
	Number   int                  `json:"number,omitempty"` // its short name, as in w7
	Race     *centurion.Race      `json:"race,omitempty"`
	Prompt   string               `json:"prompt,omitempty"`
	Result   string               `json:"result,omitempty"`
	Error    *centurion.TaskError `json:"error,omitempty"`
	Files    []string             `json:"files,omitempty"`
	Receipts []string             `json:"receipts,omitempty"` // ids
	Created  centurion.Time       `json:"created"`
	Started  centurion.Time       `json:"started,omitzero"`
	Ended    centurion.Time       `json:"ended,omitzero"`
	Tokens   centurion.Tokens     `json:"tokens"`
	Cost     float64              `json:"cost"`
	Unpriced bool                 `json:"unpriced,omitempty"`
}

func archiveRecord(t centurion.Task, receipts []centurion.Receipt) archived {
	a := archived{ID: t.ID, Mission: t.Mission, Parent: t.Parent, Agent: t.Agent, Title: t.Title, Status: t.Status, Reason: t.Reason,
		Attempt: t.Attempt, Returns: t.Returns, Session: t.Session, Item: t.Item, Number: t.Number, Race: t.Race, Prompt: t.Prompt, Result: t.Result, Error: t.Error,
		Files: t.Files, Created: t.Created, Started: t.Started, Ended: t.Ended,
		Tokens: t.Usage.Tokens, Cost: t.Usage.USD, Unpriced: t.Usage.Unpriced}
	for _, r := range receipts {
		a.Receipts = append(a.Receipts, r.ID)
	}
	return a
}

// ArchivedReason ends the reason of a task that is only in the archive.
const ArchivedReason = "from the archive"

// task returns the record as a task whose reason names the archive.
func (a archived) task() centurion.Task {
	reason := ArchivedReason
	if a.Reason != "" {
		reason = a.Reason + ", " + reason
	}
	return centurion.Task{ID: a.ID, Mission: a.Mission, Parent: a.Parent, Agent: a.Agent, Title: a.Title, Status: a.Status, Reason: reason,
		Attempt: a.Attempt, Returns: a.Returns, Session: a.Session, Item: a.Item, Number: a.Number, Race: a.Race, Prompt: a.Prompt, Result: a.Result, Error: a.Error,
		Files: a.Files, Created: a.Created, Started: a.Started, Ended: a.Ended,
		Usage: centurion.Usage{Tokens: a.Tokens, USD: a.Cost, Unpriced: a.Unpriced}}
}

// Line returns the record of a task as a line of the archive, and its file: that of the day, in UTC, on which the task ended. Repeated
// calls return the same.
func Line(t centurion.Task, receipts []centurion.Receipt) (file string, line []byte, err error) {
	if line, err = json.Marshal(archiveRecord(t, receipts)); err != nil {
		err = &centurion.Error{Op: "archive task " + t.ID, Kind: centurion.KindInternal, Err: err}
	}
	return Dir + "/tasks-" + t.Ended.UTC().Format(time.DateOnly) + ".jsonl", line, err
}

// FromArchive finds a task in the archive of a project by its id or a unique prefix of it, with or without "task_". The error has
// KindNotFound if there is none, KindUsage if there are several; other errors come from reading files.
func FromArchive(ws *workspace.Workspace, id string) (centurion.Task, error) {
	full := id
	if !strings.HasPrefix(full, string(centurion.PrefixTask)+"_") {
		full = string(centurion.PrefixTask) + "_" + id
	}
	found, err := searchArchive(ws, id, func(a archived) bool { return strings.HasPrefix(a.ID, full) })
	i := slices.IndexFunc(found, func(a archived) bool { return a.ID == full })
	switch {
	case err != nil:
		return centurion.Task{}, err
	case i >= 0:
		return found[i].task(), nil
	case len(found) == 1:
		return found[0].task(), nil
	case len(found) > 1:
		return centurion.Task{}, &centurion.Error{Op: "find task", Kind: centurion.KindUsage,
			Msg: "several tasks of the archive begin with " + id, Hint: "type more of the id"}
	}
	return centurion.Task{}, &centurion.Error{Op: "find task", Kind: centurion.KindNotFound, Msg: "there is no task " + id + " in the archive",
		Hint: "see: centurion tasks"}
}

// Removed finds a task of a mission that was removed from the store, or returns the zero task.
func Removed(ws *workspace.Workspace, mission string, fits func(centurion.Task) bool) (centurion.Task, error) {
	found, err := searchArchive(ws, mission, func(a archived) bool { return a.Mission == mission && fits(a.task()) })
	if err != nil || len(found) == 0 {
		return centurion.Task{}, err
	}
	return found[0].task(), nil
}

// searchArchive returns the matching records, each once, those of the newest file first. Lines without word are skipped.
func searchArchive(ws *workspace.Workspace, word string, fits func(archived) bool) ([]archived, error) {
	names, err := ws.Names(Dir, ".jsonl")
	if err != nil || word == "" {
		return nil, err
	}
	var found []archived
	for _, name := range slices.Backward(names) {
		for line, err := range ws.Lines(Dir + "/" + name) {
			if err != nil {
				return nil, err
			}
			var a archived
			if !bytes.Contains(line, []byte(word)) || json.Unmarshal(line, &a) != nil || !fits(a) {
				continue // also a line cut off by a crash
			}
			if !slices.ContainsFunc(found, func(b archived) bool { return b.ID == a.ID }) {
				found = append(found, a)
			}
		}
	}
	return found, nil
}

// healArchive removes repeated lines and a cut-off last line from a file of the archive, and returns the ids of its tasks. Other lines
// are foreign and stay.
func healArchive(ws *workspace.Workspace, file string) (map[string]bool, error) {
	has, whole := map[string]bool{}, true
	var text, last []byte
	for line, err := range ws.Lines(file) {
		if err != nil {
			return nil, err
		}
		last = bytes.Clone(line)
		var a archived
		if json.Unmarshal(line, &a) == nil && a.ID != "" {
			if has[a.ID] {
				whole = false
				continue
			}
			has[a.ID] = true
		}
		text = append(append(text, line...), '\n')
	}
	if len(last) > 0 && !json.Valid(last) {
		text, whole = text[:len(text)-len(last)-1], false
	}
	if whole {
		return has, nil
	}
	return has, ws.WriteFile(file, text)
}

// Archive writes the records of ended tasks, each exactly once, and marks them as archived. Tasks marked as being archived are looked
// up in the file first, since a crash may have come after the line.
func (k *Keeper) Archive(ctx context.Context, tasks []string) (n int, err error) {
	for part := range slices.Chunk(tasks, cleanBatch) {
		did, err := k.archiveSome(ctx, part)
		if n += did; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (k *Keeper) archiveSome(ctx context.Context, tasks []string) (n int, err error) {
	var fresh, again []centurion.Task
	receipts := map[string][]centurion.Receipt{}
	if err := k.Store.Update(ctx, func(tx *store.Tx) error {
		fresh, again = nil, nil
		clear(receipts)
		for _, id := range tasks {
			t, err := tx.Task(id)
			if centurion.KindOf(err) == centurion.KindNotFound {
				continue // it was removed meanwhile
			}
			if err != nil {
				return err
			}
			if !t.Status.Ended() || !t.Archived.IsZero() {
				continue
			}
			if receipts[id], err = tx.Receipts(t.Mission, id); err != nil {
				return err
			}
			if t.Archiving {
				again = append(again, t)
				continue
			}
			t.Archiving = true
			if err := tx.PutTask(&t); err != nil {
				return err
			}
			fresh = append(fresh, t)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	lines, err := k.linesOf(fresh, again, receipts)
	if err != nil {
		return 0, err
	}
	for file, l := range lines {
		if err := k.Workspace.AppendJSON(file, l...); err != nil {
			return 0, err
		}
	}
	err = k.Store.Update(ctx, func(tx *store.Tx) error {
		for _, done := range slices.Concat(fresh, again) {
			t, err := tx.Task(done.ID)
			if err != nil {
				return err
			}
			t.Archived, t.Archiving = centurion.Now(), false
			if err := tx.PutTask(&t); err != nil {
				return err
			}
		}
		return nil
	})
	return len(fresh) + len(again), err
}

// linesOf returns the lines to add, by file of the archive.
func (k *Keeper) linesOf(fresh, again []centurion.Task, receipts map[string][]centurion.Receipt) (map[string][][]byte, error) {
	lines, known := map[string][][]byte{}, map[string]map[string]bool{}
	for i, t := range slices.Concat(again, fresh) {
		file, line, err := Line(t, receipts[t.ID])
		if err != nil {
			return nil, err
		}
		if i < len(again) {
			if known[file] == nil {
				if known[file], err = healArchive(k.Workspace, file); err != nil {
					return nil, err
				}
			}
			if known[file][t.ID] {
				continue
			}
		}
		lines[file] = append(lines[file], line)
	}
	return lines, nil
}
