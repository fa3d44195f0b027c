package session_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/redact"
	"centurion/session"
	"centurion/store"
)

// outsider is an agent from outside whose turn a test writes.
type outsider struct {
	asked []session.Prompt
	play  func(p session.Prompt, said *session.Saying) (session.Ended, error)
}

func (o *outsider) Answer(_ context.Context, p session.Prompt, said *session.Saying) (session.Ended, error) {
	o.asked = append(o.asked, p)
	return o.play(p, said)
}

// running is a call that has begun, and done one that has ended.
func running(id, tool string) session.Call {
	return session.Call{ID: id, Tool: tool, Title: tool + " it", Status: centurion.ToolRunning, Input: json.RawMessage(`{"command":"go test"}`)}
}

func done(id, output string, files ...string) session.Call {
	return session.Call{ID: id, Status: centurion.ToolCompleted, Output: output, Files: files, Metadata: map[string]any{"diff": "+x"}}
}

// shapeOf is what a message consists of.
func shapeOf(m centurion.Message) string {
	var parts []string
	for _, p := range m.Parts {
		text := string(p.Type) + " " + p.Text + p.Reason
		if p.State != nil {
			result, _ := p.State.Result()
			text = p.Tool + " " + string(p.State.Status) + " " + result
		}
		parts = append(parts, strings.TrimSpace(text))
	}
	return strings.Join(parts, "|")
}

// Issue "Plugin host", point 7: what an agent from outside thinks, says and does is stored and told as a session's own; its cost counts once,
// as it reports it; the next turn has only what is new, and a model of ours can take over.
func TestTurnOf(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Say: "I take over."}))
	sum, changed := 0, []string{}
	r.cfg.Running = func(more int) { sum += more }
	r.cfg.Changed = func(_ *store.Tx, files []string) error { changed = append(changed, files...); return nil }
	r.host.status = func() string { return "Others work on b.go." }
	r.reopen()
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		todo := session.Call{ID: "plan", Tool: "todowrite", Status: centurion.ToolCompleted, Input: json.RawMessage(`{"todos":[1]}`), Note: true}
		again := todo
		again.Input = json.RawMessage(`{"todos":[1,2]}`)
		err := errors.Join(said.Joined(centurion.Outside{ID: "own-1"}), said.Thought("Hm, "), said.Thought("two."), said.Text("I "), said.Text("look."), said.Call(todo), said.Call(again),
			said.Call(running("c1", "bash")), said.Call(running("c2", "edit")), said.Call(done("c2", "edited", "a.go")), said.Text("Meanwhile."),
			said.Call(done("c1", "ok")), said.Call(done("c1", "late")), said.Text("Done."), said.Call(done("c1", "later")), said.Joined(centurion.Outside{ID: "own-1", Cost: 0.5}))
		if sum != 0 {
			t.Errorf("%d calls count as running", sum)
		}
		return session.Ended{Finish: centurion.FinishStop, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 100}}}, err
	}}
	out, err := r.TurnOf(t.Context(), agent)
	if err != nil || out.Text != "Done." || out.Finish != centurion.FinishStop || !slices.Equal(out.Files, []string{"a.go"}) || !slices.Equal(changed, out.Files) {
		t.Errorf("%+v, %v", out, err)
	}
	var shapes []string
	for _, m := range r.messages()[1:] {
		shapes = append(shapes, shapeOf(m))
	}
	want := []string{"step-start|reasoning Hm, two.|text I look.|todowrite completed|step-finish tool-calls",
		"step-start|bash completed ok|edit completed edited|text Meanwhile.|step-finish tool-calls", "step-start|text Done.|step-finish stop"}
	if !slices.Equal(shapes, want) {
		t.Errorf("stored\n%s, want\n%s", strings.Join(shapes, "\n"), strings.Join(want, "\n"))
	}
	if p := calls(r.messages()[1])[0]; string(p.State.Input) != `{"todos":[1,2]}` {
		t.Errorf("the plan is %s", p.State.Input)
	}
	rec := r.record()
	if len(r.host.spent) != 1 || rec.Cost != 0.5 || rec.Tokens.Input != 100 || rec.Metadata.Unpriced || rec.Metadata.Outside == nil || rec.Metadata.Outside.Cost != 0.5 {
		t.Errorf("%+v, %+v, %+v", r.host.spent, rec, rec.Metadata.Outside)
	}
	if n := len(r.events(centurion.EventToolCompleted)); n != 3 || len(r.events(centurion.EventSessionIdle)) != 1 || r.Due() {
		t.Errorf("%d calls are told", n)
	}
	if first := agent.asked[0]; first.Known.ID != "" || !strings.HasPrefix(first.Whole, system+"\n\n"+goal) || !strings.HasSuffix(first.Whole, "Others work on b.go.") {
		t.Errorf("asked %+v", first)
	}

	r.reopen()
	r.say("And tests.")
	agent.play = func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		return session.Ended{Finish: centurion.FinishStop, Usage: centurion.Usage{Unpriced: true}}, said.Text("Tested.")
	}
	if _, err := r.TurnOf(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	second := agent.asked[1]
	if second.Known.ID != "own-1" || second.More != "And tests.\n\nOthers work on b.go." {
		t.Errorf("asked %+v", second)
	}
	for _, s := range []string{goal, "You have worked on this before", "You said: I look.", "You called bash bash it: ok", "And tests."} {
		if !strings.Contains(second.Whole, s) {
			t.Errorf("%q is not in %q", s, second.Whole)
		}
	}
	if !r.record().Metadata.Unpriced {
		t.Error("an unknown cost counts as none")
	}
	r.say("Go on yourself.")
	if out := r.turn(); out.Text != "I take over." {
		t.Errorf("%+v", out)
	}
}

