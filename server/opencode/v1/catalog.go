package v1

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/server"
)

// Catalog is what a client can choose from.
type Catalog struct {
	Models   []Model // the default one first
	Agents   []Agent // the default one first
	Commands []Command
	Tools    []string
}

// Model is a model of a configured provider.
type Model struct {
	Ref             centurion.ModelRef
	Name, Provider  string // shown; "" is the id
	Context, Output int    // tokens; 0 if unknown
	Price           centurion.Price
	Media           centurion.Media
}

// Agent is an agent to which a person can write.
type Agent struct {
	Name, Description string
	Profile           string // in which it leads; "" for one that only works for others
	Hidden            bool
}

// Command is a command that a person can give.
type Command struct {
	Name, Description, Agent, Template string
	Server                             string // of a prompt of an MCP server, which has no template of its own
	Arguments                          []string
}

var hint = centurion.Pattern(`\$(ARGUMENTS|[1-9])`)

// hints are the arguments that a template has, in their order.
func hints(template string) []string {
	found := hint().FindAllString(template, -1)
	slices.Sort(found)
	return some(slices.Compact(found))
}

type modelInfo struct {
	ID           string            `json:"id"`
	ProviderID   string            `json:"providerID"`
	API          map[string]string `json:"api"`
	Name         string            `json:"name"`
	Capabilities map[string]any    `json:"capabilities"`
	Cost         map[string]any    `json:"cost"`
	Limit        map[string]int    `json:"limit"`
	Status       string            `json:"status"`
	Options      struct{}          `json:"options"`
	Headers      struct{}          `json:"headers"`
	ReleaseDate  string            `json:"release_date"`
	Variants     map[string]any    `json:"variants"`
}

type providerInfo struct {
	ID      string               `json:"id"`
	Name    string               `json:"name"`
	Source  string               `json:"source"`
	Env     []string             `json:"env"`
	Options struct{}             `json:"options"`
	Models  map[string]modelInfo `json:"models"`
}

type agentInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Mode        string   `json:"mode"`
	Native      bool     `json:"native"`
	Hidden      bool     `json:"hidden,omitempty"`
	Permission  []any    `json:"permission"`
	Options     struct{} `json:"options"`
}

type commandInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Agent       string   `json:"agent,omitempty"`
	Source      string   `json:"source"`
	Template    string   `json:"template"`
	Hints       []string `json:"hints"`
}

type projectInfo struct {
	ID        string           `json:"id"`
	Worktree  string           `json:"worktree"`
	VCS       string           `json:"vcs,omitempty"`
	Time      map[string]int64 `json:"time"`
	Sandboxes []string         `json:"sandboxes"`
}

func shownModel(m Model) modelInfo {
	takes := map[string]bool{"text": true, "audio": false, "image": m.Media.Image, "video": false, "pdf": m.Media.PDF}
	return modelInfo{ID: m.Ref.ID, ProviderID: m.Ref.Provider, Name: cmp.Or(m.Name, m.Ref.ID), Status: "active", Variants: map[string]any{},
		API: map[string]string{"id": m.Ref.ID, "url": "", "npm": "@ai-sdk/openai-compatible"},
		Capabilities: map[string]any{"temperature": true, "reasoning": true, "attachment": m.Media.Image || m.Media.PDF, "toolcall": true, "interleaved": false,
			"input": takes, "output": map[string]bool{"text": true, "audio": false, "image": false, "video": false, "pdf": false}},
		Cost:  map[string]any{"input": m.Price.Input, "output": m.Price.Output, "cache": map[string]float64{"read": m.Price.CacheRead, "write": m.Price.CacheWrite}},
		Limit: map[string]int{"context": m.Context, "output": m.Output}}
}

// providers are those of a catalog, and the default model of each.
func providers(c Catalog) (list []providerInfo, first map[string]string) {
	list, first = []providerInfo{}, map[string]string{}
	for _, m := range c.Models {
		i := slices.IndexFunc(list, func(p providerInfo) bool { return p.ID == m.Ref.Provider })
		if i < 0 {
			i = len(list)
			list = append(list, providerInfo{ID: m.Ref.Provider, Name: cmp.Or(m.Provider, m.Ref.Provider), Source: "config", Env: []string{}, Models: map[string]modelInfo{}})
			first[m.Ref.Provider] = m.Ref.ID
		}
		list[i].Models[m.Ref.ID] = shownModel(m)
	}
	return list, first
}

