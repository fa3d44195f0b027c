package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/demo"
	"centurion/event"
	"centurion/host"
	"centurion/provider/scripted"
	"centurion/tui"
)

func demoCommand(c *cli) *cobra.Command {
	var kill bool
	var format string
	var opts demo.KillOptions
	cmd := &cobra.Command{Use: "demo", Short: "Run a whole mission on a sample project, without a key",
		Long: "Run a whole mission on a sample project. Its model is scripted: the answers are written down and come over loopback\n" +
			"HTTP, everything else is what every mission runs on. No key and no network are needed.\n\n" +
			"With --kill the host of that mission is killed with SIGKILL ten times, at random moments, and comes back each time. At the\n" +
			"end it is counted what was lost and what was done twice.",
		Example: "  centurion demo\n  centurion demo --kill", Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			if kill {
				opts.Kills, opts.Seed = max(1, opts.Kills), cmp.Or(opts.Seed, rand.Uint64N(maxSeed)+1)
				return (&sample{c, format}).kill(cmd.Context(), opts)
			}
			return (&sample{c, format}).run(cmd.Context())
		}}
	fl := cmd.Flags()
	fl.BoolVar(&kill, "kill", false, "kill the host ten times and count losses")
	fl.StringVar(&format, "format", "text", "text or json, one event on each line")
	fl.IntVar(&opts.Kills, "kills", 10, "how many kills --kill makes")
	fl.Uint64Var(&opts.Seed, "seed", 0, "choose the moments of --kill as the run with this seed did (0: at random)")
	fl.BoolVar(&opts.Fast, "hurry", false, "let the model of --kill answer as fast as it can")
	for _, name := range []string{"kills", "seed", "hurry"} {
		fl.Lookup(name).Hidden = true
	}
	cmd.AddCommand(demoHostCommand(c))
	return cmd
}

// maxSeed keeps seeds short enough to type.
const maxSeed = 999_999

// sample is the mission of a demonstration, and how it is shown.
type sample struct {
	*cli
	format string
}

// run runs a mission on the sample project.
func (c *sample) run(ctx context.Context) error {
	s, err := demo.NewStage(ctx, c.textOut(), false, scripted.Config{})
	if err != nil {
		return err
	}
	if c.format == "text" {
		fmt.Fprintln(c.out)
	}
	err = c.mission(ctx, s, 0, nil)
	if err == nil && c.format == "text" {
		fmt.Fprintf(c.out, "\nLook at what was made: %s\n", s.Project)
		err = c.report(ctx, s)
	}
	return errors.Join(err, s.Model.Close())
}

// report writes the report of the demonstration's mission next to its project and prints the path.
func (c *sample) report(ctx context.Context, on demo.Stage) error {
	v, err := on.Open(ctx, c.getenv)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	r, err := reportOf(ctx, v, "")
	if err == nil {
		err = writeReport(&b, r, formHTML)
	}
	file := filepath.Join(on.Dir, "report.html")
	if err == nil {
		err = replaceFile(file, b.Bytes())
	}
	if err == nil {
		_, err = fmt.Fprintf(c.out, "Open its report in a browser: %s\nThe commands that are named work there with CENTURION_HOME=%s\n", file, filepath.Join(on.Dir, "home"))
	}
	return errors.Join(err, v.Close())
}

// mission hosts the mission of the demonstration and shows what happens after an event. It resumes the mission of a killed host.
func (c *sample) mission(ctx context.Context, on demo.Stage, after int64, notices *bool) error {
	conn, id, err := on.Host(ctx, host.Options{Version: Version, Watch: c.hostOptions().Watch}, notices)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	return (&runner{c.cli, &runFlags{format: c.format, merge: true}}).follow(ctx, conn, id, after)
}

// demoHostCommand is the host that `centurion demo --kill` kills. It is not for people.
func demoHostCommand(c *cli) *cobra.Command {
	var dir, url string
	var after int64
	var parent int
	cmd := &cobra.Command{Use: "host", Short: "Host the mission of a demonstration", Hidden: true, Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := demo.StageIn(dir)
			s.URL = url
			return demo.WhileParent(cmd.Context(), parent, func(ctx context.Context) error {
				return (&sample{c, "json"}).mission(ctx, s, after, new(false))
			})
		}}
	fl := cmd.Flags()
	fl.StringVar(&dir, "dir", "", "what the demonstration made")
	fl.StringVar(&url, "url", "", "the scripted model")
	fl.Int64Var(&after, "after", 0, "the last event that is known")
	fl.IntVar(&parent, "parent", 0, "the process that is waited for")
	return cmd
}

// textOut returns the text output of a command that can also write JSON, nil with --format json.
func (c *sample) textOut() io.Writer {
	if c.format == "json" {
		return nil
	}
	return c.out
}

// kill is `centurion demo --kill`.
func (c *sample) kill(ctx context.Context, o demo.KillOptions) error {
	o.Out, o.Env, o.Color = c.textOut(), c.env, c.live() && tui.Color(c.env)
	o.Show = func(ctx context.Context, events iter.Seq2[centurion.Event, error]) error {
		return tui.RunPlain(ctx, c.out, events)
	}
	if c.format == "json" {
		o.Show = func(ctx context.Context, events iter.Seq2[centurion.Event, error]) error {
			return tui.RunJSON(ctx, c.out, events)
		}
	}
	ended, ok, err := demo.Kill(ctx, o)
	if err != nil {
		return err
	}
	c.code = demoExit(ended, ok)
	return nil
}

// demoExit is the exit code of a demonstration whose mission has ended with an event: never 0 if something was lost or done twice.
func demoExit(ended centurion.Event, ok bool) int {
	_, status, _ := strings.Cut(string(ended.Type), ".")
	end, _ := event.Decode[event.MissionEnd](ended)
	code := missionExit(centurion.MissionStatus(status), end.Reason)
	if !ok {
		return max(code, exitFailed)
	}
	return code
}
