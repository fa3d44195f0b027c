package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/tools"
)

// permissionGrant is an «always» of a person: it holds as long as the mission lives, also across restarts.
type permissionGrant = permission.Rule

// grants are what the person's «always» answers of a mission allow.
type grants struct {
	rules    []permissionGrant
	commands []string // of the host's own: each as it was shown, whatever stands in it
}

// add takes in what a person's answer to an ask allows from then on. An acceptance command was shown as a whole and holds as a
// whole: the rules look at each simple command in it, so that none of them would match the line «a && b».
func (g *grants) add(a store.Ask) {
	switch {
	case a.Type != store.AskPermission || a.Answer != "always" || a.By != "person":
	case a.Call == "" && a.Permission == "bash":
		g.commands = append(g.commands, a.Always...)
	default:
		g.rules = append(g.rules, grantsOf(a)...)
	}
}

// size grows with everything that is added.
func (g *grants) size() int { return len(g.rules) + len(g.commands) }

// grantsOf returns the rules that stand in an ask.
func grantsOf(a store.Ask) []permissionGrant {
	var out []permissionGrant
	for _, p := range a.Always {
		name := a.Permission
		if outside, ok := strings.CutPrefix(p, tools.OutsidePrefix); ok && name == "bash" {
			name, p = strings.TrimSpace(tools.OutsidePrefix), outside
		}
		out = append(out, permissionGrant{Permission: name, Pattern: p, Action: permission.Allow})
	}
	return out
}

// restoreGrants takes in what a person has allowed for always before this host had the mission.
func (m *mission) restoreGrants(ctx context.Context) error {
	asks, err := m.h.cfg.Store.Asks(ctx, m.st.ID, false)
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

// gate answers the permission asks of one conversation.
type gate struct{ c *conversation }

var _ tools.Gate = gate{}

// Ask decides by the rules; what they leave open is answered by the mission's policy or by a person.
func (g gate) Ask(ctx context.Context, call *tools.Call, a tools.Access) error {
	m := g.c.m
	if err := g.elsewhere(call, a); err != nil {
		return err
	}
	if err := g.stashes(call, a); err != nil {
		return err
	}
	d := m.decideIn(g.c.agent.Name, a, call.Workspace.Dir())
	switch d.Action {
	case permission.Allow:
		return nil
	case permission.Deny:
		return refused(a, d.Reason)
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: m.st.ID, Session: call.Session,
		Task: call.Task, Message: call.Message, Call: call.ID, Permission: a.Permission, Patterns: a.Patterns, Always: a.Always,
		Title: subject(a), Text: d.Reason, Metadata: a.Metadata, Created: centurion.Now()}
	switch rec.Options.Ask {
	case "allow":
		return nil
	case "ask":
		return g.person(ctx, ask, a, call.Workspace.Dir())
	}
	if err := m.refuse(ctx, ask); err != nil {
		return err
	}
	return refused(a, d.Reason+"; nobody is there to be asked (--ask deny)")
}

// mayStart asks whether work may be handed to an agent. The rules name the agent, as OpenCode's do for its tool task.
func (g gate) mayStart(ctx context.Context, call *tools.Call, agent, what string) error {
	return g.Ask(ctx, call, tools.Access{Permission: "task", Patterns: []string{agent}, Always: []string{agent},
		Metadata: map[string]any{"subagent_type": agent, "description": what}})
}

// elsewhere refuses a script that would write in the project's own directory, by its absolute name, although its session
// works in a checkout: nobody would find there what it has done here. One that plainly only reads there is a matter of the rules.
func (g gate) elsewhere(call *tools.Call, a tools.Access) error {
	m := g.c.m
	if a.Script == "" || !m.iso.Isolated() {
		return nil
	}
	project, home := m.h.cfg.Workspace.Dir(), m.h.cfg.Home
	if permission.ParseShell(a.Script, project, home).ReadOnly {
		return nil
	}
	for _, p := range permission.ParseShell(a.Script, call.Workspace.Dir(), home).Outside {
		if rel, err := filepath.Rel(project, filepath.FromSlash(p)); err == nil && filepath.IsLocal(rel) {
			return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("not allowed: %s names %s, which is not where you work", centurion.Clip(a.Script, 200), p),
				Hint: "use relative paths: you work in your own checkout, and the shell starts in it"}
		}
	}
	return nil
}

// decide finds what the rules say of something that is done in the project's own directory.
func (m *mission) decide(agent string, a tools.Access) permission.Decision {
	return m.decideIn(agent, a, m.h.cfg.Workspace.Dir())
}

