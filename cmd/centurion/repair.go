package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/doctor"
	"centurion/host"
	"centurion/notify"
	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
	"centurion/tui"
)

func doctorCommand(c *cli) *cobra.Command {
	var repair bool
	cmd := plainCommand("doctor", "Say what was found on this machine, and repair what can be repaired",
		"Say what was found: models and where their keys come from (never their values), instructions and skills, git, rg, the\n"+
			"terminal, what can confine commands, the state directory, this project's missions, notices. With --repair a damaged state is made usable again: what\n"+
			"can still be read goes into a new file, and the damaged one is kept beside it.",
		"  centurion doctor\n  centurion doctor --repair", func(ctx context.Context, f *readFlags) error {
			if repair {
				return c.repair(ctx, f)
			}
			return c.examine(ctx, f)
		})
	cmd.Flags().BoolVar(&repair, "repair", false, "repair this project's state")
	return cmd
}

// examine is `centurion doctor`.
func (c *cli) examine(ctx context.Context, f *readFlags) error {
	out, _ := c.out.(*os.File)
	found := doctor.Run(ctx, doctor.Options{Dir: f.dir, Env: c.getenv, Out: out, InForce: (&sandbox.Runner{}).Describe(),
		Notify: notify.NewDesktop().Available, Missions: func(ctx context.Context) []doctor.Finding { return c.missionFindings(ctx, f.dir) }})
	if doctor.Worst(found) == doctor.Fail {
		c.code = exitFailed
	}
	if f.format == "json" {
		return writeJSON(c.out, found)
	}
	for _, x := range found {
		if _, err := fmt.Fprintf(c.out, "%-5s %-14s %s\n", x.Status, x.Name, tui.Escape(x.Detail)); err != nil {
			return err
		}
		if x.Hint != "" {
			if _, err := fmt.Fprintf(c.out, "%20s → %s\n", "", tui.Escape(x.Hint)); err != nil {
				return err
			}
		}
	}
	return nil
}

// missionFindings looks at the project's state, whole, and at who works there.
func (c *cli) missionFindings(ctx context.Context, dir string) []doctor.Finding {
	const name = "missions"
	failed := func(err error) []doctor.Finding {
		return []doctor.Finding{{Name: name, Status: doctor.Fail, Detail: err.Error(), Hint: centurion.HintOf(err)}}
	}
	p, ws, err := c.locate(dir)
	if err != nil {
		return nil // what is wrong with the directories is a finding of its own
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
	if host, info := p.Connect(ctx); host != nil {
		host.Close()
		found.Detail += fmt.Sprintf("; process %d hosts them", info.PID)
	}
	for _, m := range all {
		if m.Reason == server.Interrupted {
			found.Status, found.Hint = doctor.Warn, "go on with: centurion resume "+m.ID
			found.Detail += "; " + m.ID + " was interrupted"
			break
		}
	}
	return []doctor.Finding{found}
}

// repair is `centurion doctor --repair`. Nobody may host the project meanwhile.
func (c *cli) repair(ctx context.Context, f *readFlags) error {
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
	return printRepair(c.out, r)
}

// printRepair says what was repaired, and what is lost.
func printRepair(w io.Writer, r store.Report) error {
	var b strings.Builder
	switch {
	case r.Sound:
		b.WriteString("Nothing is wrong with this project's state.\n")
	case r.Accepted:
		fmt.Fprintf(&b, "The file is whole, but its newest %s missing. It was kept as it is.\n", countIs(r.Missing, "event"))
	default:
		b.WriteString("Everything that could still be read is in a new file:\n")
		for _, t := range r.Tables {
			fmt.Fprintf(&b, "  %-9s %6d kept", t.Name, t.Kept)
			if t.Lost > 0 {
				fmt.Fprintf(&b, ", %d lost", t.Lost)
			}
			b.WriteString("\n")
		}
		if r.Missing > 0 {
			fmt.Fprintf(&b, "Of the newest %s nothing is left.\n", centurion.Count(int(r.Missing), "event"))
		}
	}
	for _, path := range r.Aside {
		fmt.Fprintf(&b, "The damaged file is kept: %s\n", path)
	}
	if !r.Sound {
		b.WriteString("Look at what there is with: centurion ps\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// countIs is a counted noun with its verb: 1 event is, 2 events are.
func countIs(n int64, noun string) string {
	if n == 1 {
		return "event is"
	}
	return centurion.Count(int(n), noun) + " are"
}
