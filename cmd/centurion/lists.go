package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/goal"
	"centurion/config"
	"centurion/text"
)

func modelsCommand(c *cli) *cobra.Command {
	type row struct {
		Model   string           `json:"model"`
		Context int              `json:"context"`
		Output  int              `json:"output"`
		Cost    *centurion.Price `json:"cost,omitempty"`  // USD for a million tokens
		Takes   []string         `json:"takes,omitempty"` // file types
		Source  string           `json:"source"`          // a file, or "built in"
	}
	return plainCommand("models", "List models with their prices and limits",
		"List the models of your configuration, then the built-in ones, with prices (USD for a million tokens) and limits (tokens).\n"+
			"Any other model of a provider can be used too.",
		"  centurion models\n  centurion models --format json",
		func(_ context.Context, f *readFlags) error {
			cfg, err := c.configured(f.dir)
			if err != nil {
				return err
			}
			rows := []row{}
			for _, m := range cfg.Listed() {
				rows = append(rows, row{m.Name, m.Limit.Context, m.Limit.Output, m.Price, goal.FileTypes(m.Media), cmp.Or(m.File, builtIn)})
			}
			return printRows(c, f.format, rows, func(r row) string {
				price := "$?"
				if r.Cost != nil {
					price = fmt.Sprintf("$%g in, $%g out", r.Cost.Input, r.Cost.Output)
				}
				return fmt.Sprintf("%-44s %9d  %s\n", r.Model, r.Context, price+text.When(len(r.Takes) > 0, "  takes "+strings.Join(r.Takes, ", "))+
					text.When(r.Source != builtIn, "  from "+r.Source))
			})
		})
}

func versionCommand(c *cli) *cobra.Command {
	return plainCommand("version", "Print the version", "Print the version.", "  centurion version\n  centurion version --format json", func(_ context.Context, f *readFlags) error {
		return c.printResult(f.format, map[string]string{"version": Version}, "centurion "+Version)
	})
}

func authCommand(c *cli) *cobra.Command {
	auth := &cobra.Command{Use: "auth", Short: "Manage API keys",
		Long:    "Manage API keys of providers in the desktop's keyring, or without one in a file that only you can read.",
		Example: "  centurion auth login openai\n  centurion auth list", Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	keys := func() *config.Keys { return config.NewKeys(config.Options{Env: c.getenv}) }
	auth.AddCommand(&cobra.Command{Use: "login PROVIDER", Short: "Store a key", Args: exactly(1, 1, "a provider"),
		Example: "  centurion auth login openai\n  printenv MY_KEY | centurion auth login openai",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.configured("")
			if err != nil { // a key can be stored all the same
				cfg = &config.Config{}
			}
			if err := cfg.Known(args[0]); err != nil {
				return err
			}
			key, err := c.secret(cmd.Context(), "Key of "+args[0]+": ")
			if err != nil {
				return err
			}
			where, err := keys().Login(cmd.Context(), args[0], config.Secret(key))
			return c.say(err, "stored in "+where)
		}})
	auth.AddCommand(authListCommand(c, keys))
	auth.AddCommand(&cobra.Command{Use: "logout PROVIDER", Short: "Remove a key", Args: exactly(1, 1, "a provider"),
		Example: "  centurion auth logout openai",
		RunE: func(cmd *cobra.Command, args []string) error {
			had, err := keys().Logout(cmd.Context(), args[0])
			return c.say(err, text.If(had, "forgotten", "there was no key of "+args[0]))
		}})
	return auth
}

func authListCommand(c *cli, keys func() *config.Keys) *cobra.Command {
	format := ""
	cmd := &cobra.Command{Use: "list", Short: "List stored keys (values hidden)", Args: exactly(0, 0, "no arguments"),
		Example: "  centurion auth list\n  centurion auth list --format json",
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			all, err := keys().List()
			if err != nil || len(all) == 0 && format == "text" {
				return c.say(err, "No keys are kept. Keep one with: centurion auth login PROVIDER")
			}
			return printRows(c, format, all, func(k config.KeyInfo) string { return fmt.Sprintf("%-12s %s\n", k.Provider, k.Source) })
		}}
	formatFlag(cmd, &format)
	return cmd
}

// agentRow is an agent as `centurion agents` shows it.
type agentRow struct {
	Name        string   `json:"name"`
	Mode        string   `json:"mode"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	External    []string `json:"external,omitempty"` // patterns of tools of MCP servers; "!" takes away
	Delegates   []string `json:"delegates,omitempty"`
	Model       string   `json:"model,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Source      string   `json:"source"` // a file, or "built in"

	Outside *config.Outside `json:"outside,omitempty"` // the program that it is
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
				var picked []string
				if len(cfg.Servers)+len(cfg.Plugins) > 0 {
					picked = a.Picked()
				}
				row := agentRow{a.Name, a.Mode, a.Description, a.Tools, picked, a.Delegates, a.Model, a.Temperature, a.Steps, cmp.Or(a.Source, builtIn), nil}
				for _, o := range cfg.Outside() {
					if a.Model == config.OutsideProvider+"/"+o.Name {
						row.Tools, row.Outside = []string{}, &o
					}
				}
				rows = append(rows, row)
			}
			return printRows(c, f.format, rows, func(r agentRow) string {
				return fmt.Sprintf("%-10s %-9s %s\n%s", r.Name, r.Mode, oneLine(r.Description), r.details())
			})
		})
	cmd.Flags().StringVar(&profile, "profile", "", "mission or assistant (default: as configured)")
	return cmd
}

func orNone(names []string) string { return cmp.Or(strings.Join(names, " "), "none") }

// details are the lines below an agent's first one.
func (r agentRow) details() string {
	held := strings.Join(slices.Concat(r.Tools, r.External), " ")
	if o := r.Outside; o != nil {
		held = "its own tools; variables: " + orNone(o.Env) + "; directories: " + orNone(o.Dirs) + "; hosts: " + orNone(o.Hosts)
	}
	lines := fmt.Sprintf("%21s%s\n", "", oneLine(held))
	if r.Source == builtIn {
		return lines
	}
	from := "from " + r.Source + text.When(r.Model != "", ", model "+r.Model)
	if r.Temperature != nil {
		from += fmt.Sprintf(", temperature %g", *r.Temperature)
	}
	return lines + fmt.Sprintf("%21s%s\n", "", oneLine(from+text.When(r.Steps > 0, ", "+centurion.Count(r.Steps, "step"))))
}

// configured reads the configuration of the project in dir without touching its state.
func (c *cli) configured(dir string) (*config.Config, error) {
	return config.Load(config.Options{Dir: dir, Env: c.getenv})
}

// notices prints a configuration's notices, once, and what of the project's files is not in force without trust.
func (c *cli) notices(cfg *config.Config) { tellNotices(cfg, c.note) }

func tellNotices(cfg *config.Config, say func(string)) {
	for _, n := range cfg.Notices {
		say(strings.TrimPrefix(n, "centurion: "))
	}
	cfg.Notices = nil
	for _, s := range cfg.ProjectFiles() {
		if !s.Trusted {
			say(text.Clean(s.Notice()))
		}
	}
}
