package approval

import (
	"context"
	"strings"

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

// said is what plugins say to something that the rules ask about.
type said struct {
	permission.Action        // allow, deny or ask
	by                string // who says it, as "plugin NAME"
	names             []string
	why               string // it is denied
}

// hooked asks plugins about something that the rules ask about. What rules deny they are not asked. One that cannot be asked refuses.
func (m *Approvals) hooked(ctx context.Context, call tools.Call, a tools.Access) said {
	in := asked{centurion.Hooked{Session: call.Session, Agent: call.Agent, Mission: m.st.ID, Task: call.Task}, a.Permission, a.Patterns, call.Message, call.ID, subject(a), a.Metadata}
	type answer struct {
		Status permission.Action `json:"status"`
	}
	out, names, err := centurion.RunHook(ctx, m.cfg.Hooks, centurion.HookAsk, in, answer{permission.Ask})
	by := "plugin " + strings.Join(names, ", ")
	switch {
	case err != nil:
		return said{permission.Deny, by, names, err.Error()}
	case out.Status == permission.Deny:
		return said{permission.Deny, by, names, "the " + by + " refused it"}
	case out.Status == permission.Allow:
		return said{permission.Allow, by, names, ""}
	}
	return said{Action: permission.Ask}
}
