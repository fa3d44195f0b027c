package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"centurion"
	"centurion/store"
	"centurion/workspace/todo"
)

// journalPage is how many rows of the journal are read at once.
const journalPage = 500

// Gather reads what the demonstration has left in its state file and in its project. No process may host the project meanwhile.
func Gather(ctx context.Context, database, project string, told []centurion.Event) (e Evidence, err error) {
	e = Evidence{Told: told, Ticked: map[string]bool{}, Exists: func(file string) bool {
		_, err := os.Stat(filepath.Join(project, filepath.FromSlash(file)))
		return err == nil
	}}
	s, err := store.Open(ctx, database)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m, err := s.LatestMission(ctx)
	if err != nil {
		return e, err
	}
	for after, more := int64(0), true; more; {
		page, err := s.Events(ctx, store.EventQuery{After: after, Limit: journalPage})
		if err != nil {
			return e, err
		}
		e.Journal = append(e.Journal, page...)
		if more = len(page) == journalPage; more {
			after = page[len(page)-1].Seq
		}
	}
	if e.Tasks, err = s.Tasks(ctx, m.ID); err != nil {
		return e, err
	}
	if e.Calls, err = calls(ctx, s, m.ID); err != nil {
		return e, err
	}
	return e, e.read(project, m.Todo)
}

// calls lists the tool calls of a mission.
func calls(ctx context.Context, s *store.Store, mission string) (list []centurion.Part, err error) {
	sessions, err := s.Sessions(ctx, mission)
	if err != nil {
		return nil, err
	}
	for _, session := range sessions {
		messages, err := s.Messages(ctx, session.ID)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool {
					list = append(list, p)
				}
			}
		}
	}
	return list, nil
}

// read reads the project's plan and the lines in changes/.
func (e *Evidence) read(project, plan string) error {
	b, err := os.ReadFile(filepath.Join(project, filepath.FromSlash(plan)))
	if err != nil {
		return &centurion.Error{Op: "read plan", Kind: centurion.KindNotFound, Err: err}
	}
	doc, err := todo.Parse(b)
	if err != nil {
		return err
	}
	for _, it := range doc.Items() {
		e.Ticked[it.ID] = doc.Status(it.ID) == todo.Done
	}
	files, err := filepath.Glob(filepath.Join(project, "changes", "*"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		e.Changes += string(b)
	}
	return err
}
