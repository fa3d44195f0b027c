package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
	"centurion/workspace"
)

// runFlags are the flags of run and resume.
type runFlags struct {
	dir, model, agent, format, isolation, ask, dirty, profile, sandbox string
	maxWorkers, maxPerAgent, maxRounds, level                          int
	maxCost                                                            float64
	maxTokens                                                          int64
	maxDuration                                                        time.Duration
	yes, detach, merge, requireProof                                   bool
	costSet                                                            bool // --max-cost was given
	known                                                              bool // the model is a mission's own: what is to be said of it was, when it began
	maxToolCalls                                                       int
	files                                                              []string // given with --file
	plan                                                               string   // given with --plan
}

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

func (f *runFlags) bind(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.dir, "dir", "", "the project directory (default: here)")
	fl.StringVar(&f.model, "model", "", "provider and model, such as openai/gpt-5 or ollama/qwen3-coder")
	fl.StringVar(&f.agent, "agent", "", "start with this agent instead of the commander or the assistant")
	fl.StringVar(&f.format, "format", "", "text or json: one event a line on stdout (default text)")
	fl.StringVar(&f.isolation, "isolation", "", "auto, shared or worktree: whether sessions write in checkouts of their own (default auto: in a git repository)")
	fl.Var((*sessionCap)(&f.maxWorkers), "max-workers", "sessions at once (default 50)")
	fl.Var((*sessionCap)(&f.maxPerAgent), "max-per-agent", "sessions of one agent at once (default 10)")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "pause when this many USD are spent (default 10)")
	fl.Int64Var(&f.maxTokens, "max-tokens", 0, "pause when this many tokens are used")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "pause after this time, such as 90m")
	fl.IntVar(&f.maxRounds, "max-rounds", 0, "pause after this many requests to models")
	fl.IntVar(&f.maxToolCalls, "max-tool-calls", 0, "pause after this many tool calls")
	fl.StringVar(&f.ask, "ask", "", "ask, deny or allow what no permission rule answers, and ask or do without what agents want to know (default: ask on a terminal, else deny)")
	fl.BoolVar(&f.yes, "yes", false, "do not show the plan for approval")
	fl.StringVar(&f.dirty, "dirty", "", "include or ignore: whether your uncommitted work is part of what the mission starts from (default include)")
	fl.IntVar(&f.level, "level", 0, "1, 2 or 3 instead of the Commander's own assessment")
	fl.StringVar(&f.profile, "profile", "", "mission: four agents, a plan and proof (default); assistant: one agent that answers; solo: not in this version")
	fl.StringVar(&f.sandbox, "sandbox", "", "auto, require or off (this version confines nothing)")
	fl.BoolVar(&f.detach, "detach", false, "hand the mission to a background host and print its id")
	for flag, values := range map[string][]cobra.Completion{"format": {"text", "json"}, "ask": {"ask", "deny", "allow"}, "level": {"1", "2", "3"},
		"profile": {agents.ProfileMission, agents.ProfileAssistant}, "isolation": {"auto", "shared", "worktree"}, "dirty": {"include", "ignore"}, "sandbox": {"auto", "off"}} {
		completeValues(cmd, flag, values...)
	}
	fl.BoolVar(&f.merge, "merge", false, "put the finished work on your branch without asking; exit code 4 if your own work stands in its way")
	fl.BoolVar(&f.requireProof, "require-proof", false, "exit with 4 if no check, proof or review shows that it is done")
}

