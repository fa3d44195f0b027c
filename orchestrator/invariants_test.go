package orchestrator

import (
	"context"
	"slices"
	"time"

	"centurion"
	"centurion/orchestrator/slots"
	"centurion/store"
)

// check looks at what a stopped mission leaves behind.
func (r *rig) check(m centurion.Mission) {
	r.t.Helper()
	if m.Status.Alive() || m.Status == "" {
		r.t.Errorf("the mission has stopped and is %q", m.Status)
	}
	stored, err := r.store.Mission(r.ctx, m.ID)
	if err != nil || stored.Status != m.Status || stored.Reason != m.Reason {
		r.t.Errorf("stored: %s %q, returned: %s %q, %v", stored.Status, stored.Reason, m.Status, m.Reason, err)
	}
	ends := 0
	all := r.events(m.ID)
	for _, e := range all {
		if e.Type.EndsMission() {
			ends++
		}
	}
	if last := all[len(all)-1]; ends != r.runs || string(last.Type) != "mission."+string(m.Status) {
		r.t.Errorf("%d ends after %d runs, the last event is %s of a mission that is %s", ends, r.runs, last.Type, m.Status)
	}
	n := r.host.cfg().Workers // every right to run was given back
	r.enter("the host", r.host.slots.Pool(n, n), "probe", centurion.ModelRef{}, n)()
	if n := len(r.host.Running()); n > 0 {
		r.t.Errorf("%d missions run after the end", n)
	}
	r.checkDeliveries(m.ID)
	r.checkMessages(m.ID)
	open, err := r.store.Asks(r.ctx, m.ID, true)
	if m.Status == centurion.MissionPaused || m.Status == centurion.MissionBlocked { // a question waits for its answer
		open = slices.DeleteFunc(open, func(a store.Ask) bool { return a.Type == store.AskQuestion && a.Call != "" })
	}
	if err != nil || len(open) > 0 {
		r.t.Errorf("asks that are left open: %v, %v", open, err)
	}
}

// enter lets n sessions of an agent in at a mission, without a wait where there is room for them.
func (r *rig) enter(what string, pool *slots.Pool, agent string, model centurion.ModelRef, n int) (leave func()) {
	r.t.Helper()
	var in []*slots.Slot
	for range n {
		s, err := letIn(10*time.Second, pool, agent, model)
		if err != nil {
			r.t.Errorf("%s has room for %d more sessions, not for %d: slots are still held, or somebody stands in the line", what, len(in), n)
			break
		}
		in = append(in, s)
	}
	return func() {
		for _, s := range in {
			s.Release()
		}
	}
}

func letIn(patience time.Duration, pool *slots.Pool, agent string, model centurion.ModelRef) (*slots.Slot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return pool.Launch(ctx, pool.Join(agent), func(context.Context) (centurion.ModelRef, error) { return model, nil })
}

// room looks that exactly n more sessions of an agent could run now in a mission: so many are let in, and another one waits.
// That takes a millisecond.
func (r *rig) room(what string, pool *slots.Pool, agent string, model centurion.ModelRef, n int) {
	r.t.Helper()
	defer r.enter(what, pool, agent, model, n)()
	if s, err := letIn(time.Millisecond, pool, agent, model); err == nil {
		s.Release()
		r.t.Errorf("%s has room for more than %d more sessions", what, n)
	}
}

// hostHasRoom is room for all missions of the host together.
func (r *rig) hostHasRoom(n int) {
	r.t.Helper()
	r.room("the host", r.host.slots.Pool(n+2, n+2), "probe", centurion.ModelRef{}, n)
}

// checkDeliveries looks that no result was told twice, and none forgotten: every task that has ended has one delivery.
func (r *rig) checkDeliveries(mission string) {
	r.t.Helper()
	all, err := r.store.Deliveries(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	of, told := map[string]int{}, map[string]int{}
	for _, d := range all {
		of[d.Task]++
	}
	for _, e := range r.events(mission, centurion.EventTaskDelivered) {
		told[e.Task]++
	}
	for _, t := range r.tasks(mission) {
		if t.Race != nil { // one of its tries is told
			of[t.Race.ID+" race"] += of[t.ID]
			if n := of[t.Race.ID+" race"]; n > 1 {
				r.t.Errorf("the race of %s has %d deliveries", t.Item, n)
			}
			continue
		}
		if want := map[bool]int{true: 1}[t.Status.Ended()]; of[t.ID] != want && t.Status != centurion.TaskCancelled || of[t.ID] > 1 {
			r.t.Errorf("task %s is %s and has %d deliveries", t.ID, t.Status, of[t.ID])
		}
		if told[t.ID] > 1 {
			r.t.Errorf("the result of task %s was told %d times", t.ID, told[t.ID])
		}
	}
}

// checkMessages looks that no answer and no call is left half done.
func (r *rig) checkMessages(mission string) {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	rec, err := r.store.Mission(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	waits := map[string]bool{"": rec.Status == centurion.MissionPaused || rec.Status == centurion.MissionBlocked} // a question waits for its answer
	for _, t := range r.tasks(mission) {
		waits[t.ID] = waits[""] || t.Status == centurion.TaskCancelled
	}
	for _, s := range sessions {
		messages, err := r.store.Messages(r.ctx, s.ID)
		if err != nil {
			r.t.Error(err)
		}
		for _, m := range messages {
			if m.Role == centurion.RoleAssistant && m.Finish == "" {
				r.t.Errorf("an answer of %s has no end", s.Agent)
			}
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool && !p.State.Ended() && (p.Tool != "ask_user" || !waits[s.Metadata.Task]) {
					r.t.Errorf("a call of %s by %s has no end", p.Tool, s.Agent)
				}
			}
		}
	}
}
