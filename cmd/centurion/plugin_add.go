package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/host"
	"centurion/plugin"
)

func addPluginsCommand(c *cli) *cobra.Command {
	project := false
	cmd := &cobra.Command{Use: "add [NAME[@VERSION]...]", Short: "Install plugins from npm, and the runtime that they need",
		Long: "Install plugins of OpenCode's from npm, and Bun, which runs them, and name them in your configuration: one that a file names already\n" +
			"gets its new version there. Without a name, what the configuration names is installed. npm has to be installed; no script of a\n" +
			"package runs.",
		Example: "  centurion plugin add\n  centurion plugin add opencode-skills@0.1.7\n  centurion plugin add --project opencode-skills", Args: exactly(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.configured("")
			if err != nil {
				return err
			}
			c.notices(cfg)
			specs := args
			if len(args) == 0 {
				for _, s := range cfg.Plugins {
					if s.Spec != "" && !s.Local {
						specs = append(specs, s.Spec)
					}
				}
			}
			c.note("npm installs " + strings.Join(append([]string{"Bun"}, specs...), ", "))
			bun, err := plugin.Install(cmd.Context(), cfg.PluginDir(), specs, runProgram)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "installed, with Bun %s (%.12s)\n", bun.Version, bun.SHA256)
			for _, spec := range args {
				if err := namePlugin(c, cfg, spec, project); err != nil {
					return err
				}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&project, "project", false, "name them in the project's file instead of yours")
	return cmd
}

// namePlugin names a package in a configuration file, unless one does. One that names another version gets this one.
func namePlugin(c *cli, cfg *config.Config, spec string, project bool) error {
	name, _, _ := plugin.Package(spec)
	named := slices.DeleteFunc(slices.Clone(cfg.PluginEntries()), func(e config.PluginEntry) bool { n, _, _ := plugin.Package(e.Spec); return n != name })
	for _, e := range named {
		if e.Spec != spec && e.File != "" {
			if err := e.Replace(spec); err != nil {
				return err
			}
		}
		fmt.Fprintf(c.out, "%s names %s\n", e.At, spec)
	}
	if len(named) > 0 {
		return nil
	}
	file := cfg.PluginFile(project)
	err := config.AddPlugin(file, spec)
	if err == nil && project {
		c.note("it is in force once you trust the file: centurion trust")
	}
	return c.say(err, fmt.Sprintf("%s names %s", file, spec))
}

func removePluginCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "remove PLUGIN", Short: "Take a plugin out of the configuration and uninstall it",
		Long: "Take a plugin out of each configuration file that names it, and uninstall its package with what only it needs, unless another of\n" +
			"your projects names it. A file in .opencode/plugins is named and stays: delete it yourself.",
		Example: "  centurion plugin remove opencode-skills\n  centurion plugin remove ./guard.ts\n  centurion plugin remove exec:words", Args: exactly(1, 1, "the name of a plugin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.configured("")
			if err != nil {
				return err
			}
			named, err := cfg.PluginsNamed(args[0])
			if err != nil {
				return err
			}
			name, _, ok := plugin.Package(args[0])
			if len(named) > 0 {
				name, _, ok = plugin.Package(named[0].Spec)
			}
			installed := ok && plugin.Has(cfg.PluginDir(), name)
			if len(named) == 0 && !installed {
				return &centurion.Error{Op: "plugin remove", Kind: centurion.KindNotFound, Msg: fmt.Sprintf("no plugin %q is configured", args[0]), Hint: "see: centurion plugin list"}
			}
			for _, e := range named {
				if err := e.Replace(""); err != nil {
					return err
				}
				fmt.Fprintf(c.out, "%s no longer names %s\n", e.At, e.Spec)
			}
			if !installed {
				return nil
			}
			if why, err := host.NeedsPlugin(cmd.Context(), name, c.getenv, c.note); err != nil || why != "" {
				return c.say(err, name+" stays installed: "+why)
			}
			return c.say(plugin.Uninstall(cmd.Context(), cfg.PluginDir(), name, runProgram), "uninstalled "+name)
		}}
}

// runProgram runs a program of the person's in a directory and returns its output.
func runProgram(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		err = os.ErrNotExist
	}
	return out.String(), err
}
