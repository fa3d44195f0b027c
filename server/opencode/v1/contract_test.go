package v1

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"centurion/server/opencode/v1/contract"
)

var openapi = flag.String("openapi", "", "OpenCode's API, as `opencode generate` prints it; contract/openapi.json is made of it")

// sent are the events that are sent, and those of changes of the same kind.
var sent = strings.Fields("server.connected server.heartbeat session.created session.updated session.deleted session.status session.idle session.error session.compacted session.diff " +
	"message.updated message.removed message.part.updated message.part.removed message.part.delta todo.updated permission.asked permission.replied question.asked question.replied " +
	"question.rejected command.executed file.edited vcs.branch.updated project.updated tui.toast.show tui.prompt.append tui.command.execute tui.session.select")

// shapes are those that tests ask for by name.
var shapes = []string{"BadRequestError", "NotFoundError", "SessionBusyError", "UnknownError", "Session", "UserMessage", "AssistantMessage", "Part", "FilePartInput"}

// Issue "Real OpenCode clients", how it is shown: the description that answers are held against has every route that is served.
func TestContract(t *testing.T) {
	routes := slices.Sorted(maps.Keys((&Project{}).routes()))
	if *openapi != "" {
		subset(t, routes)
	}
	for _, pattern := range routes {
		if err := contract.Answer(pattern, 999, nil); !strings.Contains(err.Error(), "has no answer 999") {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.Log("a new route is added by: opencode generate > FILE; go test ./server/opencode/v1 -run TestContract -args -openapi FILE")
	}
}

// subset writes the part of OpenCode's API that is served.
func subset(t *testing.T, routes []string) {
	type object = map[string]any
	b, err := os.ReadFile(*openapi)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema object }
			}
		}
		Components struct{ Schemas object }
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	config := all.Components.Schemas["Config"].(object)
	maps.DeleteFunc(config["properties"].(object), func(name string, _ any) bool { return name != "model" }) // the only one that is served
	answers, events, defs := object{}, object{}, object{}
	var take func(v any) any // a schema without descriptions, closed; those that it refers to are kept
	take = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = take(v[i])
			}
		case object:
			delete(v, "description")
			if ref, ok := v["$ref"].(string); ok {
				name := ref[strings.LastIndex(ref, "/")+1:]
				v["$ref"] = "#/$defs/" + name
				if defs[name] == nil {
					defs[name] = true // it may refer to itself
					defs[name] = take(all.Components.Schemas[name])
				}
			}
			properties, closed := v["properties"].(object)
			for _, one := range properties {
				take(one)
			}
			if _, said := v["additionalProperties"]; closed && !said {
				v["additionalProperties"] = false
			}
			for key, one := range v {
				if key != "properties" {
					v[key] = take(one)
				}
			}
		}
		return v
	}
	for path, operations := range all.Paths {
		for method, operation := range operations {
			if name := contract.Operation(strings.ToUpper(method) + " " + path); slices.ContainsFunc(routes, func(r string) bool { return contract.Operation(r) == name }) {
				by := object{}
				for status, r := range operation.Responses {
					by[status] = object{}
					if content, ok := r.Content["application/json"]; ok {
						by[status] = take(content.Schema)
					}
				}
				answers[name] = by
			}
		}
	}
	for name, v := range all.Components.Schemas {
		s, _ := v.(object)
		if kind, _ := json.Marshal(s["properties"]); s["required"] != nil && strings.Contains(string(kind), `"pattern":"^evt_"`) {
			var of struct{ Type struct{ Enum []string } }
			if json.Unmarshal(kind, &of) == nil && len(of.Type.Enum) == 1 && slices.Contains(sent, of.Type.Enum[0]) && (events[of.Type.Enum[0]] == nil || strings.HasPrefix(name, "Event")) {
				events[of.Type.Enum[0]] = take(v)
			}
		}
	}
	heartbeat, _ := json.Marshal(events["server.connected"]) // the description has none
	events["server.heartbeat"] = json.RawMessage(strings.ReplaceAll(string(heartbeat), "connected", "heartbeat"))
	for _, name := range shapes {
		take(object{"$ref": name})
	}
	for _, name := range sent {
		if events[name] == nil {
			t.Errorf("there is no event %s", name)
		}
	}
	var out []string
	for section, all := range map[string]object{"answers": answers, "events": events, "$defs": defs} {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b, _ := json.Marshal(all[name]) // it was JSON before
			lines = append(lines, fmt.Sprintf("%q: %s", name, b))
		}
		out = append(out, fmt.Sprintf("%q: {\n%s\n}", section, strings.Join(lines, ",\n")))
	}
	slices.Sort(out)
	if err := os.WriteFile("contract/openapi.json", []byte("{\n"+strings.Join(out, ",\n")+"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
