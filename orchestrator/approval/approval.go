// Package approval decides what an agent may do without a person, puts the asks for permission and the questions of one mission to its
// person, and waits for the answers. The rules themselves are package permission's.
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
)

// Config is what the approvals of a mission go by.
type Config struct {
	Rules   func(agent string) []permission.Level // the permission rules for an agent, weakest first
	Home    string                                // the person's home directory, for rules with ~
	Dir     string                                // the project's directory
	Timeout time.Duration                         // how long a question waits for a person; 0: for ever
	// Price finds what a model costs, nil where that is not known.
	Price func(model string) *centurion.Price
	// Resting reports whether the conversation of a task, for "" the mission's own, waits for nothing but that many answers and the
	// ends of tasks that live. It is true for one that is not open.
	Resting func(task string, answers int, lives func(task string) bool) bool
}

// Approvals are the asks and the questions of one mission.
type Approvals struct {
	st   *state.Mission
	iso  *isolation.Checkouts
	plan *plan.Plan
	cfg  Config

	mu      sync.Mutex               // protects what follows
	waiters map[string]chan struct{} // by ask id; closed when it is answered
	always  grants
}

// New returns the approvals of a mission, without those that a person has given before: see [Approvals.Restore].
func New(st *state.Mission, iso *isolation.Checkouts, p *plan.Plan, cfg Config) *Approvals {
	return &Approvals{st: st, iso: iso, plan: p, cfg: cfg, waiters: map[string]chan struct{}{}}
}

// grants are what the person's "always" answers of a mission allow. They hold as long as the mission lives, also across restarts.
type grants struct {
	rules    []permission.Rule
	commands []string // of the host's own: each as it was shown, whatever stands in it
}

// add takes in what a person's answer to an ask allows from then on. An acceptance command was shown as a whole and holds as a
// whole: the rules look at each simple command in it, so that none of them would match the line "a && b".
func (g *grants) add(a store.Ask) {
	switch {
	case a.Type != store.AskPermission || a.Answer != "always" || a.By != "person":
	case a.Call == "" && a.Permission == "bash":
		g.commands = append(g.commands, a.Always...)
	default:
		g.rules = append(g.rules, rulesOf(a)...)
	}
}

// size grows with everything that is added.
func (g *grants) size() int { return len(g.rules) + len(g.commands) }

// rulesOf returns the rules that stand in an ask.
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

// Restore takes in what a person has allowed for always before this host had the mission.
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

// Decide finds what the rules say of something that is done in the project's own directory.
func (m *Approvals) Decide(agent string, a tools.Access) permission.Decision {
	return m.decide(agent, a, m.cfg.Dir)
}

// decide finds what the rules say of something that is done in dir, the person's "always" answers last.
func (m *Approvals) decide(agent string, a tools.Access, dir string) permission.Decision {
	const yours = "your answer \"always\""
	levels := m.cfg.Rules(agent)
	m.mu.Lock()
	if len(m.always.rules) > 0 {
		levels = append(slices.Clone(levels), permission.Level{Name: yours, Rules: slices.Clone(m.always.rules)})
	}
	known := a.Script != "" && slices.Contains(m.always.commands, a.Script)
	m.mu.Unlock()
	if a.Script == "" {
		return permission.Decide(levels, a.Permission, a.Patterns)
	}
	host := []permission.Level{hostRules()}
	if d := permission.DecideShell(host, a.Script, dir, m.cfg.Home, false); d.Action == permission.Deny {
		return d
	}
	d := permission.DecideShell(levels, a.Script, dir, m.cfg.Home, false)
	if known && d.Action == permission.Ask {
		d.Action, d.Level, d.Reason = permission.Allow, yours, "you have allowed this very line for always"
	}
	return d
}

// Pending counts the asks for whose answers somebody waits.
func (m *Approvals) Pending() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters)
}

// granted returns how much the person's "always" answers allow: it grows with each of them.
func (m *Approvals) granted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.always.size()
}

// expect returns a channel that is closed when an ask is answered, for whoever waits for that and calls over when it does
// no more.
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

// from fills in who asks. Who cannot be found is left out: the ask itself matters more.
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

// settle returns an ask as it was answered, and answers it if nobody has.
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
		Hint: "do it another way, or say in your answer that it needs a permission rule or --ask allow"}
}
