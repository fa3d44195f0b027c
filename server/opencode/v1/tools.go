package v1

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"centurion"
	"centurion/tools"
)

// toolItem is OpenCode's ToolListItem.
type toolItem struct {
	ID          string          `json:"id"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (p *Project) toolRoutes() map[string]route {
	return map[string]route{
		"GET /experimental/tool": func(r *http.Request) (any, error) {
			ref := centurion.ModelRef{Provider: r.FormValue("provider"), ID: r.FormValue("model")}
			if err := p.checkModel(r.Context(), ref.String()); err != nil { // all models have the same tools
				return nil, err
			}
			return p.tools(r)
		},
		"GET /experimental/tool/ids": func(r *http.Request) (any, error) {
			all, err := p.tools(r)
			ids := make([]string, 0, len(all))
			for _, t := range all {
				ids = append(ids, t.ID)
			}
			return ids, err
		},
	}
}

// tools are those of all agents and servers, under the names that clients know. Of several with one name only the first is shown.
func (p *Project) tools(r *http.Request) ([]toolItem, error) {
	c, err := p.Catalog(r.Context())
	out := []toolItem{}
	for _, t := range tools.All() {
		spec := tools.Spec(t)
		id := cmp.Or(toolNames[spec.Name], spec.Name)
		if slices.Contains(c.Tools, spec.Name) && !slices.ContainsFunc(out, func(o toolItem) bool { return o.ID == id }) {
			out = append(out, toolItem{id, spec.Description, spec.Schema})
		}
	}
	if err != nil {
		return nil, err
	}
	servers, err := p.API().Servers(r.Context(), false)
	for _, s := range servers {
		for _, t := range s.Tools {
			out = append(out, toolItem{t.Name, t.Description, t.Schema})
		}
	}
	return out, err
}