// After a crash in the middle of a turn nothing of it is lost but the end, and the agent is told.
func TestTurnOfCrashes(t *testing.T) {
	r := newRig(t, inOrder())
	var after *rig
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		err := errors.Join(said.Joined(centurion.Outside{ID: "own-1"}), said.Text("I test."), said.Call(running("c1", "bash")))
		after = r.crash()
		return session.Ended{Finish: centurion.FinishStop}, err
	}}
	if _, err := r.TurnOf(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	if got := shapeOf(after.last()); !strings.Contains(got, "text I test.|bash error interrupted by a restart") || string(calls(after.last())[0].State.Input) != `{"command":"go test"}` {
		t.Errorf("stored %s", got)
	}
	if !after.Due() {
		t.Error("the turn counts as ended")
	}
	agent.play = func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		return session.Ended{Finish: centurion.FinishStop}, said.Text("Done.")
	}
	if _, err := after.TurnOf(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	p := agent.asked[1]
	if p.Known.ID != "own-1" || !strings.HasPrefix(p.More, "(Your last turn was broken off") || !strings.HasSuffix(p.More, goal) || !strings.Contains(p.Whole, "You called, and it failed: bash") {
		t.Errorf("asked %+v", p)
	}
}

// A turn that ends badly is stored with its reason: the limit of calls, no text, a refusal, an agent that fails; one that is cut off is
// continued, but not for ever.
func TestTurnOfFails(t *testing.T) {
	finish := func(f string, say string) func(session.Prompt, *session.Saying) (session.Ended, error) {
		return func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
			return session.Ended{Finish: f, Usage: centurion.Usage{Unpriced: true}}, said.Text(say)
		}
	}
	broke := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the agent's program has ended"}
	for name, c := range map[string]struct {
		play     func(session.Prompt, *session.Saying) (session.Ended, error)
		kind     centurion.Kind
		stored   string
		unpriced bool
	}{
		"without text": {finish(centurion.FinishStop, ""), centurion.KindNoAnswer, "step-finish error", true},
		"a refusal":    {finish(centurion.FinishFilter, "No."), centurion.KindRefusal, "text No.|step-finish error", true},
		"cut off":      {finish(centurion.FinishLength, "half"), centurion.KindTimeout, "text half|step-finish length", true},
		"it never begins": {func(session.Prompt, *session.Saying) (session.Ended, error) {
			return session.Ended{Usage: centurion.Usage{Unpriced: true}}, broke
		}, centurion.KindStreamCut, "step-start|step-finish error", false},
		"it ends": {func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
			return session.Ended{Usage: centurion.Usage{Unpriced: true}}, errors.Join(said.Text("half"), said.Call(running("c1", "bash")), broke)
		}, centurion.KindStreamCut, "text half|bash error Not known: the turn was broken off before the call had ended.|step-finish error", true},
		"a call too many": {func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
			err := said.Call(running("c1", "bash"))
			if err == nil {
				err = said.Call(running("c2", "bash"))
			}
			return session.Ended{Usage: centurion.Usage{Unpriced: true}}, err
		}, centurion.KindBudget, "bash error Cancelled|bash error Cancelled|step-finish cancelled", true},
	} {
		r := newRig(t, inOrder())
		left, sum := 1, 0
		r.cfg.Calls = func(_ *store.Tx, n int) (int, string, error) {
			left--
			return min(n, left+1), "the limit of calls is reached", nil
		}
		r.cfg.Running = func(more int) { sum += more }
		r.reopen()
		_, err := r.TurnOf(t.Context(), &outsider{play: c.play})
		if n := len(r.events(centurion.EventSessionIdle)); n != 0 {
			t.Errorf("%s: told %d times that it has ended well", name, n)
		}
		if centurion.KindOf(err) != c.kind || !strings.HasSuffix(shapeOf(r.last()), c.stored) || r.record().Metadata.Unpriced != c.unpriced || sum != 0 {
			t.Errorf("%s: %v, stored %s, unpriced %v, %d running", name, err, shapeOf(r.last()), r.record().Metadata.Unpriced, sum)
		}
		var stuck *session.StuckError
		if n := len(r.messages()); name == "cut off" && (!errors.As(err, &stuck) || n != 8) {
			t.Errorf("%v after %d messages", err, n)
		}
	}
}

