// Package approval decides what an agent may do without a person. It passes a mission's permission asks and questions to its person,
// and waits for the answers. The rules themselves are in package permission.
package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/tools"
	"centurion/workspace"
)

// Config configures the approvals of a mission.
type Config struct {
	Rules     func(agent string) []permission.Level // the permission rules for an agent, weakest first
	Home      string                                // the person's home directory, for rules with ~
	Workspace *workspace.Workspace                  // the project's directory
	Confined  bool                                  // commands are confined fully, so that those in the project need no approval
	Hooks     centurion.Hooks                       // of plugins; nil has none
	Timeout   time.Duration                         // how long an ask waits for a person; 0: forever
	// Price returns the price of a model, nil if unknown.
	Price func(model string) *centurion.Price
	// Resting reports whether the conversation of a task ("" for the mission's own) waits for nothing but that many answers and the ends
	// of living tasks. It is true for one that is not open.
	Resting func(task string, answers int, lives func(task string) bool) bool
}

// Approvals are the permission asks and the questions of one mission.
type Approvals struct {
	st   *state.Mission
	iso  *isolation.Checkouts
	plan *plan.Plan
	cfg  Config

	mu      sync.Mutex               // protects the fields below
	waiters map[string]chan struct{} // by ask id; closed when it is answered
	always  grants
	online  map[string]bool // the host's own commands that more than a default rule has allowed
}

// New returns the approvals of a mission, without earlier answers: see [Approvals.Restore].
func New(st *state.Mission, iso *isolation.Checkouts, p *plan.Plan, cfg Config) *Approvals {
	return &Approvals{st: st, iso: iso, plan: p, cfg: cfg, waiters: map[string]chan struct{}{}, online: map[string]bool{}}
}

// grants are the permissions given by "always" answers. They last as long as the mission, across restarts.
type grants struct {
	rules    []permission.Rule
	commands []string // the host's own commands, each exactly as shown
}

// add records what an answer allows from then on. An acceptance command is granted as a whole, as it was shown: rules look at each
// simple command, so none would match the line "a && b". From a program that is not known to act for a person, "always" means once.
func (g *grants) add(a store.Ask) {
	switch {
	case a.Type != store.AskPermission || a.Answer != "always" || a.By != state.ByPerson:
	case a.Call == "" && a.Permission == "bash":
		g.commands = append(g.commands, a.Always...)
	default:
		g.rules = append(g.rules, rulesOf(a)...)
	}
}

// size grows with every addition.
func (g *grants) size() int { return len(g.rules) + len(g.commands) }

// rulesOf returns the rules of an ask.
func rulesOf(a store.Ask) []permission.Rule {
	var out []permission.Rule
	for _, p := range a.Always {
		name := a.Permission
		if outside, ok := strings.CutPrefix(p, tools.OutsidePrefix); ok && name == "bash" {
			name, p = strings.TrimSpace(tools.OutsidePrefix), outside
		}
		out = append(out, permission.Rule{Permission: name, Pattern: p, Action: permission.Allow})
	}
	return out
}

// Restore loads earlier "always" answers to this mission.
func (m *Approvals) Restore(ctx context.Context) error {
	asks, err := m.st.Store.Asks(ctx, m.st.ID, false)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range asks {
		m.always.add(a)
	}
	return nil
}

// Decide applies the rules to an action in the project's own directory.
func (m *Approvals) Decide(agent string, a tools.Access) permission.Decision {
	return m.decide(agent, a, m.cfg.Workspace)
}

// place is where the script of an access runs.
func (m *Approvals) place(a tools.Access, ws *workspace.Workspace) permission.Place {
	p := tools.ScriptPlace(ws, a.Workdir)
	p.Home = m.cfg.Home
	return p
}

// always is the level of the person's "always" answers.
const always = "your answer \"always\""

// decide applies the rules to an action in ws, the person's "always" answers last.
func (m *Approvals) decide(agent string, a tools.Access, ws *workspace.Workspace) permission.Decision {
	levels := m.cfg.Rules(agent)
	m.mu.Lock()
	if len(m.always.rules) > 0 {
		levels = append(slices.Clone(levels), permission.Level{Name: always, Rules: slices.Clone(m.always.rules)})
	}
	known := a.Script != "" && slices.Contains(m.always.commands, a.Script)
	m.mu.Unlock()
	if a.Script == "" {
		return permission.Decide(levels, a.Permission, a.Patterns)
	}
	host := []permission.Level{hostRules()}
	at := m.place(a, ws)
	if d := at.Decide(host, a.Script, false); d.Action == permission.Deny {
		return d
	}
	d := at.Decide(levels, a.Script, m.cfg.Confined)
	if known && d.Action == permission.Ask {
		d.Action, d.Level, d.Reason = permission.Allow, always, "you have allowed this very line for always"
	}
	return d
}

// Pending counts the asks that have a waiter.
func (m *Approvals) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters)
}

// granted returns a number that grows with each "always" answer.
func (m *Approvals) granted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.always.size()
}

// expect returns a channel that is closed when an ask is answered. Call over to stop waiting.
func (m *Approvals) expect(ask string) (done <-chan struct{}, over func()) {
	answered := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiters[ask] = answered
	return answered, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiters, ask)
	}
}

// from fills in the asking agent. It is left out if not found: the ask itself matters more.
func (m *Approvals) from(ctx context.Context, ask *store.Ask) {
	var line []string
	for id := ask.Session; id != ""; {
		s, err := m.st.Store.Session(ctx, id)
		if err != nil {
			break
		}
		if ask.Agent == "" {
			ask.Agent, ask.Address = s.Agent, s.Metadata.Address
		} else {
			line = append(line, s.Agent+" "+s.Metadata.Address)
		}
		id = s.ParentID
	}
	slices.Reverse(line)
	ask.Line = strings.Join(line, " › ")
}

// settle answers an open ask and returns it; an earlier answer wins.
func (m *Approvals) settle(ctx context.Context, ask store.Ask, answer, by string) (store.Ask, error) {
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Ask(ask.ID)
		if err != nil || !now.Answered.IsZero() {
			ask = now
			return err
		}
		if err := state.PutAnswer(tx, ask, answer, by); err != nil {
			return err
		}
		ask, err = tx.Ask(ask.ID)
		return err
	})
	m.st.Notify()
	return ask, err
}

func subject(a tools.Access) string {
	if a.Script != "" {
		return a.Script
	}
	return strings.Join(a.Patterns, ", ")
}

func refused(a tools.Access, why string) error {
	return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("not allowed: %s %s (%s)", a.Permission, centurion.Clip(subject(a), 200), why),
		Hint: "try another approach, or report that it needs a permission rule or --ask allow"}
}