// decideIn finds what the rules say of something that is done in dir, the person's «always» answers last.
func (m *mission) decideIn(agent string, a tools.Access, dir string) permission.Decision {
	const yours = "your answer «always»"
	levels := m.h.cfg.Rules(agent)
	m.mu.Lock()
	if len(m.always.rules) > 0 {
		levels = append(slices.Clone(levels), permission.Level{Name: yours, Rules: slices.Clone(m.always.rules)})
	}
	known := a.Script != "" && slices.Contains(m.always.commands, a.Script)
	m.mu.Unlock()
	if a.Script != "" {
		host := []permission.Level{hostRules()}
		if d := permission.DecideShell(host, a.Script, dir, m.h.cfg.Home, false); d.Action == permission.Deny {
			return d
		}
		d := permission.DecideShell(levels, a.Script, dir, m.h.cfg.Home, false)
		if known && d.Action == permission.Ask {
			d.Action, d.Level, d.Reason = permission.Allow, yours, "you have allowed this very line for always"
		}
		return d
	}
	return permission.Decide(levels, a.Permission, a.Patterns)
}

// person asks a person and waits for the answer. The slot is given back meanwhile, and a check that waits for writers
// does not wait for this call.
func (g gate) person(ctx context.Context, ask store.Ask, a tools.Access, dir string) error {
	m := g.c.m
	defer g.c.live.wait(WaitPerson)()
	if err := g.c.leave(ctx, "permission: "+centurion.Clip(ask.Title, 80)); err != nil {
		return err
	}
	fenced := ctx.Value(fenceKey{}) != nil && !m.iso.Isolated()
	if fenced {
		m.writers.Release(1)
	}
	answer, err := m.ask(ctx, ask, func() bool { return m.decideIn(g.c.agent.Name, a, dir).Action == permission.Allow })
	if fenced {
		if ferr := m.writers.Acquire(context.WithoutCancel(ctx), 1); ferr != nil {
			return ferr
		}
	}
	if err := errors.Join(err, g.c.enter()); err != nil {
		return err
	}
	switch answer.Answer {
	case "once", "always":
		return nil
	}
	why := "a person refused it"
	if answer.Answer != "reject" {
		why += ": " + answer.Answer
	}
	return refused(a, why)
}

// expect returns a channel that is closed when an ask is answered, for whoever waits for that and calls over when it does
// no more.
func (m *mission) expect(ask string) (done <-chan struct{}, over func()) {
	answered := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asks[ask] = answered
	return answered, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.asks, ask)
	}
}

// ask stores an ask for permission, tells of it, and waits until it is answered, or until allowed says that a person's «always» to another
// ask covers it.
func (m *mission) ask(ctx context.Context, ask store.Ask, allowed func() bool) (store.Ask, error) {
	m.from(ctx, &ask)
	done, over := m.expect(ask.ID)
	defer over()
	if err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error { return state.PutAsk(tx, ask) }); err != nil {
		return ask, err
	}
	failpoint.Hit(failpoint.AskStored)
	m.st.Notify()
	for looked, waits := -1, true; waits; {
		changed := m.st.Change()
		if n := m.granted(); n != looked {
			if looked = n; allowed() {
				return m.settle(ctx, ask, "once", state.ByAlways)
			}
		}
		select {
		case <-done:
			waits = false
		case <-changed:
		case <-ctx.Done():
			// Who asked has ended: nobody waits for the answer any more. At the end of the mission all asks are closed together.
			_, err := m.settle(context.WithoutCancel(ctx), ask, "reject", state.ByEnd)
			return ask, errors.Join(context.Cause(ctx), err)
		}
	}
	all, err := m.h.cfg.Store.Asks(ctx, m.st.ID, false)
	for _, a := range all {
		if a.ID == ask.ID {
			ask = a
		}
	}
	return ask, err
}

// granted returns how much the person's «always» answers allow: it grows with each of them.
func (m *mission) granted() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.always.size()
}

// refuse records an ask that the mission's policy answers at once, because nobody is there.
func (m *mission) refuse(ctx context.Context, ask store.Ask) error {
	ask.By = state.ByPolicy
	m.from(ctx, &ask)
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := state.PutAsk(tx, ask); err != nil {
			return err
		}
		return state.PutAnswer(tx, ask, "reject", state.ByPolicy)
	})
}

// onlyAsked reports whether a call was never run: its host died while it waited for the answer to a permission.
func (m *mission) onlyAsked(ctx context.Context, call centurion.Part) bool {
	all, err := m.h.cfg.Store.Asks(ctx, m.st.ID, false)
	if err != nil {
		return false // its effects are unknown, then
	}
	last := ""
	for _, a := range all { // oldest first; an endpoint may count its calls anew in each answer
		if a.Session == call.SessionID && a.Call == call.CallID && a.Created.Millis() >= call.State.Time.Start {
			last = a.By
		}
	}
	return last == state.ByEnd
}

