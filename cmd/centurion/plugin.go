package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/plugin"
	"centurion/server"
	"centurion/session"
	"centurion/text"
	"centurion/trust"
)

func pluginCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Show and install plugins and MCP servers",
		Example: "  centurion plugin list\n  centurion plugin add opencode-skills@0.1.7\n  centurion plugin remove opencode-skills", Args: exactly(0, 0, "a command such as list"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(plainCommand("list", "Start the plugins and MCP servers and list their tools",
		"Start the plugins and connect the MCP servers of the configuration (`plugin` and `mcp` in opencode.json, .opencode/plugins and\n"+
			".opencode/tools), and list what they offer, and how many tokens the schemas of their tools take in a request. That is remembered, so\n"+
			"that the next conversation has these tools from its first request on. Counted are the conversations of the project until now:\n"+
			"how often plugins were called and how long their hooks took, and of one that changes histories, how much of a request was still as\n"+
			"the provider may have it in its cache.",
		"  centurion plugin list\n  centurion plugin list --format json", c.listPlugins), addPluginsCommand(c), removePluginCommand(c), testPluginCommand(c))
	return cmd
}

// extensionRow is an MCP server or a plugin.
type extensionRow struct {
	Kind     string   `json:"kind"` // mcp or plugin
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Error    string   `json:"error,omitempty"`
	Tools    []string `json:"tools"`
	Tokens   int      `json:"tokens,omitempty"`   // of the schemas of its tools
	Commands []string `json:"commands,omitempty"` // the prompts of a server
	// The rest is of plugins.
	Version  string   `json:"version,omitempty"`
	Hooks    []string `json:"hooks,omitempty"`
	InitMS   int64    `json:"init_ms,omitempty"`
	Restarts int      `json:"restarts,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	*figures
}

// figures are what a plugin has done in the conversations of the project.
type figures struct {
	Since     *time.Time `json:"since,omitempty"`
	HookCalls int        `json:"hook_calls"`
	HookP50   float64    `json:"hook_p50_ms"` // of the last calls
	HookP99   float64    `json:"hook_p99_ms"`
	ToolCalls int        `json:"tool_calls"`
	Failures  int        `json:"failures"`
	Cacheable *float64   `json:"cacheable,omitempty"` // of 1; nil for a plugin that changed no history
}

func figuresOf(s plugin.Status, since time.Time) *figures {
	p50, p99 := s.Slow()
	ms := func(d time.Duration) float64 { return math.Round(float64(d.Microseconds())/10) / 100 }
	f := &figures{HookCalls: s.Hooked, HookP50: ms(p50), HookP99: ms(p99), ToolCalls: s.Called, Failures: s.Failures}
	if s.Hooked+s.Called > 0 {
		f.Since = &since
	}
	if s.Sent > 0 {
		f.Cacheable = new(math.Round(float64(s.Kept)/float64(s.Sent)*1000) / 1000)
	}
	return f
}

// line says it to a person, or is "".
func (f *figures) line() string {
	if f == nil || f.Since == nil {
		return ""
	}
	return "since " + f.Since.Local().Format(time.DateOnly) + ": " + strings.Join(text.Filled(
		text.When(f.HookCalls > 0, fmt.Sprintf("%s (p50 %gms, p99 %gms)", centurion.Count(f.HookCalls, "hook call"), f.HookP50, f.HookP99)),
		text.When(f.ToolCalls > 0, centurion.Count(f.ToolCalls, "tool call")), text.When(f.Failures > 0, centurion.Count(f.Failures, "failure")),
		f.cacheable()), ", ")
}

func (f *figures) cacheable() string {
	if f.Cacheable == nil {
		return ""
	}
	return fmt.Sprintf("%.1f%% of the requests stayed cacheable", *f.Cacheable*100)
}

func (c *cli) listPlugins(ctx context.Context, f *readFlags) error {
	p, ws, err := c.locate(f.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	cfg, err := c.configured(f.dir)
	if err != nil {
		return err
	}
	c.notices(cfg)
	servers, notices, err := p.Servers(ctx, cfg, ws, Version)
	if err != nil {
		return err
	}
	for _, n := range notices {
		c.note(text.Clean(n))
	}
	rows := []extensionRow{}
	for _, s := range servers {
		row := extensionRow{Kind: "mcp", Name: s.Name, State: s.State, Error: s.Error, Tools: []string{}}
		row.Tools, row.Tokens = names(s.Tools)
		row.Commands = text.Each(s.Prompts, func(p server.ServerPrompt) string { return "/" + p.Name })
		rows = append(rows, row)
	}
	plugins, offered, since, err := p.Plugins(ctx, cfg, ws, Version)
	if err != nil {
		return err
	}
	for _, s := range plugins {
		row := extensionRow{Kind: "plugin", Name: s.Name, State: string(s.State), Version: s.Version, Hooks: s.Hooks, InitMS: s.Init.Milliseconds(), Restarts: s.Restarts, Notes: s.Notes, figures: figuresOf(s, since)}
		if s.Err != nil {
			row.Error = strings.Join(text.Filled(s.Err.Error(), centurion.HintOf(s.Err)), "; ")
		}
		row.Tools, row.Tokens = names(slices.DeleteFunc(slices.Clone(offered), func(t centurion.ExternalTool) bool { return !slices.Contains(s.Tools, t.Name) }))
		rows = append(rows, row)
	}
	untrusted := func(s trust.State) bool { return !s.Trusted } // told above
	if len(rows) == 0 && f.format == "text" && !slices.ContainsFunc(cfg.ProjectFiles(), untrusted) {
		c.note("no plugins and no MCP servers are configured: name them under \"plugin\" and \"mcp\" in opencode.json (docs/plugins.md, docs/mcp.md)")
	}
	return printRows(c, f.format, rows, extensionRow.lines)
}

// names returns the names of tools, and the tokens that they take in a request.
func names(all []centurion.ExternalTool) (names []string, tokens int) {
	bytes := 0
	for _, t := range all {
		names = append(names, t.Name)
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return append([]string{}, names...), int(session.TokensOf(bytes))
}

func (r extensionRow) lines() string {
	said := text.Clean(r.Error)
	if said == "" {
		said = strings.Join(text.Filled(centurion.Count(len(r.Tools), "tool")+text.When(r.Tokens > 0, fmt.Sprintf(" (%s)", centurion.Count(r.Tokens, "token"))),
			text.When(len(r.Hooks) > 0, centurion.Count(len(r.Hooks), "hook"))), ", ")
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%-6s %-20s %-10s %s\n", r.Kind, strings.Join(text.Filled(r.Name, r.Version), "@"), r.State, oneLine(said))
	for _, more := range append([]string{strings.Join(r.Tools, " "), strings.Join(r.Commands, " "), strings.Join(r.Hooks, " "), r.line()}, r.Notes...) {
		if more != "" {
			fmt.Fprintf(&lines, "%39s%s\n", "", text.Clean(more))
		}
	}
	return lines.String()
}

func testPluginCommand(c *cli) *cobra.Command {
	f := readFlags{}
	cmd := &cobra.Command{Use: "test [flags] PROGRAM [ARGUMENT...]", Short: "Play the protocol at a native plugin and say what is wrong",
		Long: "Start a native plugin as in a mission and play each message of the protocol (docs/plugins.md): its hooks, calls of its tools with right\n" +
			"and wrong arguments, an abort, and what it does not know. Its tools run: confined, but with the network. Exit code 1 if something\n" +
			"is wrong.",
		Example: "  centurion plugin test python3 words.py\n  centurion plugin test --format json ./words", Args: exactly(1, -1, "a program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			p, ws, err := c.locate(f.dir)
			if err != nil {
				return err
			}
			defer ws.Close()
			cfg, err := c.configured(f.dir)
			if err != nil {
				return err
			}
			rows, err := p.CheckPlugin(cmd.Context(), cfg, ws, args, Version)
			if err != nil {
				return err
			}
			if err := printRows(c, f.format, rows, plugin.Finding.Lines); err != nil {
				return err
			}
			if wrong := len(slices.DeleteFunc(slices.Clone(rows), func(r plugin.Finding) bool { return r.Holds })); wrong > 0 {
				return &centurion.Error{Op: "plugin test", Kind: centurion.KindInvalidRequest, Msg: fmt.Sprintf("%d of %s failed", wrong, centurion.Count(len(rows), "check")), Hint: "docs/plugins.md has the protocol"}
			}
			return nil
		}}
	cmd.Flags().SetInterspersed(false) // the program has flags of its own
	f.bind(cmd)
	return cmd
}
