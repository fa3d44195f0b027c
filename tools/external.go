package tools

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
)

// External are the tools of a project's MCP servers and plugins. Its methods may be called at the same time.
type External interface {
	// Tools returns the tools that are known now, by name. It does not wait for any.
	Tools() []centurion.ExternalTool
	// Run calls one of them. An error after which the call may have had its effect has centurion.KindInterrupted.
	Run(ctx context.Context, c *Call, name string, input json.RawMessage) (Result, error)
}

// HeldExternal returns the tools from outside whose names are held and none of the program's own, and whose schemas can be used. x may be nil.
func HeldExternal(x External, held func(name string) bool) (out []centurion.ExternalTool) {
	if x == nil {
		return nil
	}
	for _, t := range x.Tools() {
		if !held(t.Name) {
			continue
		}
		_, own := Named(t.Name)
		if _, err := NewExternal(t, x); err == nil && own != nil {
			out = append(out, t)
		}
	}
	return out
}

// external is a tool of others, as one session was given it.
type external struct {
	centurion.ExternalTool
	schema *jsonschema.Schema
	of     External
}

// NewExternal makes a tool that of runs, which may be nil if there is nothing left that could. The error has centurion.KindUsage if its schema is none, or not one of an object.
func NewExternal(t centurion.ExternalTool, of External) (Tool, error) {
	e := external{ExternalTool: t, of: of}
	err := json.Unmarshal(t.Schema, &e.schema)
	if err == nil && (e.schema == nil || e.schema.Type != "object") {
		return nil, usage(t.Name, "", "its schema is not that of an object")
	}
	if err == nil {
		_, err = e.schema.Resolve(nil)
	}
	if err != nil {
		return nil, &centurion.Error{Op: t.Name, Kind: centurion.KindUsage, Msg: "its schema cannot be used", Err: err}
	}
	return e, nil
}

func (e external) Name() string               { return e.ExternalTool.Name }
func (e external) Description() string        { return e.ExternalTool.Description }
func (e external) Schema() *jsonschema.Schema { return e.schema }

// Narrowed implements [Narrower]: a model is shown the schema as it came.
func (e external) Narrowed() json.RawMessage { return e.ExternalTool.Schema }

// Effect is that of a shell command, unless the tool only reads.
func (e external) Effect(json.RawMessage) Effect {
	return Effect{ReadOnly: e.ReadOnly, Outside: !e.Away}
}

func (e external) Run(ctx context.Context, c *Call, input json.RawMessage) (Result, error) {
	if err := c.Gate.Ask(ctx, c, Access{Permission: e.Name(), Patterns: []string{"*"}, Always: []string{"*"},
		Metadata: map[string]any{"input": input}}); err != nil {
		return Result{}, err
	}
	if e.of == nil {
		return Result{}, &centurion.Error{Op: e.Name(), Kind: centurion.KindNotFound, Msg: "its server is no longer configured"}
	}
	return e.of.Run(ctx, c, e.Name(), input)
}
