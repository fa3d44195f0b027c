package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/server"
	"centurion/tui"
)

const (
	defaultMaxCost = 10        // USD, when nobody says otherwise
	fallbackTokens = 5_000_000 // the cap for a model without a price
)

func runCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] [GOAL|-]",
		Short: "Run a mission to its end",
		Long: "Run a mission in this directory, in the foreground, to its end.\n\n" +
			"The goal is one argument, or standard input for «-». It may begin with a command: /task GOAL is the same as GOAL;\n" +
			"/plan GOAL writes the plan, shows it and ends; `centurion commands` lists the others. Exit codes: 0 complete, 1 failed, 2 wrong usage or configuration,\n" +
			"3 paused (a limit; resumable), 4 blocked on a person (resumable), 5 cancelled, 130 interrupted (resumable).\n\n" +
			"A plan that you wrote yourself is carried out with --plan FILE. A todo.md that no mission of this project wrote is asked about on a\n" +
			"terminal, and put aside without one.\n\n" +
			"Without a terminal and with --ask ask a question of an agent ends the process with exit code 4 as soon as nothing else goes on;\n" +
			"an ask for permission is waited for: centurion asks, approve and deny answer it from another terminal.",
		Example: "  centurion run \"add a rate limit to the API\"\n  centurion run --model openai/gpt-5 --max-cost 2 \"mend the flaky test\"\n" +
			"  centurion run \"/plan port the parser to Go\" && centurion resume\n  echo \"update the changelog\" | centurion run --ask allow --format json -",
		Args: exactly(0, -1, "a goal"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			goal, err := c.goal(args)
			if err != nil {
				return err
			}
			return c.startMission(cmd.Context(), f, goal)
		},
	}
	f.bind(cmd)
	fileFlag(cmd, &f.files)
	cmd.Flags().StringVar(&f.plan, "plan", "", "carry out the plan in this `FILE`, such as .opencode/todo.md")
	return cmd
}

func badValue(flag, value string, all []string) error {
	all = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" })
	e := &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("--%s cannot be %q; it is one of %s", flag, value, strings.Join(all, ", "))}
	e.Hint = fmt.Sprintf("give one of them: --%s %s", flag, all[0])
	if near := centurion.Nearest(value, all); near != "" {
		e.Hint = fmt.Sprintf("did you mean --%s %s?", flag, near)
	}
	return e
}

// goal reads the goal from the arguments or from standard input.
func (c *cli) goal(args []string) (string, error) {
	goal := strings.Join(args, " ")
	if goal == "-" {
		b, err := io.ReadAll(io.LimitReader(c.in, maxGoal+1))
		if err != nil {
			return "", &centurion.Error{Op: "read the goal from standard input", Kind: centurion.KindUsage, Err: err}
		}
		goal = string(b)
	}
	if len(goal) > maxGoal {
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("the goal is longer than %d KB", maxGoal>>10),
			Hint: "put the details into a file of the project and name it in the goal"}
	}
	goal = strings.TrimSpace(goal)
	if goal == "" {
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "there is no goal",
			Hint: `say what is to be done: centurion run "add a rate limit to the API"`}
	}
	return goal, nil
}

// maxGoal bounds a goal, in bytes: it is sent with every request.
const maxGoal = 256 << 10

// startMission is `centurion run`.
func (c *cli) startMission(ctx context.Context, f *runFlags, text string) error {
	st, err := c.begin(ctx, f, text)
	if err != nil || st.done {
		return err
	}
	sure := f.yes // of the person, not of a file
	conn, err := c.prepare(ctx, f)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	if err := c.confirmDirectory(ctx, conn.Workspace.Dir(), f, sure); err != nil {
		return err
	}
	opts, err := c.options(f, conn.Models)
	if err != nil {
		return err
	}
	with, err := attachments(conn.Workspace, f.files, maxGoal-len(st.goal))
	if err == nil {
		err = with.takenBy(conn.Models)
	}
	if err != nil {
		return err
	}
	opts.Attached, opts.Files = strings.TrimSpace(with.text), with.files
	opts.PlanOnly, opts.Plan, opts.Detached = st.planOnly, f.plan, f.detach
	opts.ShowPlan = opts.ShowPlan && !st.planOnly
	opts.Request = rand.Text() // if the host dies before it answers, the next one is asked again
	return c.launch(ctx, conn, f, func() (m server.Mission, after int64, err error) {
		m, err = c.startWith(ctx, conn, f, st.goal, opts)
		return m, 0, err
	})
}

// launch brings a mission to its end: it connects to the project's host or becomes it, starts or resumes the mission there, and follows it from
// an event on. With --detach a background host gets the mission.
func (c *cli) launch(ctx context.Context, conn *host.Connection, f *runFlags, begin func() (m server.Mission, after int64, err error)) error {
	if f.detach {
		if err := conn.ConnectBackground(ctx); err != nil {
			return err
		}
		m, _, err := begin()
		if err != nil {
			return err
		}
		return c.printDetached(ctx, conn, f, m)
	}
	if err := conn.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return err
	}
	c.sayWhere(conn)
	m, after, err := begin()
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	return c.follow(ctx, conn, f, m.ID, after)
}

// confirmDirectory asks before agents work on the home directory or on a whole file system, which nobody means by a project. Without a
// terminal it refuses, unless the person is sure.
func (c *cli) confirmDirectory(ctx context.Context, dir string, f *runFlags, sure bool) error {
	what := ""
	switch home, err := filepath.EvalSymlinks(c.getenv("HOME")); {
	case filepath.Dir(dir) == dir:
		what = "the root of a file system"
	case err == nil && dir == home:
		what = "your home directory"
	}
	if what == "" || sure {
		return nil
	}
	refused := &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: dir + " is " + what + ": agents would read and change everything in it",
		Hint: "go to a project directory, or name one with --dir; --yes starts here all the same"}
	if !tui.CanLive(c.in, c.out, c.env) || f.format == "json" {
		return refused
	}
	fmt.Fprintf(c.out, "%s is %s. Agents would read and change everything in it.\n", tui.Clean(dir), what)
	key, err := tui.Choose(ctx, tui.Choice{Text: "start here? (y/N)", Keys: "yn", Default: "n", In: c.in, Out: c.out, Env: c.env})
	if err == nil && key != "y" {
		return refused
	}
	return err
}
