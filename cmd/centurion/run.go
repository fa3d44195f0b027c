package main

import (
	"cmp"
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
	"centurion/agents"
	"centurion/cli/goal"
	"centurion/host"
	"centurion/server"
	"centurion/text"
)

const (
	defaultMaxCost = 10        // USD, without --max-cost
	fallbackTokens = 5_000_000 // the limit for a model without a price
)

func runCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] [GOAL|-]",
		Short: "Run a mission to its end",
		Long: "Run a mission in this directory, in the foreground, to its end.\n\n" +
			"The goal is one argument, or - to read standard input. It may begin with a command: /task GOAL is the same as GOAL;\n" +
			"/plan GOAL writes the plan, prints it and exits; `centurion commands` lists the others.\n" +
			"Exit codes: 0 complete, 1 failed, 2 wrong usage or configuration, 3 paused (a limit; resumable), 4 blocked, needs you (resumable), 5 cancelled, 130 interrupted (resumable).\n\n" +
			"Use --plan FILE to run a plan that you wrote. If a todo.md was not written by a mission of this project, run asks about it on a\n" +
			"terminal and otherwise moves it aside.\n\n" +
			"--ask defaults to ask on a terminal and to deny elsewhere. With --ask ask and no terminal, run exits with 4 once an agent's\n" +
			"question is the only thing left. It waits for permission requests: list and answer them from another terminal with\n" +
			"centurion asks, approve and deny.",
		Example: "  centurion run \"add a rate limit to the API\"\n  centurion run --model openai/gpt-5 --max-cost 2 \"fix the flaky test\"\n" +
			"  centurion run \"/plan port the parser to Go\" && centurion resume\n  echo \"update the changelog\" | centurion run --ask allow --format json -",
		Args: exactly(0, -1, "a goal"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			text, err := c.readGoal(args)
			if err != nil {
				return err
			}
			return (&runner{c, f}).startMission(cmd.Context(), text)
		},
	}
	f.bind(cmd)
	fileFlag(cmd, &f.files)
	cmd.Flags().StringVar(&f.plan, "plan", "", "run the plan in `FILE`, such as .opencode/todo.md")
	return cmd
}

func badValue(flag, value string, all []string) error {
	all = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" })
	near := centurion.Nearest(value, all)
	return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("--%s cannot be %q; it is one of %s", flag, value, strings.Join(all, ", ")),
		Hint: text.If(near != "", fmt.Sprintf("did you mean --%s %s?", flag, near), fmt.Sprintf("give one of them: --%s %s", flag, all[0]))}
}

// readGoal reads the goal from the arguments or from standard input.
func (c *cli) readGoal(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(c.in, goal.MaxSize+1))
		if err != nil {
			return "", &centurion.Error{Op: "read the goal from standard input", Kind: centurion.KindUsage, Err: err}
		}
		text = string(b)
	}
	if len(text) > goal.MaxSize {
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "the goal is longer than " + centurion.Bytes(goal.MaxSize),
			Hint: "put the details into a file of the project and name it in the goal"}
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "there is no goal",
			Hint: `say what is to be done: centurion run "add a rate limit to the API"`}
	}
	return text, nil
}

// startMission is `centurion run`.
func (c *runner) startMission(ctx context.Context, text string) error {
	st, err := c.readRequest(ctx, text, c.configured)
	if err != nil || st.done {
		return err
	}
	sure := c.f.yes // of the person, not of a file
	conn, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	if err := c.confirmDirectory(ctx, conn.Workspace.Dir(), sure); err != nil {
		return err
	}
	opts, err := c.missionOptions(conn.Models)
	if err != nil {
		return err
	}
	with, err := goal.Attach(conn.Workspace, c.f.files, goal.MaxSize-len(st.goal))
	if err == nil {
		err = with.CheckTakenBy(conn.Models.First, conn.Config)
	}
	if err != nil {
		return err
	}
	opts.Attached, opts.Files = strings.TrimSpace(with.Text), with.Files
	opts.Typed = st.typed
	opts.PlanOnly, opts.Plan, opts.Detached = st.planOnly, c.f.plan, c.f.detach
	opts.Request = rand.Text() // if the host dies before it answers, the next one is asked again
	return c.launch(ctx, conn, func() (m server.Mission, after int64, err error) {
		m, err = c.startWith(ctx, conn, st.goal, opts)
		return m, 0, err
	})
}

// launch runs a mission to its end: it connects to the project's host or becomes it, starts or resumes the mission there, and follows
// it from an event on. With --detach a background host gets the mission.
func (c *runner) launch(ctx context.Context, conn *host.Connection, begin func() (m server.Mission, after int64, err error)) error {
	if c.f.detach {
		if err := conn.ConnectBackground(ctx); err != nil {
			return err
		}
		m, _, err := begin()
		if err != nil {
			return err
		}
		return c.printDetached(ctx, conn, m)
	}
	if err := conn.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return err
	}
	c.noteHost(conn)
	m, after, err := begin()
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	return c.follow(ctx, conn, m.ID, after)
}

