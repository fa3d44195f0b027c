package orchestrator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
)

// opening is what a mission begins with.
type opening struct {
	mission centurion.Mission
	session centurion.Session
	text    string // the first message
	texts   string // attached to it as a part of its own
	listed  string // the list of files, after all of these; a part of its own
	files   []centurion.File
	instead string // why another model than the agent's own begins, empty if it does not
	note    string // what the host tells the person of it, empty if nothing
}

// recordStart writes a mission with its root's session and first message, in one transaction.
func recordStart(ctx context.Context, st *store.Store, o opening) error {
	return st.Update(ctx, func(tx *store.Tx) error {
		m, rec := o.mission, o.session
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		d := state.Living(m)
		d.Note = o.note
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionStarted, Mission: m.ID, Session: rec.ID,
			Data: event.Data(d)}); err != nil {
			return err
		}
		err := session.Create(tx, &rec, centurion.OriginPerson, o.text, o.files...)
		if err == nil {
			err = attachText(tx, rec.ID, o.texts, false)
		}
		if err == nil && o.listed != "" {
			err = attachText(tx, rec.ID, "---"+o.listed, true)
		}
		if err != nil || o.instead == "" {
			return err
		}
		return state.BeganWith(tx, &rec, o.instead)
	})
}

// Start records a new mission with its Commander's session. It does not run it. The error has centurion.KindUsage for an
// empty goal or an unknown agent or model.
func (h *Host) Start(ctx context.Context, goal string, opts centurion.MissionOptions) (centurion.Mission, error) {
	if goal == "" {
		return centurion.Mission{}, &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the goal is empty",
			Hint: `say what is to be done: centurion run "add a rate limit to the API"`}
	}
	if m, err := startedBy(ctx, h.cfg.Store, opts.Request); err != nil || m.ID != "" {
		return m, err
	}
	status := centurion.MissionPlanning
	agent, model, err := h.cfg.ownerOf(opts)
	if err != nil {
		return centurion.Mission{}, err
	}
	opts.Model = model.Ref.String()
	files, texts := opts.Files, opts.Attached
	opts.Files, opts.Attached = nil, "" // they are kept once, in the first message
	if err := mail.CheckFiles(files, model); err != nil {
		return centurion.Mission{}, err
	}
	isolation, shared, err := h.Project.Isolate(ctx, opts)
	if err != nil {
		return centurion.Mission{}, err
	}
	var listed string
	if !state.Alone(opts.Profile) { // what one request of a person is about need not be the project
		listed = h.briefs.Files(ctx, agent, isolation)
	}
	h.starting.Lock()
	defer h.starting.Unlock()
	var plan plan.Claim
	var earlier string
	var given []centurion.Given
	if state.Alone(opts.Profile) { // there is no plan, and whoever answers one request needs no notes of another
		status = centurion.MissionRunning
	} else {
		if plan, err = h.desk.ClaimTodo(ctx, opts.Plan); err != nil {
			return centurion.Mission{}, err
		}
		earlier, given = notes.EarlierWork(h.cfg.Workspace)
	}
	now := centurion.Now()
	told, err := h.briefs.Open(ctx, agent, model.Context, instructions.Want{Full: true}, isolation)
	if err != nil {
		return centurion.Mission{}, err
	}
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: goal, Directory: h.cfg.Workspace.Dir(), Status: status,
		Level: opts.Level, Options: opts, Isolation: isolation, Started: now, Updated: now}
	if opts.Level > 0 {
		m.LevelFrom = centurion.LevelByPerson
	}
	note := strings.Join(slices.DeleteFunc([]string{shared, plan.Fill(&m)}, func(s string) bool { return s == "" }), "; ")
	told.Given = append(told.Given, given...)
	rec, instead := h.rootSession(m, agent, model.Ref, told)
	m.Session = rec.ID
	return m, recordStart(ctx, h.cfg.Store, opening{m, rec, brief.FirstMessage(goal, opts) + earlier, texts, listed, files, instead, note})
}

// ownerOf finds the agent that owns a mission with these options, and its model.
func (c *Config) ownerOf(opts centurion.MissionOptions) (agent agents.Agent, model Model, err error) {
	if err = checkProfile(opts); err != nil {
		return agent, model, err
	}
	cast := c.cast(opts.Profile)
	if agent, err = cast.Find(cmp.Or(opts.Agent, cast.Owner())); err == nil {
		model, err = c.Model(cmp.Or(opts.Model, agent.Model))
	}
	return agent, model, err
}

// rootSession is the session of the agent that owns a mission, with the first of its models that may be asked. Instead says
// why that is not its own, and is empty if it is.
func (h *Host) rootSession(m centurion.Mission, agent agents.Agent, own centurion.ModelRef, told brief.Opening) (rec centurion.Session, instead string) {
	rec = session.New(centurion.Session{Title: centurion.Clip(m.Goal, 80), Agent: agent.Name, Directory: m.Directory,
		ProjectID: "global", Slug: "0", Version: h.cfg.Version,
		Model: &centurion.SessionModel{ID: own.ID, Provider: own.Provider},
		Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/", System: told.System, AgentFile: agent.Source,
			Roster: h.cfg.cast(m.Options.Profile).Roster(agent), Offered: h.briefs.Callable(agent), Skills: told.Skills, Given: told.Given}}, m.Started)
	ref, instead := h.cfg.agentConfig().Free(agent.Name, own)
	if instead != "" {
		rec.Metadata.OwnModel, rec.Model = rec.Model, &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider}
	}
	return rec, instead
}

// startedBy returns the mission that a request has started, or the zero mission.
func startedBy(ctx context.Context, st *store.Store, request string) (centurion.Mission, error) {
	if request == "" {
		return centurion.Mission{}, nil
	}
	all, err := st.Missions(ctx)
	for _, m := range all {
		if m.Options.Request == request {
			return m, nil
		}
	}
	return centurion.Mission{}, err
}

// PutAsideNote tells a person that a plan which no mission owned was moved, and how it is carried out.
func PutAsideNote(from, to string) string { return plan.PutAsideNote(from, to) }

// attachText adds a text to the first message of a session, in tx, as a part of its own: the goal stays what the person typed. It is
// synthetic if the host wrote it, and not synthetic if it is that of a file that came with the goal.
func attachText(tx *store.Tx, session, text string, synthetic bool) error {
	if text == "" {
		return nil
	}
	t, err := tx.Tree(session)
	if err != nil {
		return err
	}
	return tx.PutPart(&centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: session, MessageID: t.Leaf,
		Type: centurion.PartText, Text: "\n\n" + text, Synthetic: synthetic})
}
