package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/agent"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
)

// watched is a rig's journal as cursors read it.
type watched struct{ *store.Store }

func (w watched) Events(ctx context.Context, after int64, limit int) ([]centurion.Event, error) {
	return w.Store.Events(ctx, store.EventQuery{After: after, Limit: limit})
}

// spy reads what an agent does, as it happens.
type spy struct {
	trace []string
	at    map[string]time.Time // when a line was read
}

// spies starts n readers of the events of all agents, or of one session. They end with the mission.
func (r *rig) spies(g *guard.Group, n int, session string) []*spy {
	hub := &event.Hub{}
	r.cfg.Publish = hub.Publish
	r.restart()
	all := make([]*spy, n)
	for i := range all {
		all[i] = &spy{at: map[string]time.Time{}}
		g.Go("spy", func() error {
			d := agent.Deriver{Session: session}
			for e, err := range event.Follow(r.ctx, watched{r.store}, hub, 0, event.Filter{Deltas: true}) {
				if err != nil {
					return err
				}
				for _, told := range d.Apply(e) {
					all[i].take(told.Type, told.Data)
				}
				if e.Type.EndsMission() {
					return nil
				}
			}
			return nil
		})
	}
	synctest.Wait()
	return all
}

// take notes an event; pieces of one text are one line, however many came.
func (s *spy) take(typ centurion.EventType, data json.RawMessage) {
	line := traceLine(typ, data)
	if n := len(s.trace); n > 0 && strings.Contains(line, "_delta ") {
		head, piece, _ := strings.Cut(line, "_delta ")
		if strings.HasPrefix(s.trace[n-1], head+"_delta ") {
			s.trace[n-1] += piece
			return
		}
	}
	s.trace = append(s.trace, line)
	s.at[line] = time.Now()
}

func traceLine(typ centurion.EventType, data json.RawMessage) string {
	switch typ {
	case agent.SubAgentEvent:
		v := read[agent.SubAgentData](data)
		return fmt.Sprintf("[%s %t] %s", v.ParentCall, v.Sub != "", traceLine(v.Event.Type, v.Event.Data))
	case agent.Start:
		v := read[agent.StartData](data)
		return fmt.Sprintf("%s %s %s", typ, v.Agent, v.Address)
	case agent.MessageDelta, agent.ThinkingDelta:
		return fmt.Sprintf("%s %s", typ, read[agent.DeltaData](data).Delta)
	case agent.TurnEnd:
		v := read[agent.TurnData](data)
		var calls []string
		for _, c := range v.ToolCalls {
			calls = append(calls, c.Name+":"+c.Call)
		}
		return fmt.Sprintf("%s %q %v", typ, v.Message.Text, calls)
	case agent.ToolStart:
		v := read[agent.ToolStartData](data)
		return fmt.Sprintf("%s %s %s", typ, v.Name, v.Call)
	case agent.ToolEnd:
		v := read[agent.ToolEndData](data)
		return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", typ, v.Name, v.Call, centurion.Clip(v.Error, 40)))
	case agent.End:
		v := read[agent.EndData](data)
		return fmt.Sprintf("%s %q %d messages", typ, v.Text, len(v.Messages))
	case agent.Error:
		v := read[agent.ErrorData](data)
		return fmt.Sprintf("%s %s %s", typ, v.Kind, v.Reason)
	case agent.Compact:
		return fmt.Sprintf("%s %s", typ, read[agent.CompactData](data).Reason)
	}
	return string(typ)
}

func read[T any](data json.RawMessage) T {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		panic(err)
	}
	return v
}

func withID(id string, c scripted.Call) scripted.Call { c.ID = id; return c }

