package plugin

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// argumentsFor makes arguments that a schema allows, and some that it does not; nil where there are none.
func argumentsFor(schema json.RawMessage) (good, bad json.RawMessage) {
	s := new(jsonschema.Schema)
	if strings.Contains(string(schema), `"$ref"`) || json.Unmarshal(schema, s) != nil { // one may lead to itself
		return nil, nil
	}
	valid, err := s.Resolve(nil)
	if err != nil {
		return nil, nil
	}
	sample, _ := sampleOf(s).(map[string]any)
	tried := []map[string]any{{}}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		for _, value := range []any{map[string]any{"no": true}, "no", -1.5} {
			other := maps.Clone(sample)
			if other == nil {
				other = map[string]any{}
			}
			other[name] = value
			tried = append(tried, other)
		}
	}
	if sample != nil && valid.Validate(sample) == nil {
		good, _ = json.Marshal(sample)
	}
	for _, args := range append(tried, map[string]any{"no such argument": true}) {
		if valid.Validate(args) != nil {
			bad, _ = json.Marshal(args)
			break
		}
	}
	return good, bad
}

// sampleOf makes a value for a schema, of an object with what is required only. It may be wrong, as for a pattern.
func sampleOf(s *jsonschema.Schema) any {
	var given any
	switch {
	case s == nil:
		return "text"
	case s.Const != nil:
		return *s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.Default) > 0 && json.Unmarshal(s.Default, &given) == nil:
		return given
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.AnyOf) > 0:
		return sampleOf(s.AnyOf[0])
	case len(s.OneOf) > 0:
		return sampleOf(s.OneOf[0])
	}
	kind := s.Type
	if len(s.Types) > 0 {
		kind = s.Types[0]
	}
	switch kind {
	case "boolean":
		return true
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1.0
	case "array":
		out := []any{}
		for range valueOf(s.MinItems) {
			out = append(out, sampleOf(s.Items))
		}
		return out
	case "object":
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = sampleOf(s.Properties[name])
		}
		return out
	}
	return "text" + strings.Repeat("x", max(0, valueOf(s.MinLength)-len("text")))
}

func valueOf(limit *int) int {
	if limit == nil {
		return 0
	}
	return min(*limit, 1000)
}
