package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/config"
)

// openCodeAgents are the agents that OpenCode itself has. Settings for them are for its conversations.
var openCodeAgents = []string{"build", "plan", "general", "explore", "title", "summary", "compaction"}

// castOf returns the agents of the profile mission, with those of the configuration.
func castOf(cfg *config.Config) (*agents.Cast, error) { return castIn(cfg, agents.ProfileMission) }

// castIn returns the agents of a profile, with those of the configuration. Settings under an old name go to the agent that
// has its work now, in cfg too, so that its permissions do as well. What does not count is added to cfg's notices.
func castIn(cfg *config.Config, profile string) (*agents.Cast, error) {
	var defs []agents.Definition
	var passed, project []string
	say := func(format string, args ...any) {
		cfg.Notices = append(cfg.Notices, "centurion: "+fmt.Sprintf(format, args...))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		a := cfg.Agents[name]
		if slices.Contains(openCodeAgents, name) && a.Prompt == "" {
			passed = append(passed, name)
			continue
		}
		if to := agents.Alias(name); to != "" && a.Prompt == "" { // with a prompt it is an agent of the person's own
			delete(cfg.Agents, name)
			if _, both := cfg.Agents[to]; both {
				say("the settings of agent %s (%s) do not count beside those of the %s, whose old name it is", name, a.File, to)
				continue
			}
			cfg.Agents[to] = a
			name = to
		}
		if a.Project {
			project = append(project, name+" ("+a.File+")")
		}
		defs = append(defs, agents.Definition{Name: name, Description: a.Description, Mode: a.Mode, Model: a.Model, Prompt: a.Prompt,
			Temperature: a.Temperature, Steps: a.Steps, Tools: a.Tools, Disable: a.Disable, Source: a.File})
	}
	if len(passed) > 0 {
		say("settings of OpenCode's own agents have no part in a mission: %s", strings.Join(passed, ", "))
	}
	if len(project) > 0 {
		say("agents that came with the project are in force: %s", strings.Join(project, ", "))
	}
	base := agents.Default()
	if profile == agents.ProfileAssistant {
		base = agents.DefaultAssistant()
	}
	cast, notes, err := base.With(defs...)
	for _, n := range notes {
		say("%s", n)
	}
	return cast, err
}

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

func (c *cli) agentsCommand() *cobra.Command {
	var profile string
	cmd := c.looking("agents", "List the agents",
		"List the agents of a profile, with the tools each holds and where it comes from: those that are built in (the four of a\n"+
			"mission, or the assistant), and those of .opencode/agents/*.md, opencode.json and their like in ~/.config/opencode.",
		"  centurion agents\n  centurion agents --profile assistant\n  centurion agents --format json",
		func(_ context.Context, f *readFlags, _ []string) error {
			cfg, err := c.configured(f.dir)
			if err != nil {
				return err
			}
			rf := runFlags{profile: profile}
			if err := rf.settle(cfg.Own); err != nil {
				return err
			}
			cast, err := castIn(cfg, rf.profile)
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
