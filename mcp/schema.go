package mcp

import (
	"centurion"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion/text"
)

const (
	maxSchema  = 64 << 10 // bytes of a tool's schema: each request of a conversation that holds the tool pays for it
	maxNesting = 40       // levels of a schema, those of its references included
	maxNodes   = 10_000   // values in a schema
)

// propertyName is what Anthropic accepts as the name of a property.
var propertyName = centurion.Pattern(`^[a-zA-Z0-9_.-]{1,64}$`)

// inputSchema makes a server's schema one that providers take: an object without references. The error says why that cannot be done.
func inputSchema(given any) (*jsonschema.Schema, error) {
	root, _ := given.(map[string]any)
	p := plainer{root: root}
	copied, err := p.plain(given, 0)
	if err != nil {
		return nil, err
	}
	out, ok := copied.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is no object")
	}
	for _, key := range []string{"$schema", "$id", "$defs", "definitions"} {
		delete(out, key)
	}
	if t, ok := out["type"]; ok && t != "object" {
		return nil, fmt.Errorf("its schema has the type %v, not object", t)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "if"} {
		if _, ok := out[key]; ok {
			return nil, fmt.Errorf("its schema has %s at the top, which providers refuse", key)
		}
	}
	if out["type"] = "object"; out["properties"] == nil {
		out["properties"] = map[string]any{}
	}
	text.CleanSchema(out)
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, errTooLarge
	}
	s := new(jsonschema.Schema)
	if err = json.Unmarshal(raw, s); err == nil {
		_, err = s.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("its schema is wrong: %.200w", err)
	}
	return s, nil
}

var errTooLarge = errors.New("its schema is too large, or contains itself")

// plainer copies a schema and replaces the references in it. A validator would follow one that leads to itself for ever.
type plainer struct {
	root  map[string]any
	nodes int
}

func (p *plainer) plain(v any, depth int) (any, error) {
	if p.nodes++; p.nodes > maxNodes || depth > maxNesting {
		return nil, errTooLarge
	}
	var err error
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			if out[i], err = p.plain(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			return p.follow(ref, v, depth)
		}
		out := map[string]any{}
		for key, value := range v {
			pattern, isText := value.(string)
			properties, isMap := value.(map[string]any)
			switch {
			case depth == 0 && (key == "$defs" || key == "definitions"):
				continue // what is used of them is copied to its place
			case key == "$dynamicRef" || key == "$recursiveRef":
				return nil, fmt.Errorf("its schema has %s, which providers refuse", key)
			case key == "pattern" && isText && !compiles(pattern): // of another dialect; the server checks it anyway
				continue
			case key == "properties" && isMap:
				for name := range properties {
					if !propertyName().MatchString(name) {
						return nil, fmt.Errorf("its schema has the property %.80q, a name that providers refuse", name)
					}
				}
			}
			if out[key], err = p.plain(value, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// follow returns the schema that ref leads to, with the description beside ref.
func (p *plainer) follow(ref string, beside map[string]any, depth int) (any, error) {
	path, ok := strings.CutPrefix(ref, "#/")
	target := any(p.root)
	for step := range strings.SplitSeq(path, "/") {
		m, _ := target.(map[string]any)
		if target = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok || target == nil {
			return nil, fmt.Errorf("its schema refers to %.80q, which is no part of it", ref)
		}
	}
	out, err := p.plain(target, depth+1)
	if m, ok := out.(map[string]any); ok && beside["description"] != nil {
		m["description"] = beside["description"]
	}
	return out, err
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
