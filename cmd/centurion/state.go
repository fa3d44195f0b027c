package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/print"
	"centurion/config"
	"centurion/doctor"
	"centurion/host"
	"centurion/notify"
	"centurion/orchestrator/retention"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/server"
	"centurion/store"
	"centurion/text"
)

func doctorCommand(c *cli) *cobra.Command {
	var repair bool
	cmd := plainCommand("doctor", "Check the setup and repair saved state",
		"Check and list: models and where their keys come from (never their values), instructions and skills, git, the\n"+
			"terminal, what can confine commands, the state directory, this project's missions, notices. With --repair a damaged state is made usable again: what\n"+
			"can still be read goes into a new file, and the damaged one is kept beside it.",
		"  centurion doctor\n  centurion doctor --repair", func(ctx context.Context, f *readFlags) error {
			if repair {
				return repairState(ctx, c, f)
			}
			return examine(ctx, c, f)
		})
	cmd.Flags().BoolVar(&repair, "repair", false, "repair this project's state")
	return cmd
}

// examine is `centurion doctor`.
func examine(ctx context.Context, c *cli, f *readFlags) error {
	out, _ := c.out.(*os.File)
	found := doctor.Run(ctx, doctor.Options{Dir: f.dir, Env: c.getenv, Out: out, InForce: (&sandbox.Runner{}).Describe(),
		Confinement: func() (centurion.Confinement, error) { return c.confinement(f.dir) },
		Notify:      notify.NewDesktop().Available, Missions: func(ctx context.Context) []doctor.Finding {
			return append(workspaceFindings(ctx, c, f.dir), missionFindings(ctx, c, f.dir)...)
		}})
	if doctor.Worst(found) == doctor.Fail {
		c.code = exitFailed
	}
	return printRows(c, f.format, found, func(x doctor.Finding) string {
		return fmt.Sprintf("%-5s %-14s %s\n", x.Status, x.Name, text.Escape(x.Detail)) +
			text.When(x.Hint != "", fmt.Sprintf("%20s → %s\n", "", text.Escape(x.Hint)))
	})
}

// confinement returns how commands are confined by the configuration of a project, and why not fully.
func (c *cli) confinement(dir string) (centurion.Confinement, error) {
	way, why := confine.None, error(nil)
	if cfg, err := config.Load(config.Options{Dir: dir, Env: c.getenv}); err == nil && cfg.Own.Sandbox == "off" {
		why = errors.New("sandbox is off in the configuration")
	} else {
		way, why = sandbox.Best()
	}
	return (&sandbox.Runner{Confine: &sandbox.Confinement{Way: way}}).Confinement(), why
}

// workspaceFindings says how worktrees are made here.
func workspaceFindings(ctx context.Context, c *cli, dir string) []doctor.Finding {
	p, ws, err := c.locate(dir)
	if err != nil {
		return nil // bad directories are findings of their own
	}
	defer ws.Close()
	cfg, err := config.Load(config.Options{Dir: dir, Env: c.getenv})
	if err != nil {
		return nil // likewise
	}
	how, err := p.Workspaces(ctx, cfg, ws)
	if err != nil {
		return nil // likewise
	}
	return []doctor.Finding{{Name: "workspaces", Status: doctor.OK, Detail: "worktrees: " + how}}
}

// missionFindings checks the project's state and its host.
func missionFindings(ctx context.Context, c *cli, dir string) []doctor.Finding {
	const name = "missions"
	failed := func(err error) []doctor.Finding {
		return []doctor.Finding{{Name: name, Status: doctor.Fail, Detail: err.Error(), Hint: centurion.HintOf(err)}}
	}
	p, ws, err := c.locate(dir)
	if err != nil {
		return nil // bad directories are findings of their own
	}
	defer ws.Close()
	err = store.Check(ctx, p.Database())
	if centurion.KindOf(err) == centurion.KindNotFound {
		none := doctor.Finding{Name: name, Status: doctor.OK, Detail: "none yet in " + p.Dir}
		if old := host.MovedFrom(ctx, p.Dir, c.getenv, c.note); len(old) > 0 {
			none.Status, none.Hint = doctor.Warn, movedText(old[0])
		}
		return []doctor.Finding{none}
	}
	if err != nil {
		return failed(err)
	}
	api, done, err := p.API(ctx)
	if err != nil {
		return failed(err)
	}
	all, err := api.Missions(ctx)
	if err = errors.Join(err, done()); err != nil {
		return failed(err)
	}
	found := doctor.Finding{Name: name, Status: doctor.OK, Detail: fmt.Sprintf("%s in %s, whole", centurion.Count(len(all), "mission"), p.Database())}
	if host, info, _ := p.Connect(ctx); host != nil { // a refusal is an error of the list of missions
		host.Close()
		found.Detail += fmt.Sprintf("; process %d hosts them", info.PID)
	}
	for _, m := range all {
		if m.Reason == server.Interrupted {
			found.Status, found.Hint = doctor.Warn, "continue with: centurion resume "+m.ID
			found.Detail += "; " + m.ID + " was interrupted"
			break
		}
	}
	return []doctor.Finding{found}
}

// repairState is `centurion doctor --repair`. No process may host the project meanwhile.
func repairState(ctx context.Context, c *cli, f *readFlags) error {
	p, ws, err := c.locate(f.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	unlock, err := p.Lock()
	if err != nil {
		return err
	}
	r, err := store.Salvage(ctx, p.Database())
	if err = errors.Join(err, unlock()); err != nil {
		return err
	}
	if f.format == "json" {
		return writeJSON(c.out, r)
	}
	return print.Repair(c.out, r)
}

func gcCommand(c *cli) *cobra.Command {
	var o retention.TidyOptions
	var age time.Duration
	f := &readFlags{}
	cmd := &cobra.Command{Use: "gc", Short: "Archive and remove remains of missions that have ended",
		Long: "Do now what a host does over time, for missions that have ended: drop sessions of tasks, move records to .opencode/archive/tasks,\n" +
			"and remove the oldest archived tasks beyond keep_tasks. With --older-than archive and remove everything that ended longer ago,\n" +
			"with its agents' ignored files. Up to eight unused worktrees stay, so that the next mission starts quickly; --checkouts removes\n" +
			"them too. Then shrink the state file, unless a host is running.",
		Example: "  centurion gc --dry-run\n  centurion gc --older-than 720h\n  centurion gc --checkouts", Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("older-than") {
				if age < 0 {
					return &centurion.Error{Op: "gc", Kind: centurion.KindUsage, Msg: "--older-than must not be negative: " + age.String(), Hint: "give an age such as 720h"}
				}
				o.OlderThan = &age
			}
			rep := host.TidyReport{TidyReport: retention.TidyReport{DryRun: o.DryRun}}
			err := c.open(cmd.Context(), f, func(v *view) (err error) {
				rep, err = v.Tidy(cmd.Context(), o)
				return err
			})
			if _, none := errors.AsType[host.NoMissionError](err); err != nil && !none {
				return err
			}
			if f.format == "json" {
				return writeJSON(c.out, rep)
			}
			return print.Tidy(c.out, rep)
		}}
	f.bind(cmd)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what would be done, without doing it")
	cmd.Flags().BoolVar(&o.Checkouts, "checkouts", false, "also remove unused worktrees")
	cmd.Flags().DurationVar(&age, "older-than", 0, "archive and remove what ended longer ago, such as 720h")
	return cmd
}
