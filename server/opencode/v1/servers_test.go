package v1

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/server"
)

// toolServers are MCP servers in every state.
type toolServers struct{ err error }

func (s toolServers) Servers(context.Context, bool) ([]server.ToolServer, error) {
	tool := centurion.ExternalTool{Name: "linear_find", Description: "finds", Schema: json.RawMessage(`{"type":"object"}`)}
	return []server.ToolServer{{Name: "linear", State: "ready", Tools: []centurion.ExternalTool{tool},
		Prompts:   []server.ServerPrompt{{Name: "linear:review", Description: "reviews", Arguments: []string{"what", "how"}}},
		Resources: []server.ServerResource{{URI: "issue://7", Name: "issue", Mime: "text/plain"}, {URI: "issue://8"}}}, {Name: "slow", State: "connecting"}, {Name: "off", State: "disabled"},
		{Name: "gone", State: "failed", Error: "exit code 1"}, {Name: "closed", State: "failed", Error: "wants a token", Login: true}}, s.err
}

func (s toolServers) Content(_ context.Context, q server.ServerQuery) (server.ServerContent, error) {
	if q.URI != "issue://7" || q.Server != "linear" {
		return server.ServerContent{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no such resource"}
	}
	return server.ServerContent{Text: "The colour is wrong.", Files: []centurion.File{{Mime: centurion.MimePDF, Name: "shot.pdf", Data: []byte("%PDF-1.4")}}}, nil
}

// Step 11, point 1: clients see the MCP servers in OpenCode's words, and their tools among the others.
func TestServers(t *testing.T) {
	x := newRig(t)
	local := x.project.API().(*server.Local)
	local.External = toolServers{}
	for path, want := range map[string]string{
		"/mcp":                   `{"closed":{"status":"needs_auth"},"gone":{"status":"failed","error":"exit code 1"},"linear":{"status":"connected"},"off":{"status":"disabled"}}`,
		"/command":               `,{"name":"linear:review","description":"reviews","source":"mcp","template":"","hints":["$1","$2"]}]`,
		"/experimental/resource": `{"linear:issue":{"name":"issue","uri":"issue://7","mimeType":"text/plain","client":"linear"},"linear:issue://8":{"name":"issue://8","uri":"issue://8","client":"linear"}}`,
		"/experimental/tool/ids": `["bash","linear_find"]`,
		"/experimental/tool?provider=custom&model=m": `{"id":"linear_find","description":"finds","parameters":{"type":"object"}}]`,
	} {
		if status, body := x.ask("GET", path, ""); status != 200 || !strings.HasSuffix(strings.TrimSpace(body), want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	local.External = toolServers{errors.New("no")}
	for _, path := range []string{"/mcp", "/experimental/tool/ids", "/command", "/experimental/resource"} {
		if status, body := x.ask("GET", path, ""); status != 500 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// OpenCode's client adds a resource of a server as a file with that source.
func TestResource(t *testing.T) {
	x := newRig(t)
	x.project.API().(*server.Local).External = toolServers{}
	part := func(uri string) []centurion.Part {
		source := json.RawMessage(`{"type":"resource","clientName":"linear","uri":"` + uri + `","text":{"value":"@issue","start":0,"end":6}}`)
		return []centurion.Part{{Type: centurion.PartText, Text: "fix @issue"}, {Type: centurion.PartFile, File: &centurion.File{Mime: "text/plain", Name: "issue", URL: uri, Source: source}}}
	}
	goal, parts, err := x.project.Content(t.Context(), part("issue://7"))
	if err != nil || goal != "fix @issue" || len(parts) != 4 || !parts[1].Synthetic || parts[1].Text != "Resource issue://7 of linear:\n\nThe colour is wrong." ||
		parts[2].File.Name != "shot.pdf" || parts[3].File.URL != "issue://7" || parts[3].File.Source == nil {
		t.Errorf("%q %+v %v", goal, parts, err)
	}
	if _, _, err := x.project.Content(t.Context(), part("issue://9")); centurion.KindOf(err) != centurion.KindNotFound {
		t.Error(err)
	}
}

// slow is a host one of whose servers is never connected.
type slow struct{ server.API }

func (slow) Servers(ctx context.Context, wait bool) ([]server.ToolServer, error) {
	if wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []server.ToolServer{{Name: "slow", State: "connecting"}, {Name: "linear", State: "ready", Prompts: []server.ServerPrompt{{Name: "linear:review"}}}}, nil
}

// A server that hangs keeps a client from the commands of the others for no longer than a moment.
func TestServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Project{API: func() server.API { return slow{} }, Catalog: func(context.Context) (Catalog, error) { return Catalog{}, nil }}
		began := time.Now()
		all, err := p.Commands(t.Context())
		if err != nil || len(all) != 1 || all[0].Name != "linear:review" || time.Since(began) != patience {
			t.Errorf("%+v, %v after %s", all, err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Commands(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("for a client that has left: %v", err)
		}
	})
}