// A flood of text is stored in parts and messages of a bounded size, and what is long is not told whole to an agent that has lost it.
func TestTurnOfFloods(t *testing.T) {
	r := newRig(t, inOrder())
	piece := strings.Repeat("x", 64<<10)
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		for range 64 {
			if err := said.Text(piece); err != nil {
				return session.Ended{}, err
			}
		}
		return session.Ended{Finish: centurion.FinishStop}, nil
	}}
	if _, err := r.TurnOf(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, m := range r.messages()[1:] {
		size := 0
		for _, p := range m.Parts {
			if size += len(p.Text); len(p.Text) > 512<<10 {
				t.Errorf("a part has %d bytes", len(p.Text))
			}
		}
		if total += size; size > 2<<20 {
			t.Errorf("a message has %d bytes", size)
		}
	}
	if total != 64*len(piece) {
		t.Errorf("%d bytes are stored of %d", total, 64*len(piece))
	}
	r.say("More.")
	if _, err := r.TurnOf(t.Context(), agent); err != nil || len(agent.asked[1].Whole) > 100<<10 {
		t.Errorf("%d bytes are told, %v", len(agent.asked[1].Whole), err)
	}
}

// Words and thoughts keep their order, and a failure without a word says so.
func TestTurnOfKeepsOrder(t *testing.T) {
	r := newRig(t, inOrder())
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		return session.Ended{Finish: centurion.FinishStop}, errors.Join(said.Text("One."), said.Thought("Hm."), said.Text("Two."), said.Thought("Well."),
			said.Call(session.Call{ID: "c1", Tool: "bash", Status: centurion.ToolError}), said.Text("Done."))
	}}
	if _, err := r.TurnOf(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	m := r.messages()
	if got, want := shapeOf(m[len(m)-2]), "step-start|text One.|reasoning Hm.|text Two.|reasoning Well.|bash error It failed.|step-finish tool-calls"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

// What is said beside a running call stands after it, and the last words count also if calls follow them.
func TestTurnOfEndsInACall(t *testing.T) {
	r := newRig(t, inOrder())
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		return session.Ended{Finish: centurion.FinishStop}, errors.Join(said.Text("I look."), said.Call(running("c1", "bash")), said.Text("Found it."), said.Call(done("c1", "ok")),
			said.Call(running("c2", "edit")), said.Call(done("c2", "edited")))
	}}
	out, err := r.TurnOf(t.Context(), agent)
	if err != nil || out.Text != "I look.\nFound it." && out.Text != "I look.Found it." {
		t.Errorf("%+v, %v", out, err)
	}
	m := r.messages()
	if got, want := shapeOf(m[len(m)-2]), "step-start|text I look.|bash completed ok|text Found it.|step-finish tool-calls"; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

