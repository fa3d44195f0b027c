package v1

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/server"
)

// toolServers are MCP servers in every state.
type toolServers struct{ err error }

func (s toolServers) Servers(context.Context, bool) ([]server.ToolServer, error) {
	tool := centurion.ExternalTool{Name: "linear_find", Description: "finds", Schema: json.RawMessage(`{"type":"object"}`)}
	return []server.ToolServer{{Name: "linear", State: "ready", Tools: []centurion.ExternalTool{tool}}, {Name: "slow", State: "connecting"}, {Name: "off", State: "disabled"},
		{Name: "gone", State: "failed", Error: "exit code 1"}, {Name: "closed", State: "failed", Error: "wants a token", Login: true}}, s.err
}

// Step 11, point 1: clients see the MCP servers in OpenCode's words, and their tools among the others.
func TestServers(t *testing.T) {
	x := newRig(t)
	local := x.project.API().(*server.Local)
	local.External = toolServers{}
	for path, want := range map[string]string{
		"/mcp":                   `{"closed":{"status":"needs_auth"},"gone":{"status":"failed","error":"exit code 1"},"linear":{"status":"connected"},"off":{"status":"disabled"}}`,
		"/experimental/tool/ids": `["bash","linear_find"]`,
		"/experimental/tool?provider=custom&model=m": `{"id":"linear_find","description":"finds","parameters":{"type":"object"}}]`,
	} {
		if status, body := x.ask("GET", path, ""); status != 200 || !strings.HasSuffix(strings.TrimSpace(body), want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	local.External = toolServers{errors.New("no")}
	for _, path := range []string{"/mcp", "/experimental/tool/ids"} {
		if status, body := x.ask("GET", path, ""); status != 500 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
