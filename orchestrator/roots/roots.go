// Package roots keeps the conversations that a person begins: it opens one before its first message, names, archives and removes it, and
// lists all of them. A mission writes its own sessions; what a person makes of its root session stands in the mission's record.
package roots

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/session"
	"centurion/store"
	"centurion/workspace"
)

// Untitled begins the title of a conversation that has no message.
const Untitled = "New session - "

// untitled is the title of one that is opened now, by which a list tells it from others.
func untitled() string { return Untitled + time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// maxTitle limits a title, in characters.
const maxTitle = 200

// Desk keeps the conversations of one project.
type Desk struct {
	Store     *store.Store
	Workspace *workspace.Workspace // the project
	Version   string               // of the program
	Cast      func(profile string) *agents.Cast
	// Model finds a model by "provider/model", "" for the default.
	Model func(ref string) (centurion.ModelRef, error)
	// Look is called before a conversation is opened or changed: another configuration may be in force then.
	Look func(ctx context.Context)
	// Cancel ends a mission that works.
	Cancel func(ctx context.Context, mission, reason string) error
	// Abort ends a person's command in a session, if there is one.
	Abort func(ctx context.Context, session string) error
}

// Opening is what a conversation will begin with.
type Opening struct {
	Title   string `json:"title,omitempty"`
	Agent   string `json:"agent,omitempty"`   // "" is the profile's own
	Model   string `json:"model,omitempty"`   // provider/model; "" is the agent's own
	Profile string `json:"profile,omitempty"` // mission or assistant; "" is mission
	Below   string `json:"below,omitempty"`   // the session that it is to stand below; "" is none
}

// Change is what is to be different. A nil field stays.
type Change struct {
	Title    *string `json:"title,omitempty"`
	Agent    *string `json:"agent,omitempty"`
	Model    *string `json:"model,omitempty"`
	Profile  *string `json:"profile,omitempty"`
	Archived *int64  `json:"archived,omitempty"` // Unix milliseconds; 0 for one that is not archived any more
}

// Query selects conversations. Those that were removed are in no list.
type Query struct {
	Search string // in the title, in any case
	Since  int64  // last changed at this time or later, in Unix milliseconds
	Before int64  // last changed before this time; 0 for any
	Limit  int    // 0 means no limit
	All    bool   // also those that stand below others
	Tasks  bool   // after them, the sessions of their missions' tasks
}

// Open makes a conversation without a message. The error has centurion.KindUsage for an unknown profile, agent or model,
// and centurion.KindNotFound for an unknown session above.
func (d *Desk) Open(ctx context.Context, o Opening) (centurion.Session, error) {
	d.Look(ctx)
	rec := session.New(centurion.Session{Title: cmp.Or(clean(o.Title), untitled()), Directory: d.Workspace.Dir(), ProjectID: "global", Slug: "0", Version: d.Version,
		Metadata: centurion.SessionMeta{Address: "0/"}}, centurion.Now())
	if err := d.begins(&rec, o); err != nil {
		return rec, err
	}
	err := d.Store.Update(ctx, func(tx *store.Tx) error {
		if o.Below != "" {
			if _, err := tx.Session(o.Below); err != nil {
				return err
			}
			rec.Metadata.Below = o.Below
		}
		return d.put(tx, &rec, centurion.EventSessionOpened)
	})
	return rec, err
}

// begins sets what a conversation will begin with, if that exists.
func (d *Desk) begins(rec *centurion.Session, o Opening) error {
	if known := []string{"", agents.ProfileMission, agents.ProfileAssistant}; !slices.Contains(known, o.Profile) {
		return &centurion.Error{Op: "open session", Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no profile %q; the profiles are mission and assistant", o.Profile)}
	}
	rec.Metadata.Profile, rec.Agent, rec.Model = o.Profile, "", nil
	cast := d.Cast(o.Profile)
	agent, err := cast.Find(cmp.Or(o.Agent, cast.Owner()))
	if err != nil {
		return err
	}
	rec.Agent = agent.Name
	ref, err := d.Model(cmp.Or(o.Model, agent.Model))
	if err != nil {
		return err
	}
	rec.Model = &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider}
	return nil
}

// Change changes a conversation. The error has centurion.KindConflict for one of a task, which is its mission's, and for another agent or
// model after the first message.
func (d *Desk) Change(ctx context.Context, id string, c Change) (centurion.Session, error) {
	d.Look(ctx)
	var rec centurion.Session
	err := d.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = tx.Session(id); err != nil {
			return err
		}
		if rec.Metadata.Mission == "" {
			return d.changeOpened(tx, &rec, c)
		}
		if err := IsRoot(rec); err != nil {
			return err
		}
		if c.Agent != nil || c.Model != nil || c.Profile != nil {
			return &centurion.Error{Op: "change session", Kind: centurion.KindConflict, Msg: "its profile is fixed with its first message, and its agent and model change with a message only",
				Hint: "name them in a message, open another session, or copy this one: centurion fork " + id}
		}
		m, err := tx.Mission(rec.Metadata.Mission)
		if err != nil {
			return err
		}
		if c.Title != nil {
			m.Title = clean(*c.Title)
		}
		if c.Archived != nil {
			m.Archived = centurion.Time{}
			if at := *c.Archived; at > 0 {
				m.Archived = centurion.Time{Time: time.UnixMilli(at)}
			}
		}
		rec = Shown(rec, m)
		return d.told(tx, &m, rec, centurion.EventSessionRenamed)
	})
	return rec, err
}

