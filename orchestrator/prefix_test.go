package orchestrator

import (
	"fmt"
	"reflect"
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
						return do(plans("- [ ] T1 Look at all @worker", "- [ ] T2 Look again @worker\n  - after: T1"), work("T1", "look at every file"), work("T2", "look again"), onward)
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

// A mission of some fifty requests, after whose delegations the Commander is not asked: three items at the same time and a review, all delegated in one answer. At least 85 % of all
// bytes that are sent stood in the same place in the session's request before, counted in whole messages: what a provider's
// cache can save.
func TestCacheableShare(t *testing.T) {
	look := func(q scripted.Request) scripted.Answer {
		return scripted.Answer{Say: "I look.", Calls: []scripted.Call{call("read", args{"filePath": fmt.Sprintf("f%d.txt", q.Step())})}}
	}
	brief := strings.Repeat("What has to hold when you are done. ", 250)
	result := strings.Repeat("What I changed and how it was checked. ", 80)
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Turn < 5:
				return look(q)
			case q.Turn == 5:
				return do(barePlan("- [ ] T1 One @worker\n  - files: a/**", "- [ ] T2 Two @worker\n  - files: b/**", "- [ ] T3 Three @worker\n  - files: c/**",
					"- [ ] T4 Check the whole @reviewer\n  - after: T1, T2, T3"))
			case q.Turn == 6:
				return do(work("T1", brief), work("T2", brief), work("T3", brief), handTo("reviewer", "T4", brief))
			case strings.Contains(q.Last(), "call mission_complete"):
				return complete()
			}
			return say("I wait.")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() < 12 {
				return look(q)
			}
			return say(result)
		},
		"reviewer": func(q scripted.Request) scripted.Answer {
			if q.Step() < 9 {
				return look(q)
			}
			return say("PASS\n" + result)
		},
	}, func(r *rig) {
		for i := range 20 {
			r.write(fmt.Sprintf("f%d.txt", i), strings.Repeat(fmt.Sprintf("a line of file %d\n", i), 60))
		}
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		all := r.model.Requests()
		sent, cacheable := cacheableOf(all)
		share := float64(cacheable) / float64(sent)
		r.t.Logf("%d requests, %d bytes, %.2f %% cacheable", len(all), sent, 100*share)
		if share < 0.85 {
			r.t.Errorf("%.1f %% of %d bytes in %d requests are cacheable, want 85 %%", 100*share, sent, len(all))
		}
	})
}

// cacheableOf returns the bytes of all requests, and of those the ones that stand in whole messages before the first difference to
// their session's request before.
func cacheableOf(all []scripted.Request) (sent, cacheable int) {
	before := map[string][]scripted.Message{}
	for _, q := range all {
		tools, same := len(q.Field("tools")), true
		sent += tools
		if before[q.Session] != nil {
			cacheable += tools
		}
		for i, m := range q.Messages() {
			n := len(m.Text) + len(m.Reasoning) + 30
			for _, c := range m.Calls {
				n += len(c.Name) + len(c.Arguments) + 60
			}
			sent += n
			old := before[q.Session]
			if same = same && i < len(old) && reflect.DeepEqual(old[i], m); same {
				cacheable += n
			}
		}
		before[q.Session] = q.Messages()
	}
	return sent, cacheable
}
