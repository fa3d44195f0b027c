package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
)

const (
	defaultMaxCost = 10        // USD, when nobody says otherwise
	fallbackTokens = 5_000_000 // the cap for a model without a price
)

func (c *cli) runCommand() *cobra.Command {
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
func (c *cli) startMission(ctx context.Context, f *runFlags, goal string) error {
	st, err := c.begin(ctx, f, goal)
	if err != nil || st.done {
		return err
	}
	goal, planOnly := st.goal, st.planOnly
	sure := f.yes // of the person, not of a file
	s, err := c.prepare(ctx, f)
	if err != nil {
		return err
	}
	defer s.Workspace.Close()
	if err := c.confirmDirectory(ctx, s.Workspace.Dir(), f, sure); err != nil {
		return err
	}
	opts, err := c.options(f, s.Models)
	if err != nil {
		return err
	}
	var with attached
	if with, err = attachments(s.Workspace, f.files, maxGoal-len(goal)); err != nil {
		return err
	}
	if err := with.takenBy(s.Models); err != nil {
		return err
	}
	opts.Attached, opts.Files = strings.TrimSpace(with.text), with.files
	opts.PlanOnly, opts.Plan = planOnly, f.plan
	opts.ShowPlan = opts.ShowPlan && !planOnly
	opts.Request = rand.Text() // if the host dies before it answers, the next one is asked again
	if f.detach {
		return c.startDetached(ctx, s, f, goal, opts)
	}
	if err := s.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return err
	}
	c.sayWhere(s)
	m, err := c.startWith(ctx, s, f, goal, opts)
	if err != nil {
		return errors.Join(err, s.Close(ctx))
	}
	return c.attend(ctx, s, f, m.ID, 0)
}

// sayWhere tells the person if their mission runs in another process.
func (c *cli) sayWhere(s *host.Connection) {
	if s.Host() != nil {
		return
	}
	if o, err := s.Place.Owner(); err == nil {
		c.note(fmt.Sprintf("process %d hosts this project; the mission runs there (Ctrl-C pauses it)", o.PID))
	}
}

// ended sets the exit code. Whoever reads JSON lines, or nothing any more, is told on the other stream, in words, why it is
// not 0.
func (c *cli) ended(f *runFlags, m centurion.Mission) {
	c.code = missionExit(m.Status, m.Reason)
	if c.code == exitComplete || f.format != "json" && !c.unread() {
		return
	}
	next := "centurion resume " + m.ID
	switch m.Status {
	case centurion.MissionBlocked:
		next = answerFirst(m.Reason) + next
	case centurion.MissionCancelled:
		next = "centurion show " + m.ID
	case centurion.MissionFailed:
		next = fmt.Sprintf("centurion show %s, then centurion resume %s", m.ID, m.ID)
	}
	fmt.Fprintf(c.err, "centurion: mission %s is %s: %s\nnext: %s\n", m.ID, m.Status, oneLine(m.Reason), next)
}

// answerFirst is what comes before the resume of a mission that is blocked on a question, as the reason of its end names it.
func answerFirst(reason string) string {
	if strings.HasSuffix(reason, "("+orchestrator.AsksHint+")") {
		return orchestrator.AsksHint + ", then "
	}
	if _, rest, asked := strings.Cut(reason, "(centurion answer "); asked {
		if id, _, named := strings.Cut(rest, " TEXT)"); named {
			return "centurion answer " + id + " TEXT, then "
		}
	}
	return ""
}

// show draws a mission's events until its end. Keep says that this process takes the mission over when its host ends.
func (c *cli) show(ctx context.Context, api shower, f *runFlags, id string, after int64, keep bool) error {
	q := server.EventQuery{After: after, Mission: id, Follow: true, Keep: keep}
	if f.format == "json" {
		waits, err := c.waits(ctx, api, id, after)
		if err != nil {
			return err
		}
		return tui.RunJSON(ctx, c.out, tui.UntilEnd(waits.Through(api.Events(ctx, q))))
	}
	m, err := api.Mission(ctx, id)
	if err != nil {
		return err
	}
	past := tui.NewPast(m.Options.MaxWorkers, m.Options.MaxPerAgent, !keep)
	if after > 0 {
		for e, err := range api.Events(ctx, server.EventQuery{Mission: id}) {
			if err != nil {
				return err
			}
			if e.Seq <= after {
				past.Add(e)
			}
		}
	}
	if !tui.CanLive(c.in, c.out, c.env) {
		c.sayDumb()
		return past.RunPlain(ctx, c.out, tui.UntilEnd(api.Events(ctx, q)))
	}
	q.Deltas, q.Toasts = true, true
	o := tui.Options{Events: api.Events(ctx, q), In: c.in, Out: c.out, Env: c.env, Past: past, Answerer: api,
		Writer: commanderOf{api, m.ID}, Aborter: turnOf{api, m.ID}, Interrupt: c.interrupt}
	if m.Todo != "" {
		o.PlanFile = planFile(api, id)
		o.Plan = planReader(o.PlanFile)
	}
	return tui.RunLive(ctx, o)
}

// sayDumb tells somebody in front of a terminal that says it cannot move its cursor why they see plain lines.
func (c *cli) sayDumb() {
	if tui.Dumb(c.in, c.out, c.env) {
		c.note("this terminal cannot be redrawn (TERM is dumb or not set): events are printed as plain lines; answer from another terminal with: centurion asks")
	}
}

// waits tells on stderr of what waits for a person: among JSON lines nobody would see it. What was open when a mission was taken up again,
// after an event, is a question: everything else is asked anew.
func (c *cli) waits(ctx context.Context, api shower, id string, after int64) (*tui.Waits, error) {
	w := tui.NewWaits(c.note)
	for e, err := range api.Events(ctx, server.EventQuery{Mission: id}) {
		if err != nil {
			return w, err
		}
		if after == 0 || e.Seq <= after {
			w.Before(e)
		}
	}
	w.Open(after > 0)
	return w, nil
}

// missionExit is the exit code for how a mission stopped.
func missionExit(s centurion.MissionStatus, reason string) int {
	switch s {
	case centurion.MissionCompleted:
		return exitComplete
	case centurion.MissionPaused:
		switch reason {
		case centurion.ErrShutdown.Msg:
			return exitInterrupted
		case "planned":
			return exitComplete
		}
		return exitPaused
	case centurion.MissionBlocked:
		return exitBlocked
	case centurion.MissionCancelled:
		return exitCancelled
	}
	return exitFailed
}