// settle fills in what the configuration says and refuses what cannot be.
func (f *runFlags) settle(own config.Own) error {
	f.model = cmp.Or(f.model, own.Model)
	f.format = cmp.Or(f.format, own.Format, "text")
	f.isolation = cmp.Or(f.isolation, own.Isolation, "auto")
	f.ask = cmp.Or(f.ask, own.Ask)
	f.dirty = cmp.Or(f.dirty, own.Dirty, "include")
	f.profile = cmp.Or(f.profile, own.Profile, "mission")
	f.sandbox = cmp.Or(f.sandbox, own.Sandbox, "auto")
	f.agent = cmp.Or(f.agent, own.Agent)
	f.maxWorkers = cmp.Or(f.maxWorkers, own.MaxWorkers)
	f.maxPerAgent = cmp.Or(f.maxPerAgent, own.MaxPerAgent)
	f.maxTokens = cmp.Or(f.maxTokens, own.MaxTokens)
	f.maxDuration = cmp.Or(f.maxDuration, own.MaxDuration)
	f.maxRounds = cmp.Or(f.maxRounds, own.MaxRounds)
	f.maxToolCalls = cmp.Or(f.maxToolCalls, own.MaxToolCalls)
	if f.profile != agents.ProfileAssistant { // which knows no levels
		f.level = cmp.Or(f.level, own.Level)
	}
	f.yes, f.merge, f.detach = f.yes || own.Yes, f.merge || own.Merge, f.detach || own.Detach
	f.requireProof = f.requireProof || own.RequireProof
	if !f.costSet && own.MaxCost != nil {
		f.maxCost, f.costSet = *own.MaxCost, true
	}
	for _, o := range []struct {
		flag, value string
		all, now    []string
		step        string
	}{
		{"format", f.format, []string{"text", "json"}, []string{"text", "json"}, ""},
		{"isolation", f.isolation, []string{"auto", "shared", "worktree"}, []string{"auto", "shared", "worktree"}, ""},
		{"ask", f.ask, []string{"", "ask", "deny", "allow"}, []string{"", "ask", "deny", "allow"}, ""},
		{"dirty", f.dirty, []string{"include", "ignore"}, []string{"include", "ignore"}, ""},
		{"profile", f.profile, []string{"mission", "assistant", "solo"}, []string{"mission", "assistant"}, "a later version"},
		{"sandbox", f.sandbox, []string{"auto", "require", "off"}, []string{"auto", "off"}, "trust and confinement"},
	} {
		if !slices.Contains(o.all, o.value) {
			return badValue(o.flag, o.value, o.all)
		}
		if !slices.Contains(o.now, o.value) {
			return notYet("--"+o.flag+" "+o.value, o.step)
		}
	}
	if f.level < 0 || f.level > 3 {
		return badValue("level", fmt.Sprint(f.level), []string{"1", "2", "3"})
	}
	for _, l := range []struct {
		flag  string
		value any
		below bool
	}{
		{"max-cost", f.maxCost, f.maxCost < 0}, {"max-tokens", f.maxTokens, f.maxTokens < 0}, {"max-rounds", f.maxRounds, f.maxRounds < 0},
		{"max-tool-calls", f.maxToolCalls, f.maxToolCalls < 0}, {"max-duration", f.maxDuration, f.maxDuration < 0},
		{"max-workers", f.maxWorkers, f.maxWorkers < 0}, {"max-per-agent", f.maxPerAgent, f.maxPerAgent < 0},
	} {
		if l.below {
			return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("a limit cannot be negative: --%s %v", l.flag, l.value), Hint: "see: centurion run --help"}
		}
	}
	return nil
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
	defer s.ws.Close()
	if err := c.confirmDirectory(ctx, s.ws.Dir(), f, sure); err != nil {
		return err
	}
	opts, err := c.options(f, s.models)
	if err != nil {
		return err
	}
	var with attached
	if with, err = attachments(s.ws, f.files, maxGoal-len(goal)); err != nil {
		return err
	}
	if err := with.takenBy(s.models); err != nil {
		return err
	}
	opts.Attached, opts.Files = strings.TrimSpace(with.text), with.files
	opts.PlanOnly, opts.Plan = planOnly, f.plan
	opts.ShowPlan = opts.ShowPlan && !planOnly
	opts.Request = rand.Text() // if the host dies before it answers, the next one is asked again
	if f.detach {
		return c.startDetached(ctx, s, f, goal, opts)
	}
	if err := s.take(ctx, findFirst); err != nil {
		return err
	}
	c.sayWhere(s)
	m, err := c.startWith(ctx, s, f, goal, opts)
	if err != nil {
		return errors.Join(err, s.leave(ctx))
	}
	return c.attend(ctx, s, f, m.ID, 0)
}

// sayWhere tells the person if their mission runs in another process.
func (c *cli) sayWhere(s *seat) {
	if s.hosting() != nil {
		return
	}
	if o, err := readOwner(s.place); err == nil {
		c.note(fmt.Sprintf("process %d hosts this project; the mission runs there (Ctrl-C pauses it)", o.PID))
	}
}

// prepare reads the configuration and finds the project and the model. The seat is still to be taken.
func (c *cli) prepare(ctx context.Context, f *runFlags) (*seat, error) {
	if f.format != "" && f.format != "text" && f.format != "json" {
		return nil, badValue("format", f.format, []string{"text", "json"})
	}
	p, ws, err := c.locate(f.dir)
	if err != nil {
		return nil, err
	}
	s := &seat{place: p, ws: ws, say: c.note}
	if s.cfg, s.models, err = c.configure(ctx, ws, f); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	s.how.say = c.note
	if tui.CanLive(c.in, c.out, c.env) && f.format != "json" {
		s.how = manner{diskWait: -1} // the person sees what is waited for
	}
	s.how.hurry = c.hurry
	return s, nil
}

