package centurion

import (
	"context"
	"encoding/json"
)

// Hooks are the hooks of a project's plugins, by the names that OpenCode gives them. Each is called for every session, at any depth. Their
// methods may be called at the same time.
type Hooks interface {
	// Has reports whether a plugin has a hook.
	Has(hook string) bool
	// Hook passes input, which becomes a JSON object, and output, which is one, to the hook of each plugin in turn, and returns what they made
	// of output, and the names of those that changed it. An error is the refusal of a plugin, which it names as by does, or says that one
	// which may refuse cannot be asked; only [HookToolBefore] and [HookAsk] have any.
	Hook(ctx context.Context, hook string, input any, output json.RawMessage) (changed json.RawMessage, by []string, err error)
}

// RunHook passes input and output to a hook and returns what plugins made of output, and which did: output itself without such a hook, after
// an error, and where they left something that is not of its type. Hooks may be nil.
func RunHook[T any](ctx context.Context, hooks Hooks, hook string, input any, output T) (changed T, by []string, err error) {
	if hooks == nil || !hooks.Has(hook) {
		return output, nil, nil
	}
	b, err := json.Marshal(output)
	if err == nil {
		b, by, err = hooks.Hook(ctx, hook, input, b)
	}
	if err != nil { // by has refused it
		return output, by, err
	}
	if json.Unmarshal(b, &changed) != nil {
		return output, nil, nil
	}
	return changed, by, nil
}

// The hooks that are called. The types of their inputs and outputs stand where they are.
const (
	HookToolBefore = "tool.execute.before" // its error refuses the call, and so does that of HookAsk
	HookToolAfter  = "tool.execute.after"
	HookShellEnv   = "shell.env"
	HookAsk        = "permission.ask"
	HookMessages   = "experimental.chat.messages.transform"
	HookSystem     = "experimental.chat.system.transform"
	HookCompacting = "experimental.session.compacting"
	HookText       = "experimental.text.complete"
	HookParams     = "chat.params"
	HookHeaders    = "chat.headers"
	HookMessage    = "chat.message"
	HookCommand    = "command.execute.before"
	HookDefinition = "tool.definition"
	HookConfig     = "config"
)

// Hooked says for whom a hook is called.
type Hooked struct {
	Session string `json:"sessionID,omitempty"` // empty before the session has begun
	Agent   string `json:"agent,omitempty"`
	Mission string `json:"mission,omitempty"`
	Task    string `json:"task,omitempty"`
	Parent  string `json:"parentID,omitempty"`
}

// HookedBy describes a session for hooks.
func (s Session) HookedBy() Hooked {
	return Hooked{s.ID, s.Agent, s.Metadata.Mission, s.Metadata.Task, s.ParentID}
}