// confirmDirectory asks before agents work on the home directory or a whole file system, which is rarely intended. Without a terminal
// it refuses, unless sure.
func (c *runner) confirmDirectory(ctx context.Context, dir string, sure bool) error {
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
	if !c.live() || c.f.format == "json" {
		return refused
	}
	fmt.Fprintf(c.out, "%s is %s. Agents would read and change everything in it.\n", text.Clean(dir), what)
	key, err := c.choose(ctx, "start here? (y/N)", "yn", "n")
	if err == nil && key != "y" {
		return refused
	}
	return err
}

func resumeCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "resume [MISSION]",
		Short: "Resume a mission",
		Long: "Resume an interrupted, paused, blocked or failed mission (default: the latest). Given limits replace the mission's own.\n" +
			"If it is already running, show it; --max-workers and --max-per-agent apply to it at once.",
		Example: "  centurion resume\n  centurion resume msn_0199… --max-cost 20",
		Args:    exactly(0, 1, "at most one mission"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return (&runner{c, f}).resumeMission(cmd.Context(), first(args))
		},
	}
	f.bind(cmd)
	cmd.ValidArgsFunction = complete(c, 1, missions)
	return cmd
}

// prepareResume prepares to continue a mission, with its own limits unless the flags override them. The caller closes the connection's
// workspace.
func (c *runner) prepareResume(ctx context.Context, m server.Mission) (*host.Connection, centurion.MissionOptions, error) {
	given := *c.f
	c.f.modelKnown = c.f.model == "" && m.Model != ""
	c.f.model, c.f.profile = cmp.Or(c.f.model, m.Model), cmp.Or(m.Options.Profile, agents.ProfileMission)
	// The mission keeps its own limits unless a flag overrides them. It also keeps an --ask that works without a person; whether there
	// is a person to ask depends on this run.
	c.f.maxWorkers = cmp.Or(c.f.maxWorkers, m.Options.MaxWorkers)
	c.f.maxPerAgent = cmp.Or(c.f.maxPerAgent, m.Options.MaxPerAgent)
	conn, err := c.prepare(ctx)
	if err != nil {
		return nil, centurion.MissionOptions{}, err
	}
	c.f.costSet = given.costSet
	if given.ask == "" {
		c.f.ask = ""
		if m.Options.Ask == "allow" || m.Options.Unattended {
			c.f.ask = m.Options.Ask
		}
	}
	opts, err := c.missionOptions(conn.Models)
	if err != nil {
		return nil, opts, errors.Join(err, conn.Workspace.Close())
	}
	// The mission's own limits take precedence over the configuration.
	opts.MaxCost, opts.MaxTokens, opts.MaxRounds, opts.MaxDuration = given.maxCost, given.maxTokens, given.maxRounds, given.maxDuration.Milliseconds()
	opts.Level = given.level
	opts.MaxToolCalls = given.maxToolCalls
	return conn, opts, nil
}

// noteOthers names the newest resumable mission after the message that the latest one has ended.
func (c *cli) noteOthers(ctx context.Context, api server.API) {
	all, err := api.Missions(ctx)
	if err != nil { // the output itself is complete
		return
	}
	for _, m := range all {
		if m.Status == centurion.MissionPaused || m.Status == centurion.MissionBlocked {
			fmt.Fprintf(c.err, "next: an earlier mission is %s: centurion resume %s\n", m.Status, m.ID)
			return
		}
	}
}

// resumeMission is `centurion resume`.
func (c *runner) resumeMission(ctx context.Context, id string) error {
	m, over, err := c.findResumable(ctx, id, func(api server.API, id string) (server.Mission, error) { // its Commander may be idle, stopped by a person
		return api.Resume(ctx, id, centurion.MissionOptions{MaxWorkers: c.f.maxWorkers, MaxPerAgent: c.f.maxPerAgent})
	})
	if err != nil || over {
		return err
	}
	conn, opts, err := c.prepareResume(ctx, m)
	if err != nil {
		return err
	}
	defer conn.Workspace.Close()
	id, opts.Detached, conn.Except = m.ID, c.f.detach, m.ID
	return c.launch(ctx, conn, func() (m server.Mission, after int64, err error) {
		if after, err = host.Call(ctx, conn, func(api server.API) (int64, error) { return api.LastSeq(ctx) }); err == nil {
			m, err = host.Call(ctx, conn, func(api server.API) (server.Mission, error) { return api.Resume(ctx, id, opts) })
		}
		if err == nil {
			conn.Except = "" // a later host of this process resumes it like any other
		}
		return m, after, err
	})
}

// findResumable finds the mission to resume. It returns over if there is nothing to resume: it prints the end of an ended mission, and
// watches a mission of another process to its end, from before begin is called.
func (c *runner) findResumable(ctx context.Context, id string, begin func(api server.API, id string) (server.Mission, error)) (m server.Mission, over bool, err error) {
	err = c.open(ctx, c.f.viewFlags(), func(v *view) (err error) {
		m, err = v.API.Mission(ctx, id)
		switch {
		case err != nil:
		case m.Status == centurion.MissionCompleted || m.Status == centurion.MissionCancelled:
			if over, err = true, v.printEnd(ctx, m); err == nil {
				err = v.AsHost(ctx, func(api server.API) error { return c.afterMission(ctx, api, m.Noun(), false) })
			}
			if id == "" && err == nil {
				c.noteOthers(ctx, v.API)
			}
		case m.Status.Alive(): // without a host it would be reported as interrupted
			over, err = true, c.watch(ctx, v, m, begin)
		}
		return err
	})
	return m, over, err
}
