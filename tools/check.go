package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
)

// maxFaults limits the faults reported for one input: enough to correct a call at once.
const maxFaults = 5

// Normalize repairs unambiguous mistakes of models and checks the rest: a number, boolean, list or object written as a string; a single
// value for a list; null for an optional property; a property spelt with other capitals or underscores. A correct input is returned
// unchanged. Errors are of [centurion.KindUsage], for a model: the property, the given value, and what is expected.
func Normalize(t Tool, input json.RawMessage) (json.RawMessage, error) {
	v, err := parseInput(t, input)
	if err != nil {
		return nil, err
	}
	r := repairer{}
	if s, ok := v.(string); ok { // the whole object written as a string
		if inner, ok := parseString(s, "object"); ok {
			v, r.changed = inner, true
		}
	}
	v = r.value(t.Schema(), v)
	if err := check(t, v); err != nil {
		return nil, err
	}
	if !r.changed && len(bytes.TrimSpace(input)) > 0 {
		return input, nil
	}
	return json.Marshal(v)
}

func parseInput(t Tool, input json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(input)) == 0 {
		return map[string]any{}, nil
	}
	v, err := parseJSON(input)
	if err != nil {
		msg := "the arguments are not valid JSON"
		if syn, ok := errors.AsType[*json.SyntaxError](err); ok {
			at := int(min(max(syn.Offset, 0), int64(len(input))))
			msg += fmt.Sprintf(" at byte %d, after %q", at, tailRunes(string(input[:at]), 30))
		}
		return nil, &centurion.Error{Op: t.Name(), Kind: centurion.KindUsage, Msg: msg, Err: err,
			Hint: "send one JSON object: " + signature(t)}
	}
	return v, nil
}

func parseJSON(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is something after the object")
	}
	return v, nil
}

func check(t Tool, v any) error {
	f := faults{}
	f.value("", t.Schema(), v)
	if len(f.list) > 0 {
		more := ""
		if n := len(f.list) - maxFaults; n > 0 {
			more = fmt.Sprintf("; and %d more", n)
			f.list = f.list[:maxFaults]
		}
		return &centurion.Error{Op: t.Name(), Kind: centurion.KindUsage, Msg: strings.Join(f.list, "; ") + more,
			Hint: "the arguments are " + signature(t)}
	}
	// The library checks the parts of a schema that the code above does not know.
	c := compile(t)
	if c.err != nil {
		return &centurion.Error{Op: t.Name(), Kind: centurion.KindInternal, Msg: "the tool's own schema is wrong", Err: c.err}
	}
	if err := c.resolved.Validate(plain(v)); err != nil {
		return &centurion.Error{Op: t.Name(), Kind: centurion.KindUsage, Msg: "the arguments do not fit the tool's schema",
			Err: err, Hint: "the arguments are " + signature(t)}
	}
	return nil
}

// plain replaces every json.Number by a float64, the only number type of the schema library.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	}
	return v
}

// signature is the tool's input in one line: {filePath, offset?, limit?}.
func signature(t Tool) string {
	s := offered(t.Schema())
	names := s.PropertyOrder
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.Properties))
	}
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = n
		if !slices.Contains(s.Required, n) {
			parts[i] += "?"
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// faults collects the faults of a value.
type faults struct{ list []string }

func (f *faults) add(path, format string, args ...any) {
	what := "the input"
	if path != "" {
		what = fmt.Sprintf("%q", path)
	}
	f.list = append(f.list, what+" "+fmt.Sprintf(format, args...))
}

func (f *faults) value(path string, s *jsonschema.Schema, v any) {
	if s == nil {
		return
	}
	if s.Type != "" && !hasType(v, s.Type) {
		f.add(path, "is %s and has to be %s", shown(v), article(s.Type))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f.object(path, s, v)
	case []any:
		for i, e := range v {
			f.value(fmt.Sprintf("%s[%d]", path, i), s.Items, e)
		}
	case string:
		if s.MinLength != nil && utf8.RuneCountInString(v) < *s.MinLength {
			f.add(path, "is empty and has to say something")
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v)) {
			names := make([]string, len(s.Enum))
			for i, e := range s.Enum {
				names[i] = fmt.Sprint(e)
			}
			f.add(path, "is %s and has to be one of %s%s", shown(v), strings.Join(names, ", "), didYouMean(v, names))
		}
	case json.Number:
		n, _ := v.Float64()
		if s.Minimum != nil && n < *s.Minimum {
			f.add(path, "is %s and has to be at least %v", v, int64(*s.Minimum))
		}
		if s.Maximum != nil && n > *s.Maximum {
			f.add(path, "is %s and has to be at most %v", v, int64(*s.Maximum))
		}
	}
}

func (f *faults) object(path string, s *jsonschema.Schema, v map[string]any) {
	join := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			p := s.Properties[name]
			f.add(join(name), "is missing (%s: %s)", article(p.Type), p.Description)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.Properties[name]
		if ok {
			f.value(join(name), p, v[name])
		} else if s.AdditionalProperties != nil {
			f.add(join(name), "is not a property%s", didYouMean(name, slices.Sorted(maps.Keys(s.Properties))))
		}
	}
}

