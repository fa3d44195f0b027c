// Package start records new missions: it checks what a person asks for, claims a plan, and writes the mission with the session of its own
// agent and the first message. It runs nothing.
package start

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/roots"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/text"
	"centurion/workspace"
)

// Starter records the missions of a project.
type Starter struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Project   *isolation.Project
	Plans     *plan.Desk
	Briefs    *brief.Desk
	Models    agent.Models
	Cast      func(profile string) *agents.Cast
	Version   string
	Confined  *centurion.Confinement // how commands are confined; nil says nothing
	Entering  sync.Locker            // held while a mission gets its plan, and while one that has a plan begins to run
}

// opening is a new mission before it is stored.
type opening struct {
	mission centurion.Mission
	session centurion.Session
	message string           // the id of the first message, "" for a new one
	parts   []centurion.Part // of the first message
	typed   []string         // the plugins that changed what a slash command made of it
	instead string           // why it begins with another model than the agent's own; empty if it does not
	note    string           // from the host to the person; may be empty
}

// record writes a mission with its root session and first message, in one transaction.
func record(ctx context.Context, st *store.Store, o opening) error {
	return st.Update(ctx, func(tx *store.Tx) error {
		m, rec := o.mission, o.session
		if opened := m.Options.Session; opened != "" {
			was, err := tx.TakeOpened(opened)
			if err != nil {
				return err
			}
			rec.Time.Created, m.Below = was.Time.Created, was.Metadata.Below
			if !strings.HasPrefix(was.Title, roots.Untitled) {
				m.Title = was.Title
			}
		}
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		d := state.Living(m)
		d.Note = o.note
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionStarted, Mission: m.ID, Session: rec.ID,
			Data: event.Data(d)}); err != nil {
			return err
		}
		err := cmp.Or(session.CreateWith(tx, &rec, centurion.OriginPerson, o.message, o.parts), session.Acted(tx, &rec, centurion.HookCommand, o.typed, ""))
		if err != nil || o.instead == "" {
			return err
		}
		return state.BeganWith(tx, &rec, o.instead)
	})
}

// Start records a new mission with its Commander's session. It does not run it. The error has centurion.KindUsage for an
// empty goal or an unknown agent or model.
func (s *Starter) Start(ctx context.Context, goal string, opts centurion.MissionOptions) (centurion.Mission, error) {
	if goal == "" {
		return centurion.Mission{}, &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the goal is empty",
			Hint: `say what is to be done: centurion run "add a rate limit to the API"`}
	}
	if m, err := startedBy(ctx, s.Store, opts.Request); err != nil || m.ID != "" {
		return m, err
	}
	status := centurion.MissionPlanning
	owner, model, err := s.ownerOf(opts)
	if err != nil {
		return centurion.Mission{}, err
	}
	opts.Model = model.Ref.String()
	first, typed := s.typed(ctx, goal, opts, owner.Name)
	opts.Files, opts.Attached, opts.Parts, opts.Message = nil, "", nil, "" // they are kept once, in the first message
	if err := mail.CheckFiles(append(first.Files, centurion.FilesOf(first.Parts)...), model); err != nil {
		return centurion.Mission{}, err
	}
	isolation, shared, err := s.Project.Isolate(ctx, opts)
	if err != nil {
		return centurion.Mission{}, err
	}
	var listed string
	if !state.Alone(opts.Profile) { // a single request need not concern the project
		listed = s.Briefs.Files(ctx, owner, isolation)
	}
	s.Entering.Lock()
	defer s.Entering.Unlock()
	var plan plan.Claim
	var earlier string
	var given []centurion.Given
	if state.Alone(opts.Profile) { // it has no plan, and needs no notes of other requests
		status = centurion.MissionRunning
	} else {
		if plan, err = s.Plans.ClaimTodo(ctx, opts.Plan); err != nil {
			return centurion.Mission{}, err
		}
		earlier, given = notes.EarlierWork(s.Workspace)
	}
	now := centurion.Now()
	told, err := s.Briefs.Open(ctx, owner, model.Context, instructions.Want{Full: true}, isolation)
	if err != nil {
		return centurion.Mission{}, err
	}
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: goal, Directory: s.Workspace.Dir(), Status: status,
		Level: opts.Level, Options: opts, Isolation: isolation, Confinement: s.Confined, Started: now, Updated: now}
	if opts.Level > 0 {
		m.LevelFrom = centurion.LevelByPerson
	}
	note := strings.Join(text.Filled(shared, plan.Fill(&m)), "; ")
	told.Given = append(told.Given, given...)
	rec, instead := s.rootSession(m, owner, model.Ref, told)
	m.Session = rec.ID
	return m, record(ctx, s.Store, opening{m, rec, first.Message, firstParts(goal, first, earlier, listed), typed, instead, note})
}