// A turn that was stopped did not end well, whatever the agent says.
func TestTurnOfIsStopped(t *testing.T) {
	r := newRig(t, inOrder())
	ctx, stop := context.WithCancelCause(t.Context())
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		err := said.Text("Done.")
		stop(centurion.ErrCancelled)
		return session.Ended{Finish: centurion.FinishStop}, err
	}}
	if _, err := r.TurnOf(ctx, agent); centurion.KindOf(err) != centurion.KindCancelled {
		t.Error(err)
	}
}

// A crash loses no more of a long answer than what came in the last moment.
func TestTurnOfStoresMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder())
		stored := ""
		agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
			err := said.Text("One, ")
			time.Sleep(100 * time.Millisecond)
			err = errors.Join(err, said.Text("two, "))
			stored = shapeOf(r.last())
			return session.Ended{Finish: centurion.FinishStop}, errors.Join(err, said.Text("three."))
		}}
		if _, err := r.TurnOf(t.Context(), agent); err != nil || stored != "step-start|text One, two," {
			t.Errorf("stored %q, %v", stored, err)
		}
	})
}

// An agent knows that a limit ends its turn, but not whose: the host says it.
func TestTurnOfSaysWhoseLimit(t *testing.T) {
	r := newRig(t, inOrder())
	asked := 0
	r.host.before = func() ([]centurion.Message, error) {
		if asked++; asked == 1 {
			return nil, nil
		}
		return nil, &centurion.Error{Kind: centurion.KindBudget, Msg: "the mission has spent all"}
	}
	agent := &outsider{play: func(session.Prompt, *session.Saying) (session.Ended, error) {
		return session.Ended{}, &centurion.Error{Kind: centurion.KindBudget, Msg: "no more calls"}
	}}
	if _, err := r.TurnOf(t.Context(), agent); err == nil || !strings.Contains(err.Error(), "the mission has spent all") {
		t.Error(err)
	}
}

// The failures before a turn are known until one ends well.
func TestTurnOfEndsRetries(t *testing.T) {
	r := newRig(t, inOrder())
	if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return r.PutRetry(tx, centurion.Retry{Attempts: 2}) }); err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{&centurion.Error{Kind: centurion.KindNetwork, Msg: "no route"}, nil} {
		_, err := r.TurnOf(t.Context(), &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
			return session.Ended{Finish: centurion.FinishStop}, cmp.Or(said.Text("Done."), cause)
		}})
		if retry := r.record().Metadata.Retry; !errors.Is(err, cause) || (retry != nil) != (cause != nil) {
			t.Errorf("after %v: %v, retry %+v", cause, err, retry)
		}
	}
}

// Keys in what an agent from outside does are neither stored nor told to the next one.
func TestTurnOfKeys(t *testing.T) {
	const key = "hunter2-of-the-database"
	r := newRig(t, inOrder())
	r.cfg.Call.Keys.Add(redact.Key{Name: "DATABASE", Value: key})
	r.reopen()
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		begun, failed := running("c1", "bash"), done("c2", key)
		begun.Input = json.RawMessage(`{"command":"login ` + key + `"}`)
		failed.Tool, failed.Status = "bash", centurion.ToolError
		return session.Ended{Finish: centurion.FinishStop}, errors.Join(said.Call(begun), said.Call(done("c1", "in with "+key)), said.Call(failed), said.Text("Done."))
	}}
	for range 2 {
		if _, err := r.TurnOf(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
		r.say("Again.")
	}
	stored, err := json.Marshal([]any{r.messages(), r.events(), agent.asked})
	if err != nil || !strings.Contains(string(stored), "in with ") || strings.Contains(string(stored), key) {
		t.Errorf("%s, %v", stored, err)
	}
}

// Issue "Plugin host", "Measured": our part of a call takes at most 5 ms.
func BenchmarkCallOf(b *testing.B) {
	r := newRig(b, inOrder())
	agent := &outsider{play: func(_ session.Prompt, said *session.Saying) (session.Ended, error) {
		for n := 0; b.Loop(); n++ {
			id := fmt.Sprint(n)
			if err := errors.Join(said.Text("Next."), said.Call(running(id, "bash")), said.Call(done(id, "ok"))); err != nil {
				return session.Ended{}, err
			}
		}
		return session.Ended{Finish: centurion.FinishStop}, said.Text("Done.")
	}}
	if _, err := r.TurnOf(b.Context(), agent); err != nil {
		b.Fatal(err)
	}
}
