package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/demo"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/workspace"
	"centurion/worktree"
)

func (c *cli) demoCommand() *cobra.Command {
	var kill bool
	var format string
	var opts killOptions
	cmd := &cobra.Command{Use: "demo", Short: "Run a whole mission on a sample project, without a key",
		Long: "Run a whole mission on a sample project. Its model is scripted: the answers are written down and come over loopback\n" +
			"HTTP, everything else is what every mission runs on. No key and no network are needed.\n\n" +
			"With --kill the host of that mission is killed with SIGKILL ten times, at random moments, and comes back each time. At the\n" +
			"end it is counted what was lost and what was done twice.",
		Example: "  centurion demo\n  centurion demo --kill", Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return badValue("format", format, []string{"text", "json"})
			}
			if kill {
				opts.kills, opts.seed = max(1, opts.kills), cmp.Or(opts.seed, rand.Uint64N(maxSeed)+1)
				return c.demoKill(cmd.Context(), format, opts)
			}
			return c.demo(cmd.Context(), format)
		}}
	fl := cmd.Flags()
	fl.BoolVar(&kill, "kill", false, "kill the host ten times meanwhile, and count what is lost")
	fl.StringVar(&format, "format", "text", "text or json: one event a line on stdout")
	fl.IntVar(&opts.kills, "kills", 10, "how many kills --kill makes")
	fl.Uint64Var(&opts.seed, "seed", 0, "choose the moments of --kill as the run with this seed did (0: at random)")
	fl.BoolVar(&opts.hurry, "hurry", false, "let the model of --kill answer as fast as it can")
	for _, name := range []string{"kills", "seed", "hurry"} {
		fl.Lookup(name).Hidden = true
	}
	cmd.AddCommand(c.demoHostCommand())
	return cmd
}

// maxSeed keeps seeds so short that a person can type one.
const maxSeed = 999_999

// stage is what a demonstration takes place on.
type stage struct {
	dir     string // holds everything
	project string
	state   string
	url     string // of the model
	model   *scripted.Model
}

// onStage says which place a demonstration in dir has.
func onStage(dir string) stage {
	project := filepath.Join(dir, "pocket")
	return stage{dir: dir, project: project, state: config.ProjectDir(filepath.Join(dir, "home"), project)}
}

// setStage unpacks the sample project into a directory of its own and starts the scripted model. What conf leaves open
// is as the scenario says.
func (c *cli) setStage(ctx context.Context, format string, hurry bool, conf scripted.Config) (stage, error) {
	dir, err := os.MkdirTemp("", "centurion-demo-")
	if err != nil {
		return stage{}, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err, Hint: "set TMPDIR to a directory that can be written"}
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // as a command that is called there sees it
		dir = real
	}
	s := onStage(dir)
	if err := demo.Unpack(s.project); err != nil {
		return s, &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err}
	}
	// Without git the writers share the directory, and what a check is worth is not tried.
	if err := worktree.Init(ctx, s.project, "The sample project"); err != nil && centurion.KindOf(err) != centurion.KindNotFound {
		return s, err
	}
	if conf.Scenario, err = demo.Scenario(hurry); err != nil {
		return s, err
	}
	s.model = scripted.New(conf)
	if s.url, err = s.model.Serve(); err != nil {
		return s, errors.Join(err, s.model.Close())
	}
	if format == "text" {
		fmt.Fprintf(c.out, "A sample project: %s\nIts model is scripted and answers over %s; the rest is real.\n", s.project, s.url)
	}
	return s, nil
}

// demo runs a mission on the sample project.
func (c *cli) demo(ctx context.Context, format string) error {
	s, err := c.setStage(ctx, format, false, scripted.Config{})
	if err != nil {
		return err
	}
	if format == "text" {
		fmt.Fprintln(c.out)
	}
	err = c.demoMission(ctx, s, format, 0, nil)
	if err == nil && format == "text" {
		fmt.Fprintf(c.out, "\nLook at what was made: %s\n", s.project)
		err = c.demoReport(ctx, s)
	}
	return errors.Join(err, s.model.Close())
}

