package tools

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/provider"
)

// catalogue makes the program's own tools. They are stateless and immutable, so all callers share them.
var catalogue = sync.OnceValue(func() []Tool {
	return []Tool{
		readTool(), writeTool(), editTool(), lsTool(), globTool(), grepTool(), bashTool(), runBackgroundTool(), checkBackgroundTool(),
		webfetchTool(), websearchTool(), codesearchTool(), cacheDocsTool(), skillTool(),
		updateTodoTool(), updateContextTool(), delegateTaskTool(), getTaskResultTool(), listTasksTool(), cancelTaskTool(), missionCompleteTool(),
		askUserTool(), subAgentTool(),
	}
})

// All returns every tool of the program, in the order shown to a model.
func All() []Tool { return slices.Clone(catalogue()) }

// Named returns the tools with these names, in this order. For an unknown name the error has [centurion.KindUsage] and offers the
// nearest.
func Named(names ...string) ([]Tool, error) {
	all := catalogue()
	out := make([]Tool, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(all, func(t Tool) bool { return t.Name() == name })
		if i < 0 {
			known := make([]string, len(all))
			for j, t := range all {
				known[j] = t.Name()
			}
			return nil, &centurion.Error{Op: "find tool", Kind: centurion.KindUsage,
				Msg:  fmt.Sprintf("there is no tool %q%s", name, didYouMean(name, known)),
				Hint: "the tools are " + strings.Join(known, ", ")}
		}
		out = append(out, all[i])
	}
	return out, nil
}

// Spec describes the tool to a model. The schemas of the program's own tools are marshalled once. A tool that implements Narrower is
// shown with its narrowed schema.
func Spec(t Tool) provider.ToolSpec {
	spec := provider.ToolSpec{Name: t.Name(), Description: t.Description()}
	if n, ok := t.(Narrower); ok {
		spec.Schema = n.Narrowed()
	}
	if spec.Schema == nil {
		spec.Schema = compile(t).raw
	}
	return spec
}

// Narrower is a tool that shows a model less than it accepts.
type Narrower interface {
	// Narrowed returns the schema for the model, or nil for the tool's own.
	Narrowed() json.RawMessage
}

// compiled is the data derived once from a schema.
type compiled struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
	err      error
}

// compile returns the data derived from the tool's schema. For the program's own tools, even wrapped ones, it is computed once.
func compile(t Tool) compiled {
	schema := t.Schema()
	for _, own := range catalogue() {
		if own.Schema() == schema {
			return own.(interface{ compiled() compiled }).compiled()
		}
	}
	if note := noteTool(); note.schema == schema {
		return note.compiled()
	}
	return compileSchema(schema)
}

func compileSchema(s *jsonschema.Schema) compiled {
	raw, err := json.Marshal(offered(s))
	if err != nil {
		return compiled{raw: json.RawMessage(`{"type":"object"}`), err: err}
	}
	resolved, err := s.Resolve(nil)
	return compiled{raw: raw, resolved: resolved, err: err}
}

// defined is a tool with inputs of type In.
type defined[In any] struct {
	name, doc string
	schema    *jsonschema.Schema
	effect    func(In) Effect
	run       func(context.Context, *Call, In) (Result, error)
	once      func() compiled
}

//go:embed *.md
var descriptions embed.FS

// define makes a tool of its parts and its description, x.md.
func define[In any](name string, schema *jsonschema.Schema, effect func(In) Effect,
	run func(context.Context, *Call, In) (Result, error),
) Tool {
	doc, _ := descriptions.ReadFile(name + ".md") // a test reads them all
	return &defined[In]{name: name, doc: strings.TrimSpace(string(doc)), schema: schema, effect: effect, run: run,
		once: sync.OnceValue(func() compiled { return compileSchema(schema) })}
}

func (d *defined[In]) Name() string               { return d.name }
func (d *defined[In]) Description() string        { return d.doc }
func (d *defined[In]) Schema() *jsonschema.Schema { return d.schema }
func (d *defined[In]) compiled() compiled         { return d.once() }

// Effect returns the effect of input; unreadable input could do anything.
func (d *defined[In]) Effect(input json.RawMessage) Effect {
	in, err := decode[In](input)
	if err != nil {
		return Effect{}
	}
	return d.effect(in)
}

func (d *defined[In]) Run(ctx context.Context, c *Call, input json.RawMessage) (Result, error) {
	in, err := decode[In](input)
	if err != nil {
		return Result{}, &centurion.Error{Op: d.name, Kind: centurion.KindUsage, Msg: "the arguments cannot be read", Err: err}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, ended(ctx, d.name)
	}
	return d.run(ctx, c, in)
}

// denied refuses a call for what its role or its place lacks.
func denied(op, msg, hint string) (Result, error) {
	return Result{}, &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: msg, Hint: hint}
}

func decode[In any](input json.RawMessage) (In, error) {
	var in In
	if len(bytes.TrimSpace(input)) == 0 {
		return in, nil
	}
	err := json.Unmarshal(input, &in)
	return in, err
}

// ended returns the error of a call whose context has ended, with the cause's own kind.
func ended(ctx context.Context, op string) error {
	err := context.Cause(ctx)
	return &centurion.Error{Op: op, Kind: centurion.KindOf(err), Err: err}
}

// usage makes an error that the model can correct by another call.
func usage(op, hint, format string, args ...any) error {
	return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
