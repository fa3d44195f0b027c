package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cmd/centurion/config"
	"centurion/cmd/centurion/demo"
	"centurion/provider/scripted"
	"centurion/workspace"
)

func (c *cli) demoCommand() *cobra.Command {
	var kill bool
	var format string
	cmd := &cobra.Command{Use: "demo", Short: "Run a whole mission on a sample project, without a key",
		Long: "Run a whole mission on a sample project. Its model is scripted: the answers are written down and come over loopback\n" +
			"HTTP, everything else is what every mission runs on. No key and no network are needed.",
		Example: "  centurion demo", Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kill {
				return notYet("centurion demo --kill", "missions in the background")
			}
			return c.demo(cmd.Context(), format)
		}}
	cmd.Flags().BoolVar(&kill, "kill", false, "kill the host ten times meanwhile (not in this version)")
	cmd.Flags().StringVar(&format, "format", "text", "text or json: one event a line on stdout")
	return cmd
}

// demo unpacks the sample project into a directory of its own, starts the scripted model, and runs a mission there.
func (c *cli) demo(ctx context.Context, format string) error {
	if format != "text" && format != "json" {
		return badValue("format", format, []string{"text", "json"})
	}
	dir, err := os.MkdirTemp("", "centurion-demo-")
	if err != nil {
		return &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err, Hint: "set TMPDIR to a directory that can be written"}
	}
	project := filepath.Join(dir, "pocket")
	if err := demo.Unpack(project); err != nil {
		return &centurion.Error{Op: "make the sample project", Kind: centurion.KindDisk, Err: err}
	}
	scenario, err := demo.Scenario()
	if err != nil {
		return err
	}
	model := scripted.New(scripted.Config{Scenario: scenario})
	url, err := model.Serve()
	if err != nil {
		return errors.Join(err, model.Close())
	}
	if format == "text" {
		fmt.Fprintf(c.out, "A sample project: %s\nIts model is scripted and answers over %s; the rest is real.\n\n", project, url)
	}
	err = c.demoMission(ctx, place{dir: project, state: filepath.Join(dir, "state"), token: "demo"}, url, format)
	if err == nil && format == "text" {
		fmt.Fprintf(c.out, "\nLook at what was made: %s\n", project)
	}
	return errors.Join(err, model.Close())
}

func (c *cli) demoMission(ctx context.Context, p place, url, format string) error {
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
	models := newModels(cfg, config.Resolved{Model: centurion.ModelRef{Provider: "scripted", ID: "demo"}, BaseURL: url,
		Limit: config.Limit{Context: 128_000, Output: 16_000}, Price: &centurion.Price{Input: 1.25, Output: 10, CacheRead: 0.125}})
	h, err := own(ctx, p, ws, models, cfg)
	if err != nil {
		return err
	}
	f := &runFlags{format: format}
	// The sample project is ours, so its commands need no asking.
	m, err := h.orch.Start(ctx, demo.Goal, centurion.MissionOptions{Model: models.first.Model.String(), MaxCost: 1, Ask: "allow",
		TrustVerify: true, ShowPlan: false})
	if err != nil {
		return errors.Join(err, h.Close())
	}
	return c.drive(ctx, h, f, m.ID, 0)
}
