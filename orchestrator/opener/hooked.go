package opener

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"centurion"
	"centurion/tools"
)

// hooked is a tool of a session with the hooks of plugins around it.
type hooked struct {
	fenced
	hooks centurion.Hooks
}

// toolInput is the input of the hooks of tools.
type toolInput struct {
	centurion.Hooked
	Tool string          `json:"tool"`
	Call string          `json:"callID"`
	Args json.RawMessage `json:"args,omitempty"` // only after the call
}

// toolArgs is the output of [centurion.HookToolBefore].
type toolArgs struct {
	Args json.RawMessage `json:"args"`
}

// toolOutput is the output of [centurion.HookToolAfter].
type toolOutput struct {
	Title    string         `json:"title"`
	Output   string         `json:"output"`
	Metadata map[string]any `json:"metadata"`
}

// Run runs the tool with what plugins make of its arguments, unless one refuses, and returns what they make of its result.
func (h hooked) Run(ctx context.Context, call *tools.Call, input json.RawMessage) (tools.Result, error) {
	in := toolInput{Hooked: h.c.Sess.Record().HookedBy(), Tool: h.Name(), Call: call.ID}
	args, by, err := centurion.RunHook(ctx, h.hooks, centurion.HookToolBefore, in, toolArgs{input})
	if err != nil {
		call.Touched("refusal", by)
		if call.Decided != nil {
			call.Decided(tools.Decision{Permission: h.Name(), Action: "deny", By: "plugin " + strings.Join(by, ", "), Answer: err.Error()})
		}
		return tools.Result{}, &centurion.Error{Op: h.Name(), Kind: centurion.KindPermission, Msg: "refused by a plugin", Err: err, Hint: centurion.HintOf(err)}
	}
	if !bytes.Equal(args.Args, input) {
		call.Touched("arguments", by)
		if input, err = tools.Normalize(h.Tool, args.Args); err != nil {
			return tools.Result{}, &centurion.Error{Op: h.Name(), Kind: centurion.KindUsage, Msg: "a plugin changed the arguments", Err: err}
		}
	}
	r, err := h.fenced.Run(ctx, call, input)
	if err != nil {
		return r, err
	}
	in.Args = input
	out, by, err := centurion.RunHook(context.WithoutCancel(ctx), h.hooks, centurion.HookToolAfter, in, toolOutput{r.Title, r.Output, r.Metadata})
	if err == nil {
		call.Touched("result", by)
		r.Title, r.Output, r.Metadata = out.Title, out.Output, out.Metadata
	}
	return r, nil
}
