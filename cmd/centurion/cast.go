package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
)

// agentRow is an agent as `centurion agents` shows it.
type agentRow struct {
	Name        string   `json:"name"`
	Mode        string   `json:"mode"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Delegates   []string `json:"delegates,omitempty"`
	Model       string   `json:"model,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Source      string   `json:"source"` // a file, or "built in"
}

const builtIn = "built in"

func agentsCommand(c *cli) *cobra.Command {
	var profile string
	cmd := plainCommand("agents", "List the agents",
		"List the agents of a profile, with the tools each holds and where it comes from: those that are built in (the four of a\n"+
			"mission, or the assistant), and those of .opencode/agents/*.md, opencode.json and their like in ~/.config/opencode.",
		"  centurion agents\n  centurion agents --profile assistant\n  centurion agents --format json",
		func(_ context.Context, f *readFlags) error {
			cfg, err := c.configured(f.dir)
			if err != nil {
				return err
			}
			rf := runFlags{profile: profile}
			if err := rf.settle(cfg.Own); err != nil {
				return err
			}
			cast, err := cfg.Cast(rf.profile)
			if err != nil {
				return err
			}
			c.notices(cfg)
			rows := []agentRow{}
			for _, a := range cast.All() {
				rows = append(rows, agentRow{a.Name, a.Mode, a.Description, a.Tools, a.Delegates, a.Model, a.Temperature, a.Steps,
					cmp.Or(a.Source, builtIn)})
			}
			if f.format == "json" {
				return writeJSON(c.out, rows)
			}
			for _, r := range rows {
				if _, err := fmt.Fprintf(c.out, "%-10s %-9s %s\n%s", r.Name, r.Mode, oneLine(r.Description), r.details()); err != nil {
					return err
				}
			}
			return nil
		})
	cmd.Flags().StringVar(&profile, "profile", "", "mission or assistant (default: the configuration's, else mission)")
	return cmd
}

// details are the lines below an agent's first one.
func (r agentRow) details() string {
	const indent = "                     "
	lines := []string{strings.Join(r.Tools, " ")}
	if r.Source != builtIn {
		from := "from " + r.Source
		if r.Model != "" {
			from += ", model " + r.Model
		}
		if r.Temperature != nil {
			from += fmt.Sprintf(", temperature %g", *r.Temperature)
		}
		if r.Steps > 0 {
			from += ", " + centurion.Count(r.Steps, "step")
		}
		lines = append(lines, from)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(indent + oneLine(l) + "\n")
	}
	return b.String()
}

// configured reads the configuration of the project in dir without touching its state.
func (c *cli) configured(dir string) (*config.Config, error) {
	return config.Load(config.Options{Dir: dir, Env: c.getenv})
}

// notices prints what a configuration has to say, once.
func (c *cli) notices(cfg *config.Config) {
	for _, n := range cfg.Notices {
		fmt.Fprintln(c.err, n)
	}
	cfg.Notices = nil
}
