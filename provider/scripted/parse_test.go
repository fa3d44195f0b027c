package scripted

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"centurion"
)

func TestMatchers(t *testing.T) {
	worker := []string{"system:You are the Worker in a mission.\nThe Commander rules.", "user:## T1.2 Parse\n\nDo T3."}
	later := append(worker[:2:2], `call:a,read,{"filePath":"x.go"}`, "tool:a=one task tsk_1 found", "user:<status>")
	tests := []struct {
		when string
		msgs []string
		want bool
	}{
		{"{}", worker, true},
		{"{agent: worker}", worker, true},
		{"{agent: commander}", worker, false}, // its name stands in the second line
		{"{agent: '^you are the w'}", worker, true},
		{"{item: T3}", worker, true},
		{"{item: T1.2}", worker, true},
		{"{item: T1}", worker, false},
		{"{item: '2'}", worker, false},
		{"{turn: 1}", worker, true},
		{"{turn: 2}", worker, false},
		{"{step: 1}", worker, true},
		{"{step: 2}", later, true},
		{"{session: 1}", worker, true},
		{"{session: 2}", worker, false},
		{"{session: ses_m}", worker, true},
		{"{session: ses_x}", worker, false},
		{"{root: true}", worker, true},
		{"{root: false}", worker, false},
		{"{model: scripted}", worker, true},
		{"{model: other}", worker, false},
		{"{first: Parse}", later, true},
		{"{first: /^## T\\d/}", later, true},
		{"{first: [Parse, T3]}", later, true},
		{"{first: [Parse, T4]}", later, false},
		{"{first: tsk_1}", later, false},
		{"{last: status}", later, true},
		{"{last: Parse}", later, false},
		{"{contains: Parse}", later, true},
		{"{contains: x.go}", later, true},
		{"{contains: /tsk_\\d found$/}", later, true},
		{"{contains: absent}", later, false},
		{"{tool_result: tsk_1}", later, true},
		{"{tool_result: tsk_1}", worker, false},
		{"{tool_result: tsk_1}", append(later[:4:4], "assistant:I see", "user:go on"), false}, // answered before
		{"{has_tool: read}", worker, true},
		{"{has_tool: bash}", worker, false},
		{"{agent: worker, turn: 1, last: T3}", worker, true},
		{"{agent: worker, turn: 1, last: T4}", worker, false},
	}
	for _, tt := range tests {
		m := scenario(t, "rules:\n  - when: "+tt.when+"\n    say: yes, it matched\n  - default: true\n    say: other\n")
		b := strings.Replace(body(false, tt.msgs...), "{", `{"tools":[{"type":"function","function":{"name":"read"}}],`, 1)
		status, _, got, err := post(t, m, "ses_m", b)
		if status != 200 {
			t.Fatalf("%s: %d %s %v", tt.when, status, got, err)
		}
		if matched := strings.Contains(got, "yes, it matched"); matched != tt.want {
			t.Errorf("%s on %q: got %v, want %v", tt.when, tt.msgs, matched, tt.want)
		}
	}
}

func TestDefaultRulesComeLast(t *testing.T) {
	m := scenario(t, "rules:\n  - {default: true, say: general}\n  - {when: {last: x}, say: special}\n")
	if _, _, got, _ := post(t, m, "a", body(false, "system:s", "user:x")); !strings.Contains(got, "special") {
		t.Errorf("got %s", got)
	}
	if _, _, got, _ := post(t, m, "a", body(false, "system:s", "user:y")); !strings.Contains(got, "general") {
		t.Errorf("got %s", got)
	}
}

func TestTemplates(t *testing.T) {
	m := scenario(t, `
rules:
  - when: {last: raw}
    calls:
      - read: '{"broken": '
      - ls:
  - when: {last: nothing}
    say: '{{find `+"`absent (\\d+)`"+`}}'
  - say: '{{.Agent}} {{.Session}} {{.Turn}}/{{.Step}}: {{find `+"`task (tsk_\\w+)`"+`}}, {{find `+"`goal .*`"+`}}'
    calls:
      - get_task_result: {task_id: '{{find `+"`tsk_\\w+`"+`}}', deep: [{x: "{{.Turn}}"}, 7, true, null], plain: "a \"quoted\" one"}
`)
	msgs := []string{"system:You are the Commander", "user:the goal is x", "call:a,delegate_task,{}", "tool:a=started task tsk_1", "user:also task tsk_2 runs"}
	status, _, got, _ := post(t, m, "ses_t", body(false, msgs...))
	var r openai.ChatCompletionResponse
	if err := json.Unmarshal([]byte(got), &r); status != 200 || err != nil {
		t.Fatal(status, got, err)
	}
	msg := r.Choices[0].Message
	if want := "commander ses_t 1/2: tsk_2, goal is x"; msg.Content != want {
		t.Errorf("got %q, want %q", msg.Content, want)
	}
	if want := `{"deep":[{"x":"1"},7,true,null],"plain":"a \"quoted\" one","task_id":"tsk_2"}`; msg.ToolCalls[0].Function.Arguments != want {
		t.Errorf("got %s, want %s", msg.ToolCalls[0].Function.Arguments, want)
	}

	_, _, got, _ = post(t, m, "ses_r", body(false, "system:s", "user:raw"))
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		t.Fatal(err)
	}
	if c := r.Choices[0].Message.ToolCalls; c[0].Function.Arguments != `{"broken": ` || c[1].Function.Arguments != "{}" {
		t.Errorf("got %+v", c)
	}

	status, _, got, _ = post(t, m, "ses_n", body(false, "system:s", "user:nothing"))
	if status != 500 || !strings.Contains(got, "nothing matches absent") || !strings.Contains(got, "test.yaml:7: rule 2") {
		t.Errorf("got %d %s", status, got)
	}
}

