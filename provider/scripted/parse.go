package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"centurion"
	"centurion/guard"
)

// Load reads a scenario file.
func Load(path string) (*Scenario, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		kind := centurion.KindConfig
		if errors.Is(err, os.ErrNotExist) {
			kind = centurion.KindNotFound
		}
		return nil, &centurion.Error{Op: "read scenario", Kind: kind, Err: err}
	}
	return Parse(path, b)
}

// Parse reads a scenario. Errors are of centurion.KindConfig and name the file, the line and, for an unknown key, the nearest one.
func Parse(name string, b []byte) (s *Scenario, err error) {
	// The YAML parser is the only code here that walks a foreign grammar; a panic in it means a faulty file.
	perr := guard.Call("parse", func() error {
		s, err = parse(name, b)
		return nil
	})
	if perr != nil {
		return nil, scenarioError(fmt.Sprintf("%s: the file cannot be parsed as YAML: %v", name, perr), "")
	}
	return s, err
}

func parse(name string, b []byte) (*Scenario, error) {
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		if ye, ok := errors.AsType[yaml.Error](err); ok && ye.GetToken() != nil && ye.GetToken().Position != nil {
			return nil, scenarioError(fmt.Sprintf("%s:%d: %s", name, ye.GetToken().Position.Line, ye.GetMessage()), "")
		}
		return nil, scenarioError(name+": "+err.Error(), "")
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, scenarioError(name+": the file holds no scenario; it needs at least the key rules", "")
	}
	s := &Scenario{name: name}
	d := &decoder{file: name}
	err = d.object(file.Docs[0].Body, "a scenario", fields{
		"models":  d.strings(&s.models),
		"key":     d.string(&s.key),
		"latency": d.duration(&s.latency),
		"pace":    d.duration(&s.pace),
		"chunk":   d.int(&s.chunk, -1),
		"rewinds": d.bool(&s.rewinds),
		"rules":   d.rules(s),
	})
	if err != nil {
		return nil, err
	}
	if len(s.rules) == 0 {
		return nil, scenarioError(name+": the scenario has no rules", "")
	}
	slices.SortStableFunc(s.rules, func(a, b *rule) int {
		switch {
		case a.last == b.last:
			return 0
		case a.last:
			return 1
		}
		return -1
	})
	return s, nil
}

// decoder turns YAML nodes into a scenario. It knows the file for its errors.
type decoder struct{ file string }

// fields maps the keys of a mapping to their readers.
type fields map[string]func(ast.Node) error

func (d *decoder) errorf(n ast.Node, format string, a ...any) error {
	line := 0
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		line = n.GetToken().Position.Line
	}
	return scenarioError(fmt.Sprintf("%s:%d: ", d.file, line)+fmt.Sprintf(format, a...), "")
}

// pairs returns the entries of a mapping.
func (d *decoder) pairs(n ast.Node, what string) ([]*ast.MappingValueNode, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	}
	return nil, d.errorf(n, "%s is a mapping of keys to values", what)
}

func (d *decoder) object(n ast.Node, what string, known fields) error {
	pairs, err := d.pairs(n, what)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		key := p.Key.String()
		f, ok := known[key]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			if near := centurion.Nearest(key, names); near != "" {
				return d.errorf(p.Key, "%s has no key %q; did you mean %q?", what, key, near)
			}
			return d.errorf(p.Key, "%s has no key %q; it may have %s", what, key, strings.Join(names, ", "))
		}
		if err := f(p.Value); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) list(n ast.Node, what string, f func(ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return d.errorf(n, "%s is a list", what)
	}
	for _, v := range seq.Values {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a scalar as written, without its quotes.
func (d *decoder) scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", d.errorf(n, "a text is needed here")
}

func (d *decoder) string(to *string) func(ast.Node) error {
	return func(n ast.Node) (err error) {
		*to, err = d.scalar(n)
		return err
	}
}

// strings reads a text or a list of texts.
func (d *decoder) strings(to *[]string) func(ast.Node) error {
	one := func(n ast.Node) error {
		s, err := d.scalar(n)
		*to = append(*to, s)
		return err
	}
	return func(n ast.Node) error {
		if _, ok := n.(*ast.SequenceNode); ok {
			return d.list(n, "this", one)
		}
		return one(n)
	}
}

func (d *decoder) int(to *int, least int) func(ast.Node) error {
	return func(n ast.Node) error {
		v, err := d.scalar(n)
		if err != nil {
			return err
		}
		if *to, err = strconv.Atoi(v); err != nil || *to < least {
			return d.errorf(n, "%q is not a whole number of at least %d", v, least)
		}
		return nil
	}
}

func (d *decoder) bool(to *bool) func(ast.Node) error {
	return func(n ast.Node) error {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return d.errorf(n, "true or false is needed here")
		}
		*to = b.Value
		return nil
	}
}

