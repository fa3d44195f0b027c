package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-80, ORCH-81: a history that the provider rejects is met with the prompt that belongs to what it dislikes, as a message
// of the host, once for each rejection and five seconds after it; then the conversation goes on.
func TestRejectedHistoryIsPrompted(t *testing.T) {
	for name, test := range map[string]struct{ said, prompt string }{
		"a result is missing": {"messages.4: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
			"A tool call of yours broke off before its result was recorded; the history has been repaired and shows what is known. " +
				"Check what the call did before you repeat it, then go on with your task."},
		"thinking out of order": {"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
			"The previous turn could not be continued and was closed. Take up your task from the last recorded result and go on."},
	} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ", times), func(t *testing.T) {
				bubble(t, nil, func(r *rig) {
					model := &breaks{}
					for range times {
						model.errs = append(model.errs, &centurion.Error{Op: "call model", Kind: centurion.KindInvalidRequest, Status: 400, Msg: test.said})
					}
					r.cfg.Model = func(string) (Model, error) { return Model{Client: model, Ref: ref}, nil }
					r.restart()
					began := time.Now()
					m := r.mission(centurion.MissionOptions{})
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "requests", model.n, times+1)
					equal(t, "took", time.Since(began).Round(time.Second), time.Duration(times)*5*time.Second)
					messages, err := r.store.Messages(r.ctx, m.Session)
					if err != nil {
						t.Fatal(err)
					}
					prompts := 0
					for _, msg := range messages {
						if msg.Role == centurion.RoleUser && msg.Origin == centurion.OriginHost {
							equal(t, "prompt", msg.Text(), test.prompt)
							prompts++
						}
					}
					equal(t, "prompts", prompts, times)
				})
			})
		}
	}
}

// ORCH-87, ORCH-110: a turn that ends well ends the row of failures, too: the next turn of the same session has all its
// attempts, and waits as after a first failure.
func TestGoodTurnResets(t *testing.T) {
	n := 0
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer {
		n++
		switch n {
		case 1:
			return do(plans("- [ ] T1 One"))
		case 5:
			return say("I stop here")
		case 9:
			return do(mark("T1", "done"))
		case 10:
			return say("done")
		}
		return status(500)(n)
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "requests", n, 10)
		equal(t, "waits", r.waits(m.ID, centurion.EventProviderRetry), "1: 5s, 2: 10s, 3: 20s, 1: 5s, 2: 10s, 3: 20s")
	})
}