// sameTrace asserts what every reader has seen.
func sameTrace(t *testing.T, all []*spy, want ...string) {
	t.Helper()
	for i, s := range all {
		if !slices.Equal(s.trace, want) {
			t.Errorf("reader %d saw\n\t%s\nwant\n\t%s", i, strings.Join(s.trace, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
}

// follow runs a mission while three readers watch it, with a person who does something meanwhile.
func (r *rig) follow(t *testing.T, meanwhile func(centurion.Mission)) []*spy {
	t.Helper()
	var g guard.Group
	all := r.spies(&g, 3, "")
	m := r.start(centurion.MissionOptions{Ask: "ask"})
	done := r.inBackground(&g, m.ID)
	if meanwhile != nil {
		meanwhile(m)
	}
	<-done
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	return all
}

// OPAL-27, OPAL-45, OPAL-46, OPAL-47, OPAL-48, OPAL-49, OPAL-50, OPAL-51, OPAL-91, LOOP-85: three readers see one and the same
// sequence of a turn: the seed's events, in the seed's order. Calls that overlap begin in the order in which they were made,
// and each ends once.
func TestTraceOfATurn(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(
		scripted.Answer{Reasoning: "let me look", Say: "I look.", Calls: []scripted.Call{
			withID("c1", call("read", args{"filePath": "a.txt"})), withID("c2", call("read", args{"filePath": "b.txt"}))}},
		scripted.Answer{Calls: []scripted.Call{withID("c3", call("nonsense", args{}))}},
		scripted.Answer{Say: "ready", Calls: []scripted.Call{withID("c4", call("mission_complete", args{"summary": "seen"}))}},
	)}, func(r *rig) {
		r.write("a.txt", "x")
		all := r.follow(t, nil)
		sameTrace(t, all,
			"agent_start commander 0/",
			"thinking_delta let me look",
			"message_delta I look.",
			`turn_end "I look." [read:c1 read:c2]`,
			"tool_execution_start read c1",
			"tool_execution_start read c2",
			"tool_execution_end read c1",
			"tool_execution_end read c2 b.txt does not exist. did you mean a.txt…",
			`turn_end "" [nonsense:c3]`,
			"tool_execution_start nonsense c3",
			"tool_execution_end nonsense c3 Tool not found: nonsense",
			"message_delta ready",
			`turn_end "ready" [mission_complete:c4]`,
			"tool_execution_start mission_complete c4",
			"tool_execution_end mission_complete c4",
			`agent_end "ready" 4 messages`,
			"mission.completed")
	})
}

// OPAL-53, OPAL-55, OPAL-56, OPAL-71, OPAL-72, SUB-2, SUB-14, C-9, IKI-8, IKI-72: what a child does stands in its parent's stream when it
// happens, from its first event on, with the parent's call and the child's session, also of a child's child.
func TestTraceOfChildren(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(withID("c1", handTo("planner", "", "plan"))), say("waiting"), do(withID("c9", call("mission_complete", args{"summary": "ok"})))),
		"planner": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "look") {
				return steps(do(withID("w1", call("read", args{"filePath": "a.txt"}))), after(time.Minute, say("it is x")))(q)
			}
			return steps(do(withID("p1", handTo("planner", "", "look"))), say("searched"), say("planned"))(q)
		},
	}, func(r *rig) {
		r.write("a.txt", "x")
		committed := map[string]time.Time{}
		all := r.follow(t, nil)
		trace := all[0].trace
		sameTrace(t, all[1:], trace...)
		has(t, strings.Join(trace, "\n"),
			"tool_execution_start delegate_task c1",
			"[c1 true] agent_start planner 0/0",
			"[c1 true] tool_execution_start delegate_task p1",
			"[c1 true] [p1 true] agent_start planner 0/0/0",
			"[c1 true] [p1 true] turn_end \"\" [read:w1]",
			"[c1 true] [p1 true] tool_execution_end read w1",
			"[c1 true] [p1 true] turn_end \"it is x\" []",
			"[c1 true] [p1 true] agent_end \"it is x\"",
			"[c1 true] agent_end \"planned\"",
			"agent_start commander", "tool_execution_start mission_complete c9", "agent_end",
			"mission.completed")
		for _, e := range r.events("") {
			if e.Type == centurion.EventSessionIdle {
				committed[string(e.Session)] = e.Time.Time
			}
		}
		i := slices.IndexFunc(trace, func(l string) bool { return strings.HasPrefix(l, "[c1 true] [p1 true] agent_end") })
		w := r.tasks(r.mission1())[1].Session
		if i < 0 || !all[0].at[trace[i]].Truncate(time.Millisecond).Equal(committed[w].Truncate(time.Millisecond)) {
			t.Errorf("forwarded at %v what happened at %v", all[0].at[trace[max(i, 0)]], committed[w])
		}

		// The child's own view has the same events in the same order, and nothing else.
		var nested, own []string
		for _, l := range trace {
			if rest, ok := strings.CutPrefix(l, "[c1 true] [p1 true] "); ok && !strings.Contains(l, "_delta") {
				nested = append(nested, rest)
			}
		}
		d := agent.Deriver{Session: w}
		for _, e := range r.events("") {
			for _, told := range d.Apply(e) {
				own = append(own, traceLine(told.Type, told.Data))
			}
		}
		own = own[:len(own)-1] // the mission's end
		if !slices.Equal(own, nested) || len(own) < 5 {
			t.Errorf("the child itself:\n%s\nnested:\n%s", strings.Join(own, "\n"), strings.Join(nested, "\n"))
		}
	})
}