func shownAgents(c Catalog) any {
	out := []agentInfo{}
	for _, a := range c.Agents {
		mode := "primary"
		if a.Profile == "" {
			mode = "subagent"
		}
		out = append(out, agentInfo{Name: a.Name, Description: a.Description, Mode: mode, Native: true, Hidden: a.Hidden, Permission: []any{}})
	}
	return out
}

// Commands are the commands of the catalog, and the prompts of the MCP servers that are connected.
func (p *Project) Commands(ctx context.Context) ([]Command, error) {
	c, err := p.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	all, err := p.connected(ctx)
	return append(c.Commands, Prompts(all)...), err
}

// patience is how long a list that a client reads once waits for servers that are being connected.
const patience = 3 * time.Second

// connected are the MCP servers, when none is being connected any more, or at the end of patience.
func (p *Project) connected(ctx context.Context) ([]server.ToolServer, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := p.API().Servers(limited, true)
	if limited.Err() != nil && ctx.Err() == nil {
		all, err = p.API().Servers(ctx, false)
	}
	return all, err
}

// Prompts are the prompts of MCP servers, as commands.
func Prompts(all []server.ToolServer) (out []Command) {
	for _, s := range all {
		for _, one := range s.Prompts {
			out = append(out, Command{Name: one.Name, Description: one.Description, Server: s.Name, Arguments: one.Arguments})
		}
	}
	return out
}

func shownCommands(all []Command) any {
	out := []commandInfo{}
	for _, one := range all {
		info := commandInfo{one.Name, one.Description, one.Agent, "command", one.Template, hints(one.Template)}
		if one.Server != "" {
			info.Source = "mcp"
			for i := range one.Arguments {
				info.Hints = append(info.Hints, fmt.Sprintf("$%d", i+1))
			}
		}
		out = append(out, info)
	}
	return out
}

func (p *Project) catalogRoutes() map[string]route {
	of := func(shown func(c Catalog) any) route {
		return func(r *http.Request) (any, error) {
			c, err := p.Catalog(r.Context())
			if err != nil {
				return nil, err
			}
			return shown(c), nil
		}
	}
	fixed := func(v any) route { return func(*http.Request) (any, error) { return v, nil } }
	project := projectInfo{"global", p.Directory, p.vcs(), map[string]int64{"created": 0, "updated": 0}, []string{}}
	return map[string]route{
		healthRoute:            fixed(map[string]any{"healthy": true, "version": p.Version}),
		"GET /path":            fixed(map[string]string{"home": p.Home, "state": p.State, "config": p.Config, "worktree": p.Directory, "directory": p.Directory}),
		"GET /project":         fixed([]projectInfo{project}),
		"GET /project/current": fixed(project),
		"GET /provider/auth":   fixed(map[string]any{}),
		"GET /skill":           fixed([]any{}),
		"GET /lsp":             fixed([]any{}),
		"GET /formatter":       fixed([]any{}),
		"GET /mcp":             p.servers,

		"GET /experimental/resource": p.resources,
		"GET /config": of(func(c Catalog) any {
			if len(c.Models) == 0 {
				return map[string]any{}
			}
			return map[string]any{"model": c.Models[0].Ref.String()}
		}),
		"GET /config/providers": of(func(c Catalog) any {
			list, first := providers(c)
			return map[string]any{"providers": list, "default": first}
		}),
		"GET /provider": of(func(c Catalog) any {
			list, first := providers(c)
			connected := make([]string, 0, len(list))
			for _, one := range list {
				connected = append(connected, one.ID)
			}
			return map[string]any{"all": list, "default": first, "connected": connected}
		}),
		"GET /agent": of(shownAgents),
		"GET /command": func(r *http.Request) (any, error) {
			all, err := p.Commands(r.Context())
			return shownCommands(all), err
		},
	}
}

// serverStatus is OpenCode's MCPStatus.
type serverStatus struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