func (d *decoder) duration(to *time.Duration) func(ast.Node) error {
	return func(n ast.Node) error {
		s, err := d.scalar(n)
		if err != nil {
			return err
		}
		if *to, err = time.ParseDuration(s); err != nil || *to < 0 {
			return d.errorf(n, "%q is not a duration such as 200ms or 2s", s)
		}
		return nil
	}
}

// seconds reads a number of seconds, or a duration.
func (d *decoder) seconds(to *time.Duration) func(ast.Node) error {
	return func(n ast.Node) error {
		if i, ok := n.(*ast.IntegerNode); ok {
			secs, err := strconv.Atoi(i.GetToken().Value)
			*to = time.Duration(secs) * time.Second
			if err == nil && secs >= 0 {
				return nil
			}
		}
		return d.duration(to)(n)
	}
}

func (d *decoder) text(to *text) func(ast.Node) error {
	return func(n ast.Node) error {
		s, err := d.scalar(n)
		if err != nil {
			return err
		}
		if *to, err = newText(s); err != nil {
			return d.errorf(n, "the text is no template: %v", err)
		}
		return nil
	}
}

func (d *decoder) rules(s *Scenario) func(ast.Node) error {
	return func(n ast.Node) error {
		return d.list(n, "rules", func(n ast.Node) error {
			r, err := d.rule(n, len(s.rules)+1)
			s.rules = append(s.rules, r)
			return err
		})
	}
}

func (d *decoder) rule(n ast.Node, number int) (*rule, error) {
	r := &rule{name: strconv.Itoa(number)}
	pairs, err := d.pairs(n, "a rule")
	if err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, d.errorf(n, "the rule is empty")
	}
	r.line = pairs[0].Key.GetToken().Position.Line
	answers := false
	answer := func(f func(ast.Node) error) func(ast.Node) error {
		return func(n ast.Node) error { answers = true; return f(n) }
	}
	a := &r.answer
	err = d.object(n, "a rule", fields{
		"name":      d.string(&r.name),
		"when":      func(n ast.Node) error { return d.when(n, r) },
		"default":   d.bool(&r.last),
		"say":       answer(d.text(&r.say)),
		"reasoning": answer(d.text(&r.reasoning)),
		"raw":       answer(d.text(&r.raw)),
		"calls":     answer(func(n ast.Node) error { return d.calls(n, r) }),
		"error":     answer(func(n ast.Node) error { return d.error(n, a) }),
		"usage":     func(n ast.Node) error { return d.usage(n, a) },
		"finish":    d.string(&a.Finish),
		"delay":     d.duration(&a.Delay),
		"pace":      d.duration(&a.Pace),
		"chunk":     d.int(&a.Chunk, -1),
		"stall":     d.duration(&a.Stall),
		"cut":       func(n ast.Node) error { return d.cut(n, a) },
	})
	switch {
	case err != nil:
		return nil, err
	case !answers && a.Cut == "" && a.Stall == 0 && a.Finish == "":
		return nil, d.errorf(pairs[0].Key, "rule %s answers nothing; it needs say, calls, error, raw, cut or stall", r.name)
	case !answers:
		r.say.plain = "This answer breaks off before it is complete."
	}
	return r, nil
}

func (d *decoder) when(n ast.Node, r *rule) error {
	add := func(m matcher, err error, n ast.Node) error {
		if err != nil {
			return d.errorf(n, "not a regular expression: %v", err)
		}
		r.matchers = append(r.matchers, m)
		return nil
	}
	texts := func(key string, where func(*Request) []string) func(ast.Node) error {
		return func(n ast.Node) error {
			var all []string
			if err := d.strings(&all)(n); err != nil {
				return err
			}
			m, err := matchTexts(key, all, where)
			return add(m, err, n)
		}
	}
	one := func(f func(string) (matcher, error)) func(ast.Node) error {
		return func(n ast.Node) error {
			s, err := d.scalar(n)
			if err != nil {
				return err
			}
			m, err := f(s)
			return add(m, err, n)
		}
	}
	sure := func(f func(string) matcher) func(ast.Node) error {
		return one(func(s string) (matcher, error) { return f(s), nil })
	}
	number := func(key string, of func(*Request) int) func(ast.Node) error {
		return func(n ast.Node) error {
			var i int
			if err := d.int(&i, 1)(n); err != nil {
				return err
			}
			return add(matchNumber(key, i, of), nil, n)
		}
	}
	return d.object(n, "when", fields{
		"session":     sure(matchSession),
		"model":       sure(matchModel),
		"has_tool":    sure(matchTool),
		"agent":       one(matchAgent),
		"item":        sure(matchItem),
		"turn":        number("turn", func(r *Request) int { return r.Turn }),
		"step":        number("step", func(r *Request) int { return r.Step() }),
		"first":       texts("first", first),
		"last":        texts("last", last),
		"contains":    texts("contains", anywhere),
		"tool_result": texts("tool_result", results),
		"file":        texts("file", filesOf),
		"root": func(n ast.Node) error {
			var root bool
			if err := d.bool(&root)(n); err != nil {
				return err
			}
			return add(matchRoot(root), nil, n)
		},
		"times": func(n ast.Node) error {
			var times int
			err := d.int(&times, 1)(n)
			r.times = int64(times)
			return err
		},
	})
}