// configure reads the configuration of a project, settles the flags by it, and finds the model.
func (c *cli) configure(ctx context.Context, ws *workspace.Workspace, f *runFlags) (*config.Config, *modelSet, error) {
	if fi, err := os.Stat(filepath.Join(ws.Dir(), workspace.Directory)); err == nil && !fi.IsDir() {
		return nil, nil, ws.CheckWritable() // says so better than what fails to read it
	}
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv})
	if err != nil {
		return nil, nil, err
	}
	flagged := f.model != ""
	if err := f.settle(cfg.Own); err != nil {
		return nil, nil, err
	}
	if err := ws.CheckWritable(); err != nil {
		return nil, nil, err
	}
	if err := f.cast(cfg, flagged); err != nil {
		return nil, nil, err
	}
	first, err := c.firstModel(ctx, cfg, f)
	if err != nil {
		return nil, nil, err
	}
	if first.Warning != "" && !f.known {
		c.note(first.Warning)
	}
	if first.Default {
		c.note(fmt.Sprintf("model %s (%s)", first.Model, cmp.Or(first.From, first.BaseURL)))
	}
	cfg.Own.MaxWorkers = cmp.Or(f.maxWorkers, cfg.Own.MaxWorkers)
	cfg.Own.MaxPerAgent = cmp.Or(f.maxPerAgent, cfg.Own.MaxPerAgent)
	if _, err := ruleLevels(cfg); err != nil { // also to hear what of it came with the project
		return nil, nil, err
	}
	chains, err := cfg.Chains(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, note := range chains.Notes {
		c.note(note)
	}
	c.notices(cfg)
	return cfg, newModels(cfg, first), nil
}

// cast finds the agent that a mission starts with, and the model of its own that the agent has, which only one that was
// given for this run replaces.
func (f *runFlags) cast(cfg *config.Config, modelGiven bool) error {
	cast, err := castIn(cfg, f.profile)
	if err != nil {
		return err
	}
	if f.agent == "" && cfg.DefaultAgent != "" {
		if _, err := cast.Find(cfg.DefaultAgent); err == nil {
			f.agent = cfg.DefaultAgent
		} else { // OpenCode has agents that are none here
			cfg.Notices = append(cfg.Notices, fmt.Sprintf("centurion: default_agent %q is no agent of a mission; it starts with the %s", cfg.DefaultAgent, cast.Owner()))
		}
	}
	a, err := cast.Find(cmp.Or(f.agent, cast.Owner()))
	if e, ok := errors.AsType[*centurion.Error](err); ok && e.Hint == "" {
		e.Hint = "see: centurion agents --profile " + f.profile
	}
	if !modelGiven {
		f.model = cmp.Or(a.Model, f.model)
	}
	return err
}

// options turns flags into what a mission is started with.
func (c *cli) options(f *runFlags, models *modelSet) (centurion.MissionOptions, error) {
	live := tui.CanLive(c.in, c.out, c.env)
	shipped := func(key string) bool {
		_, project := models.cfg.Origin(key)
		return project
	}
	o := centurion.MissionOptions{Agent: f.agent, Model: models.first.Model.String(), Level: f.level, MaxTokens: f.maxTokens,
		MaxDuration: f.maxDuration.Milliseconds(), MaxRounds: f.maxRounds, MaxWorkers: f.maxWorkers, MaxPerAgent: f.maxPerAgent, MaxToolCalls: f.maxToolCalls,
		Isolation: f.isolation, Dirty: f.dirty, Setup: models.cfg.Own.WorktreeSetup,
		Verify: models.cfg.Own.Verify, AskVerify: shipped("verify"), ShowPlan: live && !f.yes && !f.detach && f.format == "text"}
	o.TrustSetup = len(o.Setup) > 0 && !shipped("worktree.setup")
	if f.profile == agents.ProfileAssistant {
		o.Profile, o.Verify, o.ShowPlan = f.profile, nil, false
	}
	o.Merge, o.RequireProof = f.merge, f.requireProof
	o.Ask = f.ask
	if o.Ask == "" {
		o.Ask = "deny"
		if live && f.format == "text" { // also in the background: whoever has a terminal can answer from it
			o.Ask = "ask"
		}
	}
	o.Unattended = o.Ask == "ask" && !(live && f.format == "text")
	switch {
	case models.first.Price != nil:
		o.MaxCost = f.maxCost
		if !f.costSet {
			o.MaxCost = defaultMaxCost
		}
	case f.costSet:
		return o, &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("--max-cost needs a price, and %s has none", models.first.Model),
			Hint: fmt.Sprintf("give its price under provider.%s.models.%s.cost in opencode.json (of the project, or in ~/.config/opencode), in USD for a million tokens: \"cost\": {\"input\": 1, \"output\": 4}; or use --max-tokens",
				models.first.Model.Provider, models.first.Model.ID)}
	case o.MaxTokens == 0:
		o.MaxTokens = fallbackTokens
	}
	return o, nil
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