func hasType(v any, typ string) bool {
	switch v := v.(type) {
	case nil:
		return typ == "null"
	case bool:
		return typ == "boolean"
	case string:
		return typ == "string"
	case json.Number:
		return typ == "number" || typ == "integer" && isInteger(v)
	case []any:
		return typ == "array"
	case map[string]any:
		return typ == "object"
	}
	return false
}

// isInteger reports whether n is a whole number that fits an int64, in any notation.
func isInteger(n json.Number) bool {
	if len(n) > 40 { // 1e999999999 would take forever
		return false
	}
	f, err := n.Float64()
	if err != nil || f < -1<<62 || f > 1<<62 {
		return false
	}
	r, ok := new(big.Rat).SetString(string(n))
	return ok && r.IsInt()
}

func article(typ string) string {
	switch typ {
	case "array":
		return "a list"
	case "integer":
		return "a whole number"
	case "object":
		return "an object"
	}
	return "a " + typ
}

// shown is a value as written by the model, shortened for an error.
func shown(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "something unreadable"
	}
	return headRunes(string(b), 60)
}

// repairer converts values to the schema's types where the meaning is unambiguous.
type repairer struct{ changed bool }

func (r *repairer) value(s *jsonschema.Schema, v any) any {
	if s == nil {
		return v
	}
	if s.Type != "" && !hasType(v, s.Type) {
		if w, ok := convert(s, v); ok {
			r.changed = true
			v = w
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return r.object(s, v)
	case []any:
		for i := range v {
			v[i] = r.value(s.Items, v[i])
		}
	case json.Number:
		if s.Type == "integer" && isInteger(v) && strings.ContainsAny(string(v), ".eE") { // 5.0 and 5e0 do not unmarshal into an int
			r.changed = true
			rat, _ := new(big.Rat).SetString(string(v))
			return json.Number(rat.Num().String())
		}
	}
	return v
}

func (r *repairer) object(s *jsonschema.Schema, v map[string]any) any {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if _, ok := s.Properties[name]; ok {
			continue
		}
		for known := range s.Properties {
			if _, taken := v[known]; !taken && sameName(name, known) {
				v[known] = v[name]
				delete(v, name)
				r.changed = true
				break
			}
		}
	}
	for name, p := range s.Properties {
		e, ok := v[name]
		if !ok {
			continue
		}
		if e == nil && !slices.Contains(s.Required, name) {
			delete(v, name)
			r.changed = true
			continue
		}
		v[name] = r.value(p, e)
	}
	return v
}

// convert returns v as the type of s, and whether the conversion is unambiguous.
func convert(s *jsonschema.Schema, v any) (any, bool) {
	if str, ok := v.(string); ok {
		if w, ok := parseString(str, s.Type); ok {
			return w, true
		}
	}
	switch s.Type {
	case "string":
		switch v := v.(type) {
		case json.Number:
			return v.String(), true
		case bool:
			return fmt.Sprint(v), true
		}
	case "array":
		if s.Items == nil || v == nil {
			return nil, false
		}
		if str, ok := v.(string); ok && strings.TrimSpace(str) == "" {
			return []any{}, true
		}
		if hasType(v, s.Items.Type) {
			return []any{v}, true
		}
	}
	return nil, false
}

// parseString parses a value of the type from a string: "12", "true", "[1, 2]", "{…}".
func parseString(s, typ string) (any, bool) {
	s = strings.TrimSpace(s)
	if typ == "boolean" {
		s = strings.ToLower(s) // Python's True and False
	}
	if typ == "string" || s == "" {
		return nil, false
	}
	v, err := parseJSON([]byte(s))
	return v, err == nil && v != nil && hasType(v, typ)
}

// sameName reports whether two property names differ only in capitals, underscores and dashes.
func sameName(a, b string) bool {
	fold := strings.NewReplacer("_", "", "-", "")
	return strings.EqualFold(fold.Replace(a), fold.Replace(b))
}

// didYouMean returns `; did you mean "x"?`, or "" if no candidate is similar.
func didYouMean(given string, candidates []string) string {
	if near := nearest(given, candidates, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	return ""
}

// nearest returns up to n candidates similar to given, most similar first: those with few different letters, then those that contain it
// or are contained in it.
func nearest(given string, candidates []string, n int) []string {
	candidates = slices.Clone(candidates)
	var out []string
	for len(out) < n {
		near := centurion.Nearest(given, candidates)
		if near == "" {
			break
		}
		out = append(out, near)
		candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == near })
	}
	g := strings.ToLower(given)
	for _, c := range candidates {
		l := strings.ToLower(c)
		if len(out) < n && min(len(g), len(l)) >= 3 && (strings.Contains(l, g) || strings.Contains(g, l)) {
			out = append(out, c)
		}
	}
	return out
}