func (d *decoder) calls(n ast.Node, r *rule) error {
	return d.list(n, "calls", func(n ast.Node) error {
		pairs, err := d.pairs(n, "a call")
		if err != nil {
			return err
		}
		if len(pairs) != 1 {
			return d.errorf(n, "a call is one tool with its arguments, such as «- read: {filePath: a.go}»; here are %d keys", len(pairs))
		}
		c := scriptedCall{name: pairs[0].Key.String()}
		switch v := pairs[0].Value.(type) {
		case *ast.StringNode, *ast.LiteralNode:
			err = d.text(&c.args)(v)
		case *ast.NullNode:
			c.args.plain = "{}"
		case *ast.MappingNode, *ast.MappingValueNode:
			err = d.arguments(v, &c)
		default:
			err = d.errorf(v, "the arguments of %s are a mapping, or a text that is sent as it is", c.name)
		}
		r.calls = append(r.calls, c)
		return err
	})
}

// arguments reads the arguments of a call. Without templates they are converted to JSON once.
func (d *decoder) arguments(n ast.Node, c *scriptedCall) error {
	var data map[string]any
	if err := yaml.NodeToValue(n, &data); err != nil {
		return d.errorf(n, "the arguments of %s cannot be read: %v", c.name, err)
	}
	templates := false
	tree, err := withTexts(data, &templates)
	if err != nil {
		return d.errorf(n, "an argument of %s is no template: %v", c.name, err)
	}
	if templates {
		c.tree = tree
		return nil
	}
	b, err := marshalTree(data)
	if err != nil {
		return d.errorf(n, "the arguments of %s cannot be written as JSON: %v", c.name, err)
	}
	c.args.plain = string(b)
	return nil
}

// withTexts returns the tree with every text parsed, and whether one of them is a template.
func withTexts(v any, templates *bool) (any, error) {
	switch v := v.(type) {
	case string:
		t, err := newText(v)
		if t.tmpl != nil {
			*templates = true
		}
		return t, err
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = withTexts(e, templates); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			var err error
			if out[k], err = withTexts(e, templates); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// marshalTree writes JSON as a model would: without escapes only needed in HTML.
func marshalTree(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

func (d *decoder) error(n ast.Node, a *Answer) error {
	a.Error = &Error{}
	err := d.object(n, "error", fields{
		"status":      d.int(&a.Error.Status, 100),
		"message":     d.string(&a.Error.Message),
		"type":        d.string(&a.Error.Type),
		"code":        d.string(&a.Error.Code),
		"retry_after": d.seconds(&a.Error.RetryAfter),
		"stream":      d.bool(&a.Error.Stream),
	})
	if err == nil && a.Error.Status != 0 && !a.Error.Stream && (a.Error.Status < 400 || a.Error.Status > 599) {
		return d.errorf(n, "%d is no status of an error; those are 400 to 599", a.Error.Status)
	}
	return err
}

func (d *decoder) usage(n ast.Node, a *Answer) error {
	a.Usage = &Usage{}
	return d.object(n, "usage", fields{
		"input":     d.int(&a.Usage.Input, 0),
		"output":    d.int(&a.Usage.Output, 0),
		"cached":    d.int(&a.Usage.Cached, 0),
		"reasoning": d.int(&a.Usage.Reasoning, 0),
	})
}

func (d *decoder) cut(n ast.Node, a *Answer) error {
	s, err := d.scalar(n)
	if err != nil {
		return err
	}
	switch s {
	case "true", string(CutHalf):
		a.Cut = CutHalf
	case "false":
	case string(CutLate), string(CutReset):
		a.Cut = Cut(s)
	default:
		return d.errorf(n, "cut is true, late or reset, not %q", s)
	}
	return nil
}
