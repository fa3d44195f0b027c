package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
)

const (
	prefixRounds = 30
	prefixShare  = 0.95 // of what a session has sent before, that its next request begins with
)

// LOOP-80: what a provider could cache is the beginning that a request has in common with the one before it. Over 30
// rounds of a Commander and a worker, while the plan, the tasks and the notices change, at least 95 % of the bytes that were
// sent before are sent again unchanged and in front, over every wire. The checking model refuses another system prompt or
// other tools than before.
func TestCacheablePrefix(t *testing.T) {
	look := func(q scripted.Request, from int) scripted.Answer {
		return scripted.Answer{Say: "I look.", Reasoning: fmt.Sprintf("Round %d.", q.Turn),
			Calls: []scripted.Call{call("read", args{"filePath": fmt.Sprintf("f%d.txt", from+q.Turn)})}}
	}
	for api, wire := range map[string]provider.Wire{"chat": nil, "responses": provider.Responses{}, "messages": anthropic.Wire{}} {
		t.Run(api, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch {
					case q.Turn == 1:
						return do(plans("- [ ] T1 Look at all @worker", "- [ ] T2 Look again @worker\n  - after: T1"), work("T1", "look at every file"), work("T2", "look again"))
					case q.Turn%10 == 0: // a note changes what everybody is told of the plan
						return do(plans("- [~] T1 Look at all @worker", fmt.Sprintf("- [ ] T2 Look again, %d @worker\n  - after: T1", q.Turn)))
					case q.Turn <= prefixRounds:
						return look(q, 0)
					}
					return say("done")
				},
				"worker": func(q scripted.Request) scripted.Answer {
					if q.Turn <= prefixRounds {
						return look(q, 100)
					}
					return say("looked")
				},
			}, func(r *rig) {
				client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http, Wire: wire, EchoReasoning: true})
				r.cfg.Model = func(string) (Model, error) {
					return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}}, nil
				}
				r.restart()
				for i := range 200 {
					r.write(fmt.Sprintf("f%d.txt", i), strings.Repeat(fmt.Sprintf("a line of file %d\n", i), 20))
				}
				r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
				for _, agent := range []string{"commander", "worker"} {
					sent, same, longest := map[string]int{}, map[string]int{}, 0
					for _, q := range r.requests(agent) {
						sent[q.Session] += q.Before
						same[q.Session] += q.Prefix
						longest = max(longest, q.Turn)
					}
					if longest <= prefixRounds {
						r.t.Fatalf("%s has %d rounds", agent, longest)
					}
					for session, n := range sent {
						share := float64(same[session]) / float64(n)
						r.t.Logf("%s over %s: %.2f %% of %d bytes", agent, api, 100*share, n)
						if share < prefixShare {
							r.t.Errorf("%s over %s: %.1f %% of what was sent before stands in front of the next request, want %.0f %%", agent, api, 100*share, 100*prefixShare)
						}
					}
				}
			})
		})
	}
}