// servers tells how the MCP servers are. One that is being connected is not among them yet: clients know no word for it.
func (p *Project) servers(r *http.Request) (any, error) {
	all, err := p.API().Servers(r.Context(), false)
	out := map[string]serverStatus{}
	for _, s := range all {
		status := serverStatus{s.State, s.Error}
		switch {
		case s.State == "connecting":
			continue
		case s.State == "ready":
			status = serverStatus{Status: "connected"}
		case s.Login:
			status = serverStatus{Status: "needs_auth"}
		}
		out[s.Name] = status
	}
	return out, err
}

// resourceInfo is OpenCode's McpResource.
type resourceInfo struct {
	Name        string `json:"name"`
	URI         string `json:"uri"`
	Description string `json:"description,omitempty"`
	Mime        string `json:"mimeType,omitempty"`
	Client      string `json:"client"` // the server
}

// resources are those of the MCP servers that are connected.
func (p *Project) resources(r *http.Request) (any, error) {
	all, err := p.connected(r.Context())
	out := map[string]resourceInfo{}
	for _, s := range all {
		for _, one := range s.Resources {
			out[s.Name+":"+cmp.Or(one.Name, one.URI)] = resourceInfo{cmp.Or(one.Name, one.URI), one.URI, one.Description, one.Mime, s.Name}
		}
	}
	return out, err
}

// clientRoutes are those by which a client writes to the log or to terminal clients.
func (p *Project) clientRoutes() map[string]route {
	return map[string]route{
		"POST /log": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Service string         `json:"service"`
				Level   string         `json:"level"`
				Message string         `json:"message"`
				Extra   map[string]any `json:"extra"`
			}](r)
			if err == nil && (b.Level == "error" || b.Level == "warn") {
				p.Note(fmt.Sprintf("%s of client %s: %s", b.Level, b.Service, b.Message))
			}
			return true, err
		},
		"POST /tui/show-toast": func(r *http.Request) (any, error) {
			b, err := read[toastEvent](r)
			if err == nil && (b.Message == "" || !slices.Contains([]string{"info", "success", "warning", "error"}, b.Variant)) {
				err = &centurion.Error{Kind: centurion.KindUsage, Msg: "a toast has a message, and its variant is info, success, warning or error"}
			}
			if err == nil {
				p.send("tui.toast.show", b)
				if p.Show != nil {
					p.Show(b.Title, b.Message, b.Variant)
				}
			}
			return true, err
		},
		"POST /tui/append-prompt": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Text string `json:"text"`
			}](r)
			if err == nil {
				p.send("tui.prompt.append", b)
			}
			return true, err
		},
		"POST /tui/publish": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Type       string         `json:"type"`
				Properties map[string]any `json:"properties"`
			}](r)
			if err == nil && !slices.Contains([]string{"tui.toast.show", "tui.prompt.append", "tui.command.execute", "tui.session.select"}, b.Type) {
				err = &centurion.Error{Kind: centurion.KindUsage, Msg: "type: only events of the terminal client are published"}
			}
			if err == nil {
				p.send(b.Type, b.Properties)
			}
			return true, err
		},
	}
}

// vcs is the project's version control.
func (p *Project) vcs() string {
	if _, err := os.Stat(filepath.Join(p.Directory, ".git")); err != nil {
		return ""
	}
	return "git"
}

// ProfileOf is the profile that an agent leads, "" for the default of "".
func (p *Project) ProfileOf(ctx context.Context, agent string) (string, error) {
	c, err := p.Catalog(ctx)
	if err != nil {
		return "", err
	}
	if agent == "" {
		if len(c.Agents) > 0 {
			return c.Agents[0].Profile, nil
		}
		return "", nil
	}
	var names []string
	for _, a := range c.Agents {
		if names = append(names, a.Name); strings.EqualFold(a.Name, agent) {
			return a.Profile, nil
		}
	}
	return "", unknown("agent", agent, names)
}

// checkModel refuses a model that is not in the list.
func (p *Project) checkModel(ctx context.Context, ref string) error {
	if ref == "" {
		return nil
	}
	c, err := p.Catalog(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range c.Models {
		if names = append(names, m.Ref.String()); m.Ref.String() == ref {
			return nil
		}
	}
	return unknown("model", ref, names)
}

func unknown(what, given string, names []string) error {
	e := &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no %s %q", what, given)}
	if near := centurion.Nearest(given, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
