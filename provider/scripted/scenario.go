package scripted

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"text/template"
	"time"

	"centurion"
)

// Scenario is a script read from a file. Using it does not change it; several models may share one.
type Scenario struct {
	name    string
	models  []string
	key     string
	latency time.Duration
	pace    time.Duration
	chunk   int
	rewinds bool
	rules   []*rule // the default rules last
}

// rule is one rule of a scenario.
type rule struct {
	name     string
	line     int
	matchers []matcher
	times    int64 // 0: unlimited
	last     bool  // a default rule

	answer    Answer // the part without templates
	say       text
	reasoning text
	raw       text
	calls     []scriptedCall
}

// matcher is one condition of a rule.
type matcher struct {
	says  string // for the explanation: agent "commander"
	holds func(*Request) bool
}

// scriptedCall is a tool call whose arguments may contain templates.
type scriptedCall struct {
	name string
	args text
	tree any // arguments as data, if any text in them is a template; then args is unused
}

// text is a text, possibly a template.
type text struct {
	plain string
	tmpl  *template.Template // nil: plain is everything
}

// run is a scenario in use.
type run struct {
	*Scenario
	used []atomic.Int64
}

func (s *Scenario) start() *run { return &run{Scenario: s, used: make([]atomic.Int64, len(s.rules))} }

// answer finds the rule for a request and fills it in.
func (s *run) answer(r Request) (Answer, error) {
	for i, rule := range s.rules {
		if rule.mismatch(&r) == "" && s.take(i) {
			a, err := rule.fill(r)
			a.Rule = rule.name
			if err != nil {
				return a, scenarioError(fmt.Sprintf("%s:%d: rule %s: %v", s.name, rule.line, rule.name, err), "")
			}
			return a, nil
		}
	}
	return Answer{}, scenarioError(s.explain(&r), "")
}

// take uses a rule once, unless it is used up.
func (s *run) take(i int) bool {
	limit := s.rules[i].times
	for {
		n := s.used[i].Load()
		if limit > 0 && n >= limit {
			return false
		}
		if s.used[i].CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *run) unused() []string {
	var names []string
	for i := range s.used {
		if s.used[i].Load() == 0 {
			names = append(names, s.rules[i].name)
		}
	}
	return names
}

// explain says why no rule answers a request.
func (s *run) explain(r *Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: no rule answers request %d (session %s, the %d. seen, turn %d, step %d, agent %q, newest message %q)",
		s.name, r.Number, r.Session, r.Nth, r.Turn, r.Step(), r.Agent(), centurion.Clip(r.Last(), 200))
	for _, rule := range s.rules {
		why := rule.mismatch(r)
		if why == "" {
			why = fmt.Sprintf("has answered %d times already", rule.times)
		} else {
			why += " does not hold"
		}
		fmt.Fprintf(&b, "\n  line %d, rule %s: %s", rule.line, rule.name, why)
	}
	return b.String()
}

// mismatch returns the first matcher that does not hold, or "".
func (r *rule) mismatch(req *Request) string {
	for _, m := range r.matchers {
		if !m.holds(req) {
			return m.says
		}
	}
	return ""
}

// fill builds the answer to a request.
func (r *rule) fill(req Request) (Answer, error) {
	a := r.answer
	f := filler{req: req}
	a.Say, a.Reasoning, a.Raw = f.text(r.say), f.text(r.reasoning), f.text(r.raw)
	if len(r.calls) > 0 {
		a.Calls = make([]Call, len(r.calls))
	}
	for i, c := range r.calls {
		a.Calls[i] = Call{Name: c.name, Arguments: f.text(c.args)}
		if c.tree != nil {
			a.Calls[i].Arguments = f.arguments(c.tree)
		}
	}
	return a, f.err
}

// filler fills in templates from a request. It keeps its first error.
type filler struct {
	req  Request
	data *templateData
	err  error
}

// templateData is the data of a template.
type templateData struct {
	Session, Parent, Agent, Model, First, Last string
	Nth, Turn, Step                            int
}

func (f *filler) text(t text) string {
	if t.tmpl == nil || f.err != nil {
		return t.plain
	}
	if f.data == nil {
		r := f.req
		f.data = &templateData{Session: r.Session, Parent: r.Parent, Agent: r.Agent(), Model: r.Model, First: r.First(),
			Last: r.Last(), Nth: r.Nth, Turn: r.Turn, Step: r.Step()}
	}
	tmpl, err := t.tmpl.Clone()
	if err != nil {
		f.err = err
		return ""
	}
	var b strings.Builder
	f.err = tmpl.Funcs(template.FuncMap{"find": f.find}).Execute(&b, f.data)
	return b.String()
}

func (f *filler) find(expr string) (string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", err
	}
	found, ok := f.req.Find(re)
	if !ok {
		return "", fmt.Errorf("nothing matches %s in any message; the newest is %q", expr, centurion.Clip(f.req.Last(), 200))
	}
	return found, nil
}

// arguments fills in the texts of a tree and returns it as JSON.
func (f *filler) arguments(tree any) string {
	b, err := marshalTree(f.tree(tree))
	if err != nil && f.err == nil {
		f.err = err
	}
	return string(b)
}

func (f *filler) tree(v any) any {
	switch v := v.(type) {
	case text:
		return f.text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = f.tree(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = f.tree(e)
		}
		return out
	}
	return v
}

// newText parses a text; it is a template if it contains {{.
func newText(s string) (text, error) {
	if !strings.Contains(s, "{{") {
		return text{plain: s}, nil
	}
	tmpl, err := template.New("text").Option("missingkey=error").
		Funcs(template.FuncMap{"find": func(string) (string, error) { return "", nil }}).Parse(s)
	return text{plain: s, tmpl: tmpl}, err
}

func scenarioError(msg, hint string) error {
	return &centurion.Error{Op: "scenario", Kind: centurion.KindConfig, Msg: msg, Hint: hint}
}