// demoReport writes the report of the demonstration's mission beside its project and says where it lies.
func (c *cli) demoReport(ctx context.Context, on stage) error {
	p := place{dir: on.project, state: on.state, token: "demo"}
	ws, err := workspace.Open(p.dir)
	if err != nil {
		return err
	}
	api, done, err := p.api(ctx)
	if err != nil {
		return errors.Join(err, ws.Close())
	}
	var b bytes.Buffer
	r, err := c.reportOf(ctx, api, p, ws, "")
	if err == nil {
		err = writeReport(&b, r, formHTML)
	}
	file := filepath.Join(on.dir, "report.html")
	if err == nil {
		err = replaceFile(file, b.Bytes())
	}
	if err == nil {
		_, err = fmt.Fprintf(c.out, "Open its report in a browser: %s\nThe commands that are named work there with CENTURION_HOME=%s\n", file, filepath.Join(on.dir, "home"))
	}
	return errors.Join(err, done(), ws.Close())
}

// demoMission hosts the demonstration's mission and shows what happens after an event. A mission that a killed host has
// left is gone on with.
func (c *cli) demoMission(ctx context.Context, on stage, format string, after int64, notices *bool) error {
	p := place{dir: on.project, state: on.state, token: "demo"}
	ws, err := workspace.Open(p.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return stateError(p.state, err)
	}
	// An empty environment and home: the demonstration is the same whatever the person has configured.
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Home: p.state, Env: func(string) string { return "" }})
	if err != nil {
		return err
	}
	if notices != nil {
		cfg.Own.Notify = notices
	}
	models := newModels(cfg, config.Resolved{Model: centurion.ModelRef{Provider: "scripted", ID: "demo"}, BaseURL: on.url,
		Limit: config.Limit{Context: 128_000, Output: 16_000}, Price: &centurion.Price{Input: 1.25, Output: 10, CacheRead: 0.125}})
	// A host that was killed while it started a command leaves its lock to that command for some milliseconds.
	s := &seat{place: p, ws: ws, cfg: cfg, models: models, say: func(string) {}}
	if err := s.take(ctx, findFirst); err != nil {
		return err
	}
	h := s.hosting()
	if h == nil {
		return heldBy(p)
	}
	m, err := h.store.LatestMission(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		// The sample project is ours, so its commands need no asking.
		m, err = h.orch.Start(ctx, demo.Goal, centurion.MissionOptions{Model: models.first.Model.String(), MaxCost: 1, Ask: "allow",
			TrustVerify: true, ShowPlan: false})
	}
	if err == nil {
		err = h.Launch(m.ID) // what a killed host has left runs already
	}
	if err != nil {
		return errors.Join(err, h.Close())
	}
	return c.attend(ctx, s, &runFlags{format: format, merge: true}, m.ID, after)
}

// demoHostCommand is the host that `centurion demo --kill` kills. It is not for people.
func (c *cli) demoHostCommand() *cobra.Command {
	var dir, url string
	var after int64
	var parent int
	cmd := &cobra.Command{Use: "host", Short: "Host the mission of a demonstration", Hidden: true, Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := onStage(dir)
			s.url = url
			return whileParent(cmd.Context(), parent, func(ctx context.Context) error {
				return c.demoMission(ctx, s, "json", after, new(false))
			})
		}}
	fl := cmd.Flags()
	fl.StringVar(&dir, "dir", "", "what the demonstration made")
	fl.StringVar(&url, "url", "", "the scripted model")
	fl.Int64Var(&after, "after", 0, "the last event that is known")
	fl.IntVar(&parent, "parent", 0, "the process that is waited for")
	return cmd
}

// parentPoll is how often a child looks whether its parent still lives: nothing announces the end of a parent that was
// killed, and an orphan that nobody watches should not work on for long.
const parentPoll = 200 * time.Millisecond

// whileParent runs f with a context that ends when this process has another parent than it had.
func whileParent(ctx context.Context, parent int, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch guard.Group
	watch.Go("watch parent", func() error {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
		cancel(centurion.ErrShutdown)
		return nil
	})
	err := f(ctx)
	cancel(nil)
	return errors.Join(err, watch.Wait())
}
