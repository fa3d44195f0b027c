package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"centurion"
	"centurion/cmd/centurion/config"
	"centurion/provider/catalog"
)

// looking makes a command that needs no state of a project.
func (c *cli) looking(use, short, long, example string, do func(ctx context.Context, f *readFlags, args []string) error) *cobra.Command {
	f := &readFlags{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.format != "text" && f.format != "json" {
				return badValue("format", f.format, []string{"text", "json"})
			}
			return do(cmd.Context(), f, args)
		}}
	f.bind(cmd)
	return cmd
}

func (c *cli) modelsCommand() *cobra.Command {
	type row struct {
		Model   string           `json:"model"`
		Context int              `json:"context"`
		Output  int              `json:"output"`
		Cost    *centurion.Price `json:"cost,omitempty"`  // USD for a million tokens
		Takes   []string         `json:"takes,omitempty"` // which files
	}
	return c.looking("models", "List the models whose prices and limits are known",
		"List the models whose prices (USD for a million tokens) and limits (tokens) are known. Any other model of a provider can be used too.",
		"  centurion models\n  centurion models --format json",
		func(_ context.Context, f *readFlags, _ []string) error {
			rows := []row{}
			for _, p := range catalog.New().Providers() {
				for _, m := range p.Models {
					rows = append(rows, row{p.ID + "/" + m.ID, m.Context, m.Output, m.Price, takes(m.Media)})
				}
			}
			if f.format == "json" {
				return writeJSON(c.out, rows)
			}
			for _, r := range rows {
				price := "$?"
				if r.Cost != nil {
					price = fmt.Sprintf("$%g in, $%g out", r.Cost.Input, r.Cost.Output)
				}
				if len(r.Takes) > 0 {
					price += "  takes " + strings.Join(r.Takes, ", ")
				}
				if _, err := fmt.Fprintf(c.out, "%-44s %9d  %s\n", r.Model, r.Context, price); err != nil {
					return err
				}
			}
			return nil
		})
}

func (c *cli) versionCommand() *cobra.Command {
	return c.looking("version", "Print the version", "Print the version.", "  centurion version\n  centurion version --format json", func(_ context.Context, f *readFlags, _ []string) error {
		if f.format == "json" {
			return writeJSON(c.out, map[string]string{"version": Version})
		}
		_, err := fmt.Fprintln(c.out, "centurion "+Version)
		return err
	})
}

func (c *cli) authCommand() *cobra.Command {
	auth := &cobra.Command{Use: "auth", Short: "Keep keys of providers",
		Long:    "Keep keys of providers in the desktop's keyring, or in a file that only you can read where there is none.",
		Example: "  centurion auth login openai\n  centurion auth list", Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	keys := func() *config.Keys { return config.NewKeys(config.Options{Env: c.getenv}) }
	auth.AddCommand(&cobra.Command{Use: "login PROVIDER", Short: "Keep a key", Args: exactly(1, 1, "a provider"),
		Example: "  centurion auth login openai\n  printenv MY_KEY | centurion auth login openai",
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := c.secret("Key of " + args[0] + ": ")
			if err != nil {
				return err
			}
			where, err := keys().Login(cmd.Context(), args[0], config.Secret(key))
			return c.say(err, "kept in "+where)
		}})
	auth.AddCommand(c.authListCommand(keys))
	auth.AddCommand(&cobra.Command{Use: "logout PROVIDER", Short: "Forget a key", Args: exactly(1, 1, "a provider"),
		Example: "  centurion auth logout openai",
		RunE: func(cmd *cobra.Command, args []string) error {
			had, err := keys().Logout(cmd.Context(), args[0])
			if err == nil && !had {
				return c.say(nil, "there was no key of "+args[0])
			}
			return c.say(err, "forgotten")
		}})
	return auth
}

func (c *cli) authListCommand(keys func() *config.Keys) *cobra.Command {
	format := ""
	cmd := &cobra.Command{Use: "list", Short: "List where keys are, never what they are", Args: exactly(0, 0, "no arguments"),
		Example: "  centurion auth list\n  centurion auth list --format json",
		RunE: func(*cobra.Command, []string) error {
			if format != "text" && format != "json" {
				return badValue("format", format, []string{"text", "json"})
			}
			all, err := keys().List()
			switch {
			case err != nil:
				return err
			case format == "json":
				return writeJSON(c.out, append([]config.KeyInfo{}, all...)) // of none an empty list
			case len(all) == 0:
				return c.say(nil, "No keys are kept. Keep one with: centurion auth login PROVIDER")
			}
			for _, k := range all {
				if _, err := fmt.Fprintf(c.out, "%-12s %s\n", k.Provider, k.Source); err != nil {
					return err
				}
			}
			return nil
		}}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	completeValues(cmd, "format", "text", "json")
	return cmd
}

// secret reads a line without showing it on a terminal, or from a pipe.
func (c *cli) secret(prompt string) (string, error) {
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "no key came on standard input", Err: err}
		}
		return line, nil
	}
	fmt.Fprint(c.err, prompt)
	b, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.err)
	if err != nil {
		return "", &centurion.Error{Op: "read key", Kind: centurion.KindUsage, Err: err}
	}
	return strings.TrimSpace(string(b)), nil
}