func (d *Desk) changeOpened(tx *store.Tx, rec *centurion.Session, c Change) error {
	o := Opening{Agent: rec.Agent, Profile: rec.Metadata.Profile}
	if rec.Model != nil {
		o.Model = rec.Model.Provider + "/" + rec.Model.ID
	}
	if c.Profile != nil && *c.Profile != o.Profile {
		o.Profile, o.Agent, o.Model = *c.Profile, "", ""
	}
	if c.Agent != nil {
		o.Agent = *c.Agent
	}
	if c.Model != nil {
		o.Model = *c.Model
	}
	if err := d.begins(rec, o); err != nil {
		return err
	}
	if c.Title != nil {
		rec.Title = cmp.Or(clean(*c.Title), untitled())
	}
	if c.Archived != nil {
		rec.Time.Archived = max(*c.Archived, 0)
	}
	return d.put(tx, rec, centurion.EventSessionRenamed)
}

// Remove ends the work of a conversation and of those below it, and takes them out of all lists. Their records stay.
func (d *Desk) Remove(ctx context.Context, id string) error {
	rec, err := d.Store.Session(ctx, id)
	if err != nil {
		return err
	}
	if err := IsRoot(rec); err != nil {
		return err
	}
	all, err := d.List(ctx, Query{All: true})
	if err != nil {
		return err
	}
	return d.remove(ctx, rec, all)
}

// remove removes a conversation after those of all that stand below it.
func (d *Desk) remove(ctx context.Context, rec centurion.Session, all []centurion.Session) error {
	id, own := rec.ID, []centurion.Session{rec}
	if rec.Metadata.Mission != "" {
		var err error
		if own, err = d.Store.Sessions(ctx, rec.Metadata.Mission); err != nil {
			return err
		}
	}
	for _, below := range all {
		if slices.ContainsFunc(own, func(s centurion.Session) bool { return s.ID == below.Metadata.Below }) {
			if err := d.remove(ctx, below, all); err != nil {
				return err
			}
		}
	}
	if err := d.Abort(ctx, id); err != nil {
		return err
	}
	if mission := rec.Metadata.Mission; mission != "" {
		m, err := d.Store.Mission(ctx, mission)
		if err == nil && !m.Status.Ended() {
			err = d.Cancel(ctx, mission, "its session was removed")
		}
		if err != nil {
			return err
		}
	}
	return d.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Session(id)
		if err != nil {
			return err
		}
		if rec.Metadata.Mission == "" {
			rec.Metadata.Removed = centurion.Now()
			return d.put(tx, &rec, centurion.EventSessionRemoved)
		}
		m, err := tx.Mission(rec.Metadata.Mission)
		if err != nil {
			return err
		}
		m.Removed = centurion.Now()
		return d.told(tx, &m, Shown(rec, m), centurion.EventSessionRemoved)
	})
}

// List lists conversations, the last changed first, in a few reads however many there are.
func (d *Desk) List(ctx context.Context, q Query) ([]centurion.Session, error) {
	missions, err := d.Store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := d.Store.Sessions(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []found
	for _, rec := range opened {
		if rec.Metadata.Removed.IsZero() && q.takes(rec.Title, rec.Metadata.Below, rec.Time.Updated) {
			all = append(all, found{session: rec, updated: rec.Time.Updated})
		}
	}
	for _, m := range missions {
		if m.Session != "" && m.Removed.IsZero() && q.takes(cmp.Or(m.Title, m.Goal), m.Below, m.Updated.Millis()) {
			all = append(all, found{centurion.Session{ID: m.Session}, m, m.Updated.Millis()})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.updated, a.updated) })
	if q.Limit > 0 {
		all = all[:min(len(all), q.Limit)]
	}
	return d.filled(ctx, all, q.Tasks)
}

