package brief

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/tools"
)

// maxDescription is the longest description of a tool that a plugin may write, in bytes: every request repeats it.
const maxDescription = 16 << 10

// Renew gives a session what is fixed between two compactions: the tools from outside that there are now, and what plugins make of its
// prompt and its tools.
func (d *Desk) Renew(ctx context.Context, a agents.Agent, rec *centurion.Session) {
	rec.Metadata.External = d.Externals(a)
	d.Plug(ctx, a, rec)
}

// Plug gives a session what plugins make of its prompt and its tools; nothing where no plugin has a hook for either.
func (d *Desk) Plug(ctx context.Context, a agents.Agent, rec *centurion.Session) {
	rec.Metadata.Plugged = nil
	if d.Hooks == nil {
		return
	}
	p := centurion.Plugged{By: map[string][]string{}}
	if d.Hooks.Has(centurion.HookSystem) {
		d.transform(ctx, rec, &p)
	}
	if d.Hooks.Has(centurion.HookDefinition) {
		d.define(ctx, a, rec, &p)
	}
	rec.Metadata.Plugged = &p
}

func (d *Desk) transform(ctx context.Context, rec *centurion.Session, p *centurion.Plugged) {
	type model struct {
		Provider string `json:"providerID"`
		ID       string `json:"id"`
	}
	in := struct {
		centurion.Hooked
		Model model `json:"model"`
	}{rec.HookedBy(), model{rec.Own().Provider, rec.Own().ID}}
	type prompt struct {
		System []string `json:"system"`
	}
	out, by, err := centurion.RunHook(ctx, d.Hooks, centurion.HookSystem, in, prompt{[]string{rec.Metadata.System}})
	if system := strings.Join(out.System, "\n"); err == nil && len(by) > 0 && strings.TrimSpace(system) != "" {
		p.System, p.By[centurion.HookSystem] = system, by
	}
}

func (d *Desk) define(ctx context.Context, a agents.Agent, rec *centurion.Session, p *centurion.Plugged) {
	held, _ := tools.Named(d.Held(a, *rec)...) // an unknown one fails where it is given
	for _, t := range rec.Metadata.External {
		if e, err := tools.NewExternal(t, d.External); err == nil {
			held = append(held, e)
		}
	}
	for _, t := range held {
		own := tools.Spec(t)
		in := struct {
			centurion.Hooked
			Tool string `json:"toolID"`
		}{rec.HookedBy(), t.Name()}
		out, by, err := centurion.RunHook(ctx, d.Hooks, centurion.HookDefinition, in, centurion.Defined{Description: own.Description, Parameters: own.Schema})
		if err != nil || len(by) == 0 || out.Description == "" {
			continue
		}
		out.Description = centurion.Clip(out.Description, maxDescription)
		if !isOther(out.Parameters, own.Schema) {
			out.Parameters = nil
		}
		if p.Tools == nil {
			p.Tools = map[string]centurion.Defined{}
		}
		p.Tools[t.Name()] = out
		p.By[centurion.HookDefinition] = union(p.By[centurion.HookDefinition], by)
	}
}

// isOther reports whether a schema is one of an object, and says something else than the tool's own.
func isOther(schema, own json.RawMessage) bool {
	var a, b map[string]any
	return !bytes.Equal(schema, own) && json.Unmarshal(schema, &a) == nil && json.Unmarshal(own, &b) == nil && a["type"] == "object" && !reflect.DeepEqual(a, b)
}

func union(to, more []string) []string {
	for _, s := range more {
		if !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}
