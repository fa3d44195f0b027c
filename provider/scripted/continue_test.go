package scripted

import (
	"encoding/json"
	"strings"
	"testing"
)

// history writes a request of a session. Each message is "role:text"; "call:id" is an answer with that call and "result:id:text"
// its result.
func history(model string, tools bool, list ...string) string {
	msgs := []any{map[string]any{"role": "system", "content": "You are the Worker."}}
	for _, m := range list {
		role, text, _ := strings.Cut(m, ":")
		switch role {
		case "call":
			msgs = append(msgs, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": text, "type": "function",
				"function": map[string]any{"name": "read", "arguments": "{}"}}}})
		case "result":
			id, text, _ := strings.Cut(text, ":")
			msgs = append(msgs, map[string]any{"role": "tool", "tool_call_id": id, "content": text})
		case "thought":
			text, thought, _ := strings.Cut(text, ":")
			msgs = append(msgs, map[string]any{"role": "assistant", "content": text, "reasoning_content": thought})
		default:
			msgs = append(msgs, map[string]any{"role": role, "content": text})
		}
	}
	body := map[string]any{"model": model, "messages": msgs}
	if tools {
		body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "read"}}}
	}
	b, _ := json.Marshal(body) // maps of strings always marshal
	return string(b)
}

// LOOP-80, OPAL-65: a session whose requests do not go on from each other is found out, however the program gets over it; what
// is legitimate (growth, a status that changes, a compaction, another model, and where it is allowed a way back) is not.
func TestHistoriesGoOn(t *testing.T) {
	const status = "\n\n<status>\nopen: 3\n</status>"
	long := strings.Repeat("a long result ", 100)
	summary := func(text string) string { return "user:goal\n\n<summary>\n" + text + "\n</summary>" }
	type req []string
	tests := []struct {
		name    string
		rewinds bool
		before  []req // "@other" as the first word is the model
		next    req
		want    string // words of the fault; "" for none
	}{
		{"it grows", false, []req{{"user:goal"}}, req{"user:goal", "call:a", "result:a:x"}, ""},
		{"the same again", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:goal", "call:a", "result:a:x"}, ""},
		{"more is said before an answer", false, []req{{"user:goal"}}, req{"user:goal\n\nand that"}, ""},
		{"the status changes", false, []req{{"user:goal" + status}, {"user:goal", "call:a", "result:a:x", "user:" + status[2:]}},
			req{"user:goal", "call:a", "result:a:x", "assistant:done", "user:more\n\n<status>\nopen: 1\n</status>"}, ""},
		{"more is said before a status", false, []req{{"user:goal" + status}}, req{"user:goal\n\nand that" + status}, ""},

		{"the newest result is lost", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:y"}}, req{"user:goal", "call:a", "result:a:x"}, `shorter than that of the session's previous request: messages[4], assistant " [call b of read {}]", is missing`},
		{"a step in between is lost", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:goal", "call:b", "result:b:y"}, `messages[2] was assistant " [call a of read {}]" and is assistant " [call b of read {}]"`},
		{"an answer is lost", false, []req{{"user:goal"}, {"user:goal", "assistant:half", "user:more"}}, req{"user:goal", "assistant:other", "user:more"}, `messages[2] was assistant "half" and is assistant "other"`},
		{"a result changes", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:goal", "call:a", "result:a:z"}, `messages[3] was tool "[result of a] x" and is tool "[result of a] z"`},
		{"the goal changes", false, []req{{"user:goal", "assistant:hi", "user:x"}}, req{"user:other goal", "assistant:hi", "user:x"}, `messages[1] was user "goal" and is user "other goal"`},
		{"a status stays where it was", false, []req{{"user:goal" + status}}, req{"user:goal" + status, "call:a", "result:a:x"}, "messages[1] was"},
		{"an id changes", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:goal", "call:b", "result:b:x"}, "messages[2] was"},
		{"a fault, and then all is well", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:goal", "call:a", "result:a:x", "call:c", "result:c:x"}, ""},

		{"a compaction", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:y"}}, req{summary("s"), "call:b", "result:b:y"}, ""},
		{"of all", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{summary("s") + "\n\nnew"}, ""},
		{"a second", false, []req{{summary("s"), "call:b", "result:b:y", "call:c", "result:c:z"}}, req{summary("t"), "call:c", "result:c:z"}, ""},
		{"a second that reads the same", false, []req{{summary("s"), "call:b", "result:b:y", "call:c", "result:c:z"}}, req{summary("s"), "call:c", "result:c:z"}, ""},
		{"with shorter results", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:" + long}},
			req{summary("s"), "call:b", "result:b:" + long[:200] + "\n[… 1000 bytes left out …]\n" + long[1300:]}, ""},
		{"what is kept changes", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:y"}}, req{summary("s"), "call:b", "result:b:z"}, `after a compaction messages[3] was tool "[result of b] y"`},
		{"what is kept ends early", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:y"}}, req{summary("s"), "call:a", "result:a:x"}, "after a compaction the end of the history is missing"},
		{"the goal is lost", false, []req{{"user:goal", "call:a", "result:a:x"}}, req{"user:gaol\n\n<summary>\ns\n</summary>", "call:a", "result:a:x"}, "does not begin as it did"},
		{"no summary", false, []req{{"user:goal", "call:a", "result:a:x", "call:b", "result:b:y"}}, req{"user:goal", "call:b", "result:b:y"}, "messages[2] was"},

		{"back without leave", false, []req{{"user:goal", "assistant:one", "user:two"}}, req{"user:goal", "assistant:one", "user:three"}, `messages[3] was user "two" and is user "three"`},
		{"back", true, []req{{"user:goal", "assistant:one", "user:two", "assistant:three", "user:four"}}, req{"user:goal", "assistant:one", "user:five"}, ""},
		{"back to the goal", true, []req{{"user:goal", "assistant:one", "user:two"}}, req{"user:goal\n\nno, otherwise"}, ""},
		{"and to the first branch again", true, []req{{"user:goal", "assistant:one", "user:two"}, {"user:goal", "assistant:one", "user:three"}},
			req{"user:goal", "assistant:one", "user:two", "assistant:four", "user:five"}, ""},
		{"begun anew", true, []req{{"user:goal", "assistant:one", "user:two"}}, req{"user:another"}, ""},
		{"back to nothing that was", true, []req{{"user:goal", "assistant:one", "user:two"}}, req{"user:gaol", "assistant:one", "user:two"}, "messages[1] was"},

		{"thinking stays", false, []req{{"user:goal"}, {"user:goal", "thought:one:hm", "user:two"}}, req{"user:goal", "thought:one:ha", "user:two"}, "messages[2] was"},
		{"thinking is left out", false, []req{{"user:goal"}, {"user:goal", "thought:one:hm", "user:two"}}, req{"user:goal", "assistant:one", "user:two"}, ""},
		{"thinking comes back with its model", false, []req{{"user:goal", "thought:one:hm", "user:two"}, {"@other", "user:goal", "assistant:one", "user:two"}}, req{"user:goal", "thought:one:hm", "user:two"}, ""},
		{"another model sees another history", false, []req{{"user:goal", "assistant:one", "user:two"}}, req{"@other", "user:goal", "user:two"}, "messages[2] was"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := open(t, New(Config{Rewinds: tt.rewinds, Func: func(Request) Answer { return Answer{Say: "ok"} }}))
			send := func(r req) (int, string) {
				model := "m"
				if strings.HasPrefix(r[0], "@") {
					model, r = r[0][1:], r[1:]
				}
				status, _, got, err := post(t, m, "ses_a", history(model, true, r...))
				if err != nil {
					t.Fatal(err)
				}
				return status, got
			}
			for _, r := range tt.before {
				if status, got := send(r); status != 200 {
					t.Fatalf("%q is refused: %s", r, got)
				}
			}
			status, got := send(tt.next)
			v := m.Violations()
			if tt.want == "" {
				if status != 200 || len(v) != 0 {
					t.Errorf("refused: %d %s", status, got)
				}
				return
			}
			var e struct{ Error struct{ Message string } }
			if json.Unmarshal([]byte(got), &e) != nil || status != 400 || !strings.Contains(e.Error.Message, tt.want) || len(v) != 1 || v[0].Message != e.Error.Message {
				t.Errorf("got %d %s, %v; want %q", status, got, v, tt.want)
			}
			if status, got := send(tt.before[len(tt.before)-1]); status != 200 || len(m.Violations()) != 1 {
				t.Errorf("what came before the fault does not count any more: %s", got)
			}
			if status, _, got, _ := post(t, m, "ses_b", history("m", true, "user:goal")); status != 200 {
				t.Errorf("another session is held to it: %s", got)
			}
		})
	}
}

// A session without tools that asks one question at a time, such as one for summaries, has no history to go on from.
func TestQuestionsWithoutHistory(t *testing.T) {
	m := open(t, Func(func(Request) Answer { return Answer{Say: "ok"} }))
	for i, tt := range []struct {
		tools bool
		want  int
	}{{false, 200}, {true, 400}} {
		session := []string{"ses_a", "ses_b"}[i]
		for n, want := range []int{200, tt.want} {
			if status, _, got, _ := post(t, m, session, history("m", tt.tools, "user:question "+string(rune('1'+n)))); status != want {
				t.Errorf("question %d (tools %v) is answered with %d %s, want %d", n+1, tt.tools, status, got, want)
			}
		}
	}
}

// The key of a scenario that lets sessions go back.
func TestScenarioRewinds(t *testing.T) {
	for text, want := range map[string]int{"rewinds: true\n": 200, "rewinds: false\n": 400, "": 400} {
		s, err := Parse("x.yaml", []byte(text+"rules: [{default: true, say: ok}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		m := open(t, New(Config{Scenario: s}))
		_, _, _, _ = post(t, m, "ses_a", history("m", true, "user:goal", "assistant:one", "user:two"))
		if status, _, got, _ := post(t, m, "ses_a", history("m", true, "user:goal", "assistant:one", "user:three")); status != want {
			t.Errorf("%q: %d %s, want %d", text, status, got, want)
		}
	}
}
