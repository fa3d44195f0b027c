package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/server"
	"centurion/text"
	"centurion/tui"
)

// view is a project that a command reads, and how it shows the results.
type view struct {
	*cli
	*host.View
	format string
}

func (v *view) json() bool { return v.format == "json" }

// readFlags are the flags of the commands that read a project.
type readFlags struct{ dir, format string }

func (f *readFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "", "the project directory (default: here)")
	formatFlag(cmd, &f.format)
}

// formatFlag is --format of the commands that print text or JSON.
func formatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "text", "text or json")
	completeValues(cmd, "format", "text", "json")
}

func checkFormat(format string) error {
	if format != "text" && format != "json" {
		return badValue("format", format, []string{"text", "json"})
	}
	return nil
}

// open opens the project in a directory for one command.
func (c *cli) open(ctx context.Context, f *readFlags, do func(*view) error) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	v, err := host.Open(ctx, f.dir, c.getenv)
	if err != nil {
		return err
	}
	return errors.Join(do(&view{c, v, f.format}), v.Close())
}

// action is what a command does with a project.
type action func(ctx context.Context, v *view, args []string) error

// on is the action for what a command's first argument names, which find makes an id.
func on(find func(ctx context.Context, api server.API, typed string) (string, error), do func(ctx context.Context, v *view, id string) error) action {
	return func(ctx context.Context, v *view, args []string) error {
		id, err := find(ctx, v.API, first(args))
		if err != nil {
			return err
		}
		return do(ctx, v, id)
	}
}

// projectCommand creates a command that acts on a project.
func projectCommand(c *cli, use, short, long, example string, args cobra.PositionalArgs, do action) *cobra.Command {
	f := &readFlags{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.open(cmd.Context(), f, func(v *view) error { return do(cmd.Context(), v, args) })
		}}
	f.bind(cmd)
	return cmd
}

// readCommand creates a command that changes nothing, and prints nothing before it knows everything. If the host ends meanwhile, the
// command retries: with the next host, or the store.
func readCommand(c *cli, use, short, long, example string, args cobra.PositionalArgs, do action) *cobra.Command {
	cmd := projectCommand(c, use, short, long, example, args, do)
	look := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := look(cmd, args)
		if centurion.KindOf(err) == centurion.KindNetwork {
			err = look(cmd, args)
		}
		return err
	}
	return cmd
}

// listCommand creates a command that lists things. If no mission has run yet it prints none, which is no error.
func listCommand(c *cli, use, short, long, example string, args cobra.PositionalArgs, none string, do action) *cobra.Command {
	cmd := readCommand(c, use, short, long, example, args, do)
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := list(cmd, args)
		if _, ok := errors.AsType[host.NoMissionError](err); !ok || len(args) > 0 {
			return err
		}
		if cmd.Flag("format").Value.String() == "json" {
			none = "[]"
		}
		if _, err = fmt.Fprintln(c.out, none); err == nil {
			c.noteMoved(cmd.Context(), cmd.Flag("dir").Value.String())
		}
		return err
	}
	return cmd
}

// plainCommand creates a command that needs no project state.
func plainCommand(use, short, long, example string, do func(ctx context.Context, f *readFlags) error) *cobra.Command {
	f := &readFlags{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(f.format); err != nil {
				return err
			}
			return do(cmd.Context(), f)
		}}
	f.bind(cmd)
	return cmd
}

const noMissions = "No missions here yet. Start one with: centurion run \"GOAL\""

// writeJSON prints a value; what a terminal would obey or hide in its texts is escaped, which changes no value.
func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(text.EscapeJSON(b), '\n'))
	}
	return err
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// printResult prints an object as JSON, or a text for a person.
func (c *cli) printResult(format string, object any, text string) error {
	if format == "json" {
		return writeJSON(c.out, object)
	}
	return c.say(nil, text)
}

// printRows prints rows as JSON, or each one's lines for a person.
func printRows[T any](c *cli, format string, rows []T, lines func(T) string) error {
	if format == "json" {
		return writeJSON(c.out, append([]T{}, rows...)) // an empty list for none
	}
	_, err := io.WriteString(c.out, strings.Join(text.Each(rows, lines), ""))
	return err
}

// printList prints a list as JSON, or for a person with show, or says that there is none.
func printList[T any](c *cli, format string, all []T, none string, show func() error) error {
	switch {
	case format == "json":
		return writeJSON(c.out, append([]T{}, all...)) // an empty list for none
	case len(all) == 0:
		return c.say(nil, none)
	}
	return show()
}

// say prints what was done, unless err says otherwise.
func (c *cli) say(err error, done string) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, done)
	return err
}

// live reports whether a person is at a terminal that can be redrawn.
func (c *cli) live() bool { return tui.CanLive(c.in, c.out, c.env) }

// choose asks the person to press one of a few keys, and returns it.
func (c *cli) choose(ctx context.Context, text, keys, def string) (string, error) {
	return tui.Choose(ctx, tui.Choice{Text: text, Keys: keys, Default: def, In: c.in, Out: c.out, Env: c.env})
}

func (c *cli) showOptions() tui.ShowOptions {
	return tui.ShowOptions{Color: c.live() && tui.Color(c.env)}
}
