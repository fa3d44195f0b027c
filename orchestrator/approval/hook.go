package approval

import (
	"context"

	"centurion"
	"centurion/permission"
	"centurion/tools"
)

// asked is the input of [centurion.HookAsk].
type asked struct {
	centurion.Hooked
	Type     string         `json:"type"` // the permission
	Patterns []string       `json:"pattern"`
	Message  string         `json:"messageID,omitempty"`
	Call     string         `json:"callID,omitempty"`
	Title    string         `json:"title"`
	Metadata map[string]any `json:"metadata"`
}

// hooked returns what plugins say to something that the rules ask about: allow, deny or ask. What rules deny they are not asked.
func (m *Approvals) hooked(ctx context.Context, call tools.Call, a tools.Access) permission.Action {
	in := asked{centurion.Hooked{Session: call.Session, Agent: call.Agent, Mission: m.st.ID, Task: call.Task}, a.Permission, a.Patterns, call.Message, call.ID, subject(a), a.Metadata}
	type answer struct {
		Status permission.Action `json:"status"`
	}
	out, err := centurion.RunHook(ctx, m.cfg.Hooks, centurion.HookAsk, in, answer{permission.Ask})
	if err != nil || out.Status != permission.Allow && out.Status != permission.Deny {
		return permission.Ask
	}
	return out.Status
}
