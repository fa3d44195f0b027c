package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/text"
)

func pluginCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Show MCP servers and their tools", Args: exactly(0, 0, "a command such as list"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(plainCommand("list", "Connect the MCP servers and list their tools",
		"Connect the MCP servers of the configuration (`mcp` in opencode.json) and list what they offer. That is remembered, so that the\n"+
			"next conversation has these tools from its first request on.",
		"  centurion plugin list\n  centurion plugin list --format json",
		func(ctx context.Context, f *readFlags) error {
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
			rows, notices, err := p.Servers(ctx, cfg, ws, Version)
			if err != nil {
				return err
			}
			for _, n := range notices {
				c.note(text.Clean(n))
			}
			if len(rows) == 0 && f.format == "text" {
				c.note("no MCP servers are configured: name them under \"mcp\" in opencode.json (docs/mcp.md)")
			}
			return printRows(c, f.format, rows, func(r server.ToolServer) string {
				names := text.Each(r.Tools, func(t centurion.ExternalTool) string { return t.Name })
				said := text.If(r.Error == "", centurion.Count(len(r.Tools), "tool"), text.Clean(r.Error))
				return fmt.Sprintf("%-16s %-9s %s\n%s", r.Name, r.State, oneLine(said), text.When(len(names) > 0, fmt.Sprintf("%26s%s\n", "", strings.Join(names, " "))))
			})
		}))
	return cmd
}