// found is a conversation of a list.
type found struct {
	session centurion.Session // one that is opened, or only the id
	mission centurion.Mission
	updated int64
}

// filled reads the sessions of what was found at once, and with tasks those of the missions' tasks.
func (d *Desk) filled(ctx context.Context, all []found, tasks bool) ([]centurion.Session, error) {
	var of []string
	for _, f := range all {
		if of = append(of, f.session.ID); tasks {
			of[len(of)-1] = f.mission.ID
		}
	}
	of = slices.DeleteFunc(of, func(id string) bool { return id == "" })
	recs, err := d.Store.SessionsIn(ctx, tasks, of)
	if err != nil {
		return nil, err
	}
	byID, byMission := map[string]centurion.Session{}, map[string][]centurion.Session{}
	for _, rec := range recs {
		if byID[rec.ID] = rec; tasks {
			byMission[rec.Metadata.Mission] = append(byMission[rec.Metadata.Mission], rec)
		}
	}
	out := make([]centurion.Session, 0, len(all)+len(recs))
	for _, f := range all {
		rec, read := byID[f.session.ID]
		if f.mission.ID == "" {
			out = append(out, f.session)
		} else if !read {
			return nil, &centurion.Error{Op: "list sessions", Kind: centurion.KindNotFound, Msg: "there is no session " + f.session.ID}
		} else {
			out = append(out, Shown(rec, f.mission))
		}
	}
	for _, f := range all {
		for _, rec := range byMission[f.mission.ID] {
			if rec.ID != f.session.ID {
				out = append(out, rec)
			}
		}
	}
	return out, nil
}

func (q Query) takes(title, below string, updated int64) bool {
	return (q.All || below == "") && updated >= q.Since && (q.Before == 0 || updated < q.Before) && strings.Contains(strings.ToLower(title), strings.ToLower(q.Search))
}

// Shown is a root session with what a person has made of it.
func Shown(rec centurion.Session, m centurion.Mission) centurion.Session {
	if rec.Metadata.Mission != m.ID || rec.ParentID != "" {
		return rec
	}
	rec.Title = cmp.Or(m.Title, rec.Title)
	rec.Time.Updated = max(rec.Time.Updated, m.Updated.Millis())
	if !m.Archived.IsZero() {
		rec.Time.Archived = m.Archived.Millis()
	}
	rec.Metadata.Profile, rec.Metadata.Below, rec.Metadata.Removed, rec.Metadata.Revert = m.Options.Profile, m.Below, m.Removed, m.Revert
	return rec
}

// IsRoot refuses a session of a task.
func IsRoot(rec centurion.Session) error {
	if rec.ParentID == "" {
		return nil
	}
	return &centurion.Error{Op: "change session", Kind: centurion.KindConflict, Msg: "session " + rec.ID + " belongs to a task of mission " + rec.Metadata.Mission,
		Hint: "end it with: centurion cancel " + rec.Metadata.Task}
}

// put writes an opened session, and tells it.
func (d *Desk) put(tx *store.Tx, rec *centurion.Session, fact centurion.EventType) error {
	rec.Time.Updated = centurion.Now().Millis()
	if err := tx.PutSession(rec); err != nil {
		return err
	}
	_, err := tx.Append(centurion.Event{Type: fact, Session: rec.ID, Data: event.Data(event.SessionData{Agent: rec.Agent, Title: rec.Title})})
	return err
}

// told writes a mission, and tells what has become of its root session.
func (d *Desk) told(tx *store.Tx, m *centurion.Mission, rec centurion.Session, fact centurion.EventType) error {
	if err := tx.PutMission(m); err != nil {
		return err
	}
	_, err := tx.Append(centurion.Event{Type: fact, Mission: m.ID, Session: rec.ID, Data: event.Data(event.SessionData{Agent: rec.Agent, Title: rec.Title})})
	return err
}

// clean makes one line of a title.
func clean(title string) string {
	return centurion.Clip(strings.Join(strings.Fields(title), " "), maxTitle)
}
