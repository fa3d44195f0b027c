package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/takeover"
	"centurion/tui"
)

const diffHelp = `Show what a mission or a task has changed (default: the latest mission).

Of a mission all that stands on its branch is shown, from where it began; your own uncommitted work that it began with is
not part of that. Of a task its commits are shown, and while it works what it has not committed yet. A task of the latest
mission may be named by its item. Files and directories that are named, relative to the repository's top, narrow it down.

Into a pipe the change goes as it is, so that it can be applied: centurion diff T3 | git apply`

func diffCommand(c *cli) *cobra.Command {
	var stat, names bool
	cmd := readCommand(c, "diff [MISSION|TASK] [PATH...]", "Show what a mission or task changed", diffHelp,
		"  centurion diff\n  centurion diff T3 --stat\n  centurion diff msn_0199… src/parser\n  centurion diff tsk_0199… --format json",
		exactly(0, -1, "a mission or a task, and paths"),
		func(ctx context.Context, v *view, args []string) error {
			if stat && names {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: "--stat and --name-only do not go together", Hint: "choose one of them"}
			}
			id, err := workID(ctx, v.API, first(args))
			if err != nil {
				return err
			}
			o := takeover.DiffOptions{Patch: v.json() || !stat && !names}
			if len(args) > 1 {
				o.Paths = args[1:]
			}
			var got takeover.Change
			err = v.Beside(func(api server.API) (err error) {
				got, err = api.Diff(ctx, id, o)
				return err
			})
			if err != nil {
				return err
			}
			return v.printChange(got, stat, names)
		})
	cmd.Flags().BoolVar(&stat, "stat", false, "the files and how many lines of them, instead of the lines")
	cmd.Flags().BoolVar(&names, "name-only", false, "the names of the files only")
	cmd.ValidArgsFunction = complete(c, 1, missions, items)
	return cmd
}

func (v *view) printChange(got takeover.Change, stat, names bool) error {
	o := v.showOptions()
	switch {
	case v.json():
		return writeJSON(v.out, got)
	case names:
		for _, file := range got.Files {
			if _, err := fmt.Fprintln(v.out, tui.Escape(file.Path)); err != nil {
				return err
			}
		}
		return nil
	}
	if !got.Undone.IsZero() {
		v.note("it was taken back, " + got.Undone.Local().Format(time.DateTime) + "; this is what it had changed")
	}
	switch {
	case len(got.Files) == 0:
		v.note("nothing was changed")
		return nil
	case stat:
		return tui.Stat(v.out, got.Files, o)
	case !tui.CanLive(v.in, v.out, v.env): // byte for byte, for whoever applies it
		_, err := v.out.Write(got.Bytes())
		return err
	}
	return tui.Patch(v.out, string(got.Bytes()), o)
}

// diffOf shows what a mission has changed to a person who is asked about it.
func (c *cli) diffOf(ctx context.Context, api server.Person, out io.Writer, mission string) error {
	got, err := api.Diff(ctx, mission, takeover.DiffOptions{Patch: true})
	if err != nil {
		return err
	}
	return tui.Patch(out, string(got.Bytes()), c.showOptions())
}