// OPAL-52: an abort and a failure end what had begun, with a reason; what was being run ends before it.
func TestTraceOfAnEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		cast script
		stop bool
		want []string
	}{
		{"abort while a tool runs", steps(do(withID("c1", call("bash", args{"command": "build 1h", "description": "x"})))), true, []string{
			"agent_start commander 0/",
			`turn_end "" [bash:c1]`,
			"tool_execution_start bash c1",
			"tool_execution_end bash c1 Cancelled",
			"error cancelled",
			"mission.cancelled"}},
		{"abort while the model answers", steps(after(time.Hour, say("late"))), true, []string{
			"agent_start commander 0/",
			"error cancelled",
			"mission.cancelled"}},
		{"the key is refused", func(scripted.Request) scripted.Answer { return scripted.Answer{Error: &scripted.Error{Status: 401}} }, false, []string{
			"agent_start commander 0/",
			"error auth",
			"mission.blocked"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": c.cast}, func(r *rig) {
				all := r.follow(t, func(m centurion.Mission) {
					if !c.stop {
						return
					}
					time.Sleep(time.Minute)
					if err := r.host.Control.Cancel(r.ctx, m.ID, "enough"); err != nil {
						t.Error(err)
					}
				})
				for _, s := range all {
					for i, l := range s.trace {
						if i < len(c.want) && strings.HasPrefix(l, "error "+cmp.Or(strings.TrimPrefix(c.want[i], "error "), "-")) {
							s.trace[i] = c.want[i]
						}
					}
				}
				sameTrace(t, all, c.want...)
			})
		})
	}
}

// SUB-28, SUB-29: while a person is asked for a child nothing of that child is told; after the answer its call ends, then its
// turn, then its parent hears of it.
func TestTraceOfAnAsk(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(withID("c1", handTo("worker", "", "build"))), say("waiting"), do(withID("c9", call("mission_complete", args{"summary": "ok"})))),
		"worker":    steps(do(withID("w1", call("bash", args{"command": "build 1s", "description": "x"}))), say("built")),
	}, func(r *rig) {
		r.cfg.Rules = askForShell
		var answered time.Time
		all := r.follow(t, func(m centurion.Mission) {
			time.Sleep(time.Hour)
			open, err := r.store.Asks(r.ctx, m.ID, true)
			if err != nil || len(open) != 1 {
				t.Fatalf("%v, %v", open, err)
			}
			answered = time.Now()
			if err := r.host.Answer(r.ctx, open[0].ID, "once", sandbox.Peer{}); err != nil {
				t.Error(err)
			}
		})
		s := all[0]
		sameTrace(t, all[1:], s.trace...)
		begun := slices.Index(s.trace, "[c1 true] tool_execution_start bash w1")
		if begun < 0 {
			t.Fatalf("no call in %v", s.trace)
		}
		for _, l := range s.trace[begun+1:] {
			if strings.HasPrefix(l, "[c1") && s.at[l].Before(answered) {
				t.Errorf("%s came before the answer", l)
			}
		}
		has(t, strings.Join(s.trace[begun:], "\n"), "[c1 true] tool_execution_end bash w1", `[c1 true] turn_end "built" []`, "[c1 true] agent_end",
			"agent_start commander", "tool_execution_start mission_complete c9", "mission.completed")
	})
}