// typed returns the options with what plugins make of the first message, if a slash command made it, and which did.
func (s *Starter) typed(ctx context.Context, goal string, opts centurion.MissionOptions, agent string) (centurion.MissionOptions, []string) {
	parts := opts.Parts
	if len(parts) == 0 {
		parts = session.Texts(goal, opts.Files...)
	}
	parts, by := mail.Typed(ctx, s.Briefs.Hooks, centurion.Hooked{Session: opts.Session, Agent: agent}, opts.Typed, parts)
	if len(by) > 0 {
		opts.Parts, opts.Files = parts, nil
	}
	return opts, by
}

// ownerOf finds the agent that leads a mission with these options, and its model.
func (s *Starter) ownerOf(opts centurion.MissionOptions) (owner agents.Agent, model agent.Model, err error) {
	if err = checkProfile(opts); err != nil {
		return owner, model, err
	}
	cast := s.Cast(opts.Profile)
	if owner, err = cast.Find(cmp.Or(opts.Agent, cast.Owner())); err == nil {
		model, err = s.Models.Model(cmp.Or(opts.Model, owner.Model))
	}
	return owner, model, err
}

// rootSession is the session of the agent that leads a mission, with the first of its models that is available. Instead is the
// reason for another model than its own, and empty for its own.
func (s *Starter) rootSession(m centurion.Mission, owner agents.Agent, own centurion.ModelRef, told brief.Opening) (rec centurion.Session, instead string) {
	rec = session.New(centurion.Session{ID: m.Options.Session, Title: centurion.Clip(m.Goal, 80), Agent: owner.Name, Directory: m.Directory,
		ProjectID: "global", Slug: "0", Version: s.Version,
		Model: &centurion.SessionModel{ID: own.ID, Provider: own.Provider},
		Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/", System: told.System, AgentFile: owner.Source,
			Roster: s.Cast(m.Options.Profile).Roster(owner), Offered: s.Briefs.Callable(owner), Skills: told.Skills, External: told.External, Given: told.Given}}, m.Started)
	ref, instead := s.Models.Free(owner.Name, own)
	if instead != "" {
		rec.Metadata.OwnModel, rec.Model = rec.Model, &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider}
	}
	return rec, instead
}

// startedBy returns the mission of a request that was made before, or the zero mission.
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

// firstParts are the parts of a mission's first message: the goal as the person typed it, in one part with the host's words unless it has
// parts of its own, the text of files that came with it, and the list of the project's files.
func firstParts(goal string, opts centurion.MissionOptions, earlier, listed string) []centurion.Part {
	text := func(said string, synthetic bool) centurion.Part {
		return centurion.Part{Type: centurion.PartText, Text: said, Synthetic: synthetic}
	}
	whole := brief.FirstMessage(goal, opts) + earlier
	parts := session.Texts(whole, opts.Files...)
	if len(opts.Parts) > 0 {
		parts = opts.Parts
		if words := strings.TrimPrefix(whole, goal); words != "" {
			parts = append(parts, text(words, true))
		}
	}
	if opts.Attached != "" {
		parts = append(parts, text("\n\n"+opts.Attached, false))
	}
	if listed != "" {
		parts = append(parts, text("\n\n---"+listed, true))
	}
	return parts
}

// checkProfile refuses an unknown profile, and options that a profile does not support.
func checkProfile(opts centurion.MissionOptions) error {
	known := []string{agents.ProfileMission, agents.ProfileAssistant}
	switch {
	case opts.Profile != "" && !slices.Contains(known, opts.Profile):
		near := centurion.Nearest(opts.Profile, known)
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Hint: text.When(near != "", fmt.Sprintf("did you mean %q?", near)),
			Msg: fmt.Sprintf("there is no profile %q; the profiles are %s", opts.Profile, strings.Join(known, ", "))}
	case state.Alone(opts.Profile) && opts.PlanOnly:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant makes no plans", Hint: "take --profile mission, or ask it for a plan in words"}
	case state.Alone(opts.Profile) && opts.Plan != "":
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant carries out no plans", Hint: "leave out --plan, or use --profile mission"}
	case state.Alone(opts.Profile) && opts.Level > 0:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant knows no levels", Hint: "leave out --level, or take --profile mission"}
	}
	return nil
}