// Errors in a scenario name the file, the line and the nearest key.
func TestParseErrors(t *testing.T) {
	tests := []struct {
		yaml string
		want []string
	}{
		{"", []string{"f.yaml: the file holds no scenario"}},
		{"rules: []", []string{"no rules"}},
		{"rules:\n  - say: x\n  - sya: y\n", []string{"f.yaml:3:", `no key "sya"`, `did you mean "say"?`}},
		{"rule:\n  - say: x\n", []string{"f.yaml:1:", `did you mean "rules"?`}},
		{"rules:\n  - when: {agnt: x}\n    say: x\n", []string{"f.yaml:2:", `did you mean "agent"?`}},
		{"rules:\n  - when:\n      agent: x\n      trun: 1\n    say: x\n", []string{"f.yaml:4:", `did you mean "turn"?`}},
		{"rules:\n  - error:\n      statsu: 429\n", []string{"f.yaml:3:", `did you mean "status"?`}},
		{"rules:\n  - say: x\n    usage: {inputs: 3}\n", []string{"f.yaml:3:", `did you mean "input"?`}},
		{"rules:\n  - say: x\n    zzzzzzzzz: 3\n", []string{"f.yaml:3:", "it may have calls, chunk, cut"}},
		{"latency: soon\nrules: [{say: x}]", []string{"f.yaml:1:", `"soon" is not a duration such as 200ms`}},
		{"rules:\n  - say: x\n    delay: 5\n", []string{"f.yaml:3:", "not a duration"}},
		{"rules:\n  - when: {turn: 0}\n    say: x\n", []string{"f.yaml:2:", "at least 1"}},
		{"rules:\n  - when: {turn: first}\n    say: x\n", []string{"f.yaml:2:", "whole number"}},
		{"rules:\n  - when: {last: '/(/'}\n    say: x\n", []string{"f.yaml:2:", "not a regular expression"}},
		{"rules:\n  - when: {agent: '('}\n    say: x\n", []string{"f.yaml:2:", "not a regular expression"}},
		{"rules:\n  - name: x\n", []string{"f.yaml:2:", "answers nothing"}},
		{"rules:\n  - say: '{{.Session'\n", []string{"f.yaml:2:", "no template"}},
		{"rules:\n  - calls: [{read: {a: '{{'}}]\n", []string{"f.yaml:2:", "argument of read is no template"}},
		{"rules:\n  - calls: {read: {a: b}}\n", []string{"f.yaml:2:", "calls is a list"}},
		{"rules:\n  - calls:\n    - read: {}\n      ls: {}\n", []string{"f.yaml:3:", "2 keys"}},
		{"rules:\n  - calls: [{read: 7}]\n", []string{"f.yaml:2:", "arguments of read are a mapping"}},
		{"rules:\n  - error: {status: 200}\n", []string{"f.yaml:2:", "400 to 599"}},
		{"rules:\n  - cut: maybe\n", []string{"f.yaml:2:", "cut is true, late or reset"}},
		{"rules:\n  - default: perhaps\n    say: x\n", []string{"f.yaml:2:", "true or false"}},
		{"rules: x", []string{"f.yaml:1:", "rules is a list"}},
		{"rules: [x]", []string{"f.yaml:1:", "a rule is a mapping"}},
		{"- x", []string{"f.yaml:1:", "a scenario is a mapping"}},
		{"rules:\n  - say: [x]\n", []string{"f.yaml:2:", "a text is needed"}},
		{"rules:\n  - say: x\n    say: y\n", []string{"f.yaml:3:", "say"}},
		{"rules:\n  - say: \"x\n", []string{"f.yaml:2:"}},
	}
	for _, tt := range tests {
		_, err := Parse("f.yaml", []byte(tt.yaml))
		if err == nil {
			t.Errorf("%q is accepted", tt.yaml)
			continue
		}
		if centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("%q: kind %s", tt.yaml, centurion.KindOf(err))
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v\ndoes not contain %q", tt.yaml, err, want)
			}
		}
	}
}

// The example in the package comment is a valid scenario.
func TestExampleInTheComment(t *testing.T) {
	src, err := os.ReadFile("scripted.go")
	if err != nil {
		t.Fatal(err)
	}
	var yaml strings.Builder
	for line := range strings.Lines(string(src)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			yaml.WriteString(rest)
		}
		if strings.HasPrefix(line, "// All matchers") {
			break
		}
	}
	s, err := Parse("comment", []byte(yaml.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.rules) != 4 || s.key != "sk-test" || s.rules[0].answer.Usage.Cached != 1000 || !s.rules[3].last {
		t.Errorf("got %+v", s)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mit Umläut.yaml")
	if _, err := Load(path); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("rules: [{say: x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("rules:\n  - when: {agent: x, turn: 1, last: [a, b]}\n    calls: [{read: {a: 1}}]\n    error: {status: 429, retry_after: 2}\n")
	f.Add("rules:\n  - say: |\n      a\n      b\n    cut: true\n  - {default: true, say: '{{.Turn}}'}\n")
	f.Add("rules: &a [*a]")
	f.Add("latency: 1s\nrules: [{say: !!binary aGk=}]")
	f.Fuzz(func(t *testing.T, yaml string) {
		s, err := Parse("f", []byte(yaml))
		if (s == nil) == (err == nil) {
			t.Fatalf("got %v and %v", s, err)
		}
	})
}