// Answer answers an ask of a running mission: once, always or reject for a permission, run or quit for a plan, a text
// for a question. The error has centurion.KindNotFound if nothing of that id waits.
func (h *Host) Answer(ctx context.Context, id, answer string) error {
	open, err := h.cfg.Store.Asks(ctx, "", true)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(a store.Ask) bool { return a.ID == id })
	if i < 0 {
		return h.notOpen(ctx, id)
	}
	ask := open[i]
	m := h.running(ask.Mission)
	if ask.Type == store.AskQuestion {
		if answer = Chosen(ask.Options, answer); answer == "" {
			return &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: "the answer is empty", Hint: "give a text, or the number of a choice"}
		}
		if m == nil && ask.Call != "" {
			return h.answerLater(ctx, ask, answer)
		}
	}
	if m == nil {
		return &centurion.Error{Op: "answer", Kind: centurion.KindConflict, Msg: "mission " + ask.Mission + " is not running",
			Hint: "resume it, then answer: centurion resume " + ask.Mission}
	}
	accepted := ask.Type == store.AskPlan && slices.Contains(planAccepted, answer)
	var p plan.View
	if accepted {
		if p, err = m.plan.Read(); err != nil {
			return err
		}
	}
	if err := h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Ask(id)
		if err == nil && !now.Answered.IsZero() {
			return answeredAlready(id)
		}
		if err == nil && accepted {
			err = acceptPlan(tx, ask.Mission, p.VerifyLines())
		}
		if err != nil {
			return err
		}
		return state.PutReply(tx, ask, answer)
	}); err != nil {
		return err
	}
	failpoint.Hit(failpoint.AskAnswered)
	ask.Answer, ask.By = answer, "person"
	m.mu.Lock()
	m.always.add(ask)
	done := m.asks[id]
	m.mu.Unlock()
	if done != nil {
		close(done)
	}
	if ask.Type == store.AskPlan && !accepted {
		m.st.End(&centurion.Error{Kind: centurion.KindInterrupted, Msg: "the plan was not accepted"})
	}
	m.st.Notify()
	return nil
}

func answeredAlready(id string) error {
	return &centurion.Error{Op: "answer", Kind: centurion.KindNotFound, Msg: "nothing waits for an answer under " + id,
		Hint: "it may have been answered already; see what waits with: centurion asks"}
}

// planAccepted are the answers that accept a plan.
var planAccepted = []string{"run", "once", "always", "yes"}

// askPlan shows the plan to the person, unless that is under way. It does not wait: the tasks do.
func (m *mission) askPlan(ctx context.Context, rec centurion.Mission, p plan.View) error {
	low, high := m.estimate(rec, p)
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		open, err := tx.OpenAsks(m.st.ID)
		if err != nil || slices.ContainsFunc(open, func(a store.Ask) bool { return a.Type == store.AskPlan }) {
			return err
		}
		return state.PutAsk(tx, store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskPlan, Mission: m.st.ID, Session: rec.Session,
			Title: p.Doc.Title(), Text: string(p.Doc.Bytes()), Options: []string{"run", "quit"}, CostLow: low, CostHigh: high,
			Created: centurion.Now()})
	})
}

// What one item of a plan takes, roughly: a small one is some 6 requests over a history of a few files, a large one some
// 40 over a long history; most of what is sent again comes from the provider's cache. Nobody knows it better before the
// work is done, and the range is meant to be wide.
var (
	smallItem = centurion.Tokens{Input: 8_000, Output: 1_500, Cache: centurion.CacheUsage{Read: 24_000}}
	largeItem = centurion.Tokens{Input: 150_000, Output: 20_000, Cache: centurion.CacheUsage{Read: 900_000}}
)

// estimate is a rough range of what the plan's open items will cost, in USD, the Commander's own part counted as one item
// more. Both are zero without a price.
func (m *mission) estimate(rec centurion.Mission, p plan.View) (low, high float64) {
	model, err := m.h.cfg.Model(rec.Options.Model)
	if err != nil || model.Price == nil {
		return 0, 0 // a model that cannot be had is told when it is used
	}
	c := p.Doc.Counts()
	n := float64(c.Open + c.Running + c.Blocked + 1)
	return n * model.Price.Cost(smallItem).USD, n * model.Price.Cost(largeItem).USD
}

// acceptPlan records that a person accepted the plan as it stands, with its verify lines.
func acceptPlan(tx *store.Tx, mission string, lines []string) error {
	rec, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	rec.Accepted, rec.Approved = true, lines
	return tx.PutMission(&rec)
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
