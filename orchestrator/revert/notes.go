package revert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/state"
	"centurion/workspace"
)

// jottings are the texts that sessions wrote into the shared files.
type jottings struct {
	notes []string            // as passed to workspace.SharedFile.Note
	texts map[string][]string // whole texts, by path
}

// take adds the texts of the update_context calls in messages.
func (j *jottings) take(messages []centurion.Message, agent, item string) {
	for _, msg := range messages {
		for _, p := range msg.Parts {
			var in struct{ Context, Summary, Note string }
			if p.Tool != "update_context" || p.State == nil || p.State.Status != centurion.ToolCompleted || json.Unmarshal(p.State.Input, &in) != nil {
				continue
			}
			if in.Note != "" {
				j.notes = append(j.notes, notes.Signed(in.Note, agent, item))
			}
			for path, text := range map[string]string{workspace.ContextPath: in.Context, workspace.SummaryPath: in.Summary} {
				if text != "" {
					j.texts[path] = append(j.texts[path], strings.TrimSpace(text))
				}
			}
		}
	}
}

// wrote reports whether a text of the file is one of these.
func (j jottings) wrote(path, text string) bool {
	_, text = workspace.CutReverted(text)
	return slices.ContainsFunc(j.texts[path], func(t string) bool { return strings.HasPrefix(text, t) }) // notes may follow it
}

// jotted collects the texts of those sessions of a mission that pick accepts.
func (d *Desk) jotted(ctx context.Context, mission string, pick func(centurion.Session) bool) (jottings, error) {
	j := jottings{texts: map[string][]string{}}
	sessions, err := d.store.Sessions(ctx, mission)
	if err != nil {
		return j, err
	}
	for _, s := range sessions {
		if !pick(s) {
			continue
		}
		item, err := d.itemOf(ctx, s)
		if err != nil {
			return j, err
		}
		messages, err := d.store.Messages(ctx, s.ID)
		if err != nil {
			return j, err
		}
		j.take(messages, s.Agent, item)
	}
	return j, nil
}

// itemOf is a session's item, "" for none.
func (d *Desk) itemOf(ctx context.Context, s centurion.Session) (string, error) {
	if s.Metadata.Task == "" {
		return "", nil
	}
	t, err := d.store.Task(ctx, s.Metadata.Task)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return "", nil
	}
	return t.Item, err
}

// markNotes updates the shared files after recorded undos and redos of a mission: it marks the notes of the work, and a context.md or
// summary.md that came from the mission.
func (d *Desk) markNotes(ctx context.Context, m centurion.Mission) error {
	all, err := d.jotted(ctx, m.ID, func(centurion.Session) bool { return true })
	if err != nil {
		return err
	}
	for _, r := range m.Reverted {
		if r.Marked && !r.Back {
			continue
		}
		of := all
		if r.Task != "" {
			of, err = d.jotted(ctx, m.ID, func(s centurion.Session) bool {
				return s.Metadata.Task != "" && (s.Metadata.Task == r.Task || slices.Contains(r.Reviews, s.Metadata.Task))
			})
			if err != nil {
				return err
			}
			of.texts[workspace.SummaryPath] = all.texts[workspace.SummaryPath] // it describes all of the mission's work
		}
		if err := d.mark(ctx, of, m.ID, "the user reverted "+r.What+", so what is said of it below no longer holds.", !r.Back); err != nil {
			return err
		}
	}
	return nil
}

// mark marks texts of sessions in the shared files as reverted, or with on false removes the marks. It includes the host's summary of
// mission, unless mission is empty.
func (d *Desk) mark(ctx context.Context, of jottings, mission, why string, on bool) error {
	var errs []error
	for _, f := range []workspace.SharedFile{d.ws.Context(), d.ws.Summary()} {
		errs = append(errs, f.Mark(ctx, func(text string) string {
			_, plain := workspace.CutReverted(text)
			if of.wrote(f.Path(), text) || mission != "" && strings.HasPrefix(plain, notes.HostSummary+mission) {
				text = workspace.RevertText(text, why, on)
			}
			return workspace.RevertNotes(text, of.notes, on)
		}))
	}
	return errors.Join(errs...)
}

// MarkRewound marks the texts that a conversation wrote in messages no longer on its line, and unmarks those of its line.
func (d *Desk) MarkRewound(ctx context.Context, session string) error {
	t, err := d.store.Tree(ctx, session)
	if err != nil {
		return err
	}
	item, err := d.itemOf(ctx, t.Session)
	if err != nil {
		return err
	}
	line := t.Line(t.Leaf)
	on, off := jottings{texts: map[string][]string{}}, jottings{texts: map[string][]string{}}
	on.take(line, t.Session.Agent, item)
	off.take(slices.DeleteFunc(slices.Clone(t.Messages), func(m centurion.Message) bool {
		return slices.ContainsFunc(line, func(l centurion.Message) bool { return l.ID == m.ID })
	}), t.Session.Agent, item)
	why := fmt.Sprintf("the conversation of %s was rewound to before this was written.", cmp.Or(t.Session.Metadata.Address, session))
	m, err := d.store.Mission(ctx, t.Session.Metadata.Mission)
	if err != nil {
		return err
	}
	ended := "" // the host's own summary describes an end that the rewind has undone
	if m.Session == session && m.Status == centurion.MissionPaused && m.Reason == state.Rewound {
		ended = m.ID
	}
	return errors.Join(d.mark(ctx, off, ended, why, true), d.mark(ctx, on, "", why, false))
}
