package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
)

const sendHelp = `Write to an agent of a mission (default: the latest mission).

ADDRESS is 0/ for the Commander, 0/3 for its fourth child, an item of the plan such as T2, or the id of a session or task.
TEXT is one message, or standard input for «-». The agent reads it after the tool calls that it is at, before it asks its
model again; with --queue at the end of its turn. It is plain text: words such as /pause mean nothing in it. Only /compact,
alone, is for the host: see centurion compact --help.

An idle Commander answers at once, also while it counts down to its next turn. Who waits for a slot reads it when it runs. A
mission that has stopped keeps the message until it is resumed; a blocked one goes on with it if a process hosts the project.`

func sendCommand(c *cli) *cobra.Command {
	var p orchestrator.Post
	var files []string
	f, steer, wait := &readFlags{}, false, false
	cmd := &cobra.Command{Use: "send ADDRESS TEXT|-", Short: "Write to an agent", Long: sendHelp,
		Example: "  centurion send 0/ \"use PostgreSQL, not SQLite\"\n  centurion send T2 --queue \"then write the changelog, too\"\n" +
			"  centurion send --wait 0/ \"how far are you?\"\n" +
			"  git diff | centurion send tsk_0199… -",
		Args: exactly(2, -1, "an address and a text"), ValidArgsFunction: complete(c, 1, agentsOf),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if steer && p.Queue {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: "--steer and --queue exclude each other", Hint: "see: centurion send --help"}
			}
			p.To = args[0]
			if p.Text, err = c.message(args[1:]); err != nil {
				return err
			}
			if err := c.sendWith(f, &p, files); err != nil {
				return err
			}
			if wait {
				return c.prompt(cmd.Context(), f, p)
			}
			return c.send(cmd.Context(), f, p)
		}}
	f.bind(cmd)
	fileFlag(cmd, &files)
	cmd.Flags().StringVar(&p.Mission, "mission", "", "where the address is looked for (default: the latest mission)")
	cmd.Flags().BoolVar(&steer, "steer", false, "read before the next request to the model (the default)")
	cmd.Flags().BoolVar(&p.Queue, "queue", false, "read at the end of the turn, in a turn of its own")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the answer of the turn that reads it, and print it")
	return cmd
}

// message reads a text from the arguments or from standard input. It is not trimmed: code may begin with spaces.
func (c *cli) message(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text != "-" {
		return text, nil
	}
	b, err := io.ReadAll(io.LimitReader(c.in, orchestrator.MaxPost+1))
	if err != nil {
		return "", &centurion.Error{Op: "read the message from standard input", Kind: centurion.KindUsage, Err: err}
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// send is `centurion send`. While one host takes over from another it is tried again, under the same id.
func (c *cli) send(ctx context.Context, f *readFlags, p orchestrator.Post) error {
	p.ID = centurion.NewID(centurion.PrefixDelivery)
	var got orchestrator.Posted
	err := c.throughHosts(ctx, f, func(api server.API) (err error) {
		got, err = api.Send(ctx, p)
		return err
	})
	if err != nil {
		return err
	}
	if f.format == "json" {
		return writeJSON(c.out, got)
	}
	c.blind(ctx, f, p, got)
	return c.say(nil, sent(got, p.Queue))
}

// throughHosts calls ask with the host of a project, and again while one host takes over from another: ask is to find what
// it has begun before.
func (c *cli) throughHosts(ctx context.Context, f *readFlags, ask func(api server.API) error) error {
	for start := time.Now(); ; {
		err := c.open(ctx, f, func(v *view) error {
			return v.AsHost(ctx, func(api server.API) error {
				begun := time.Now()
				err := ask(api)
				start = start.Add(time.Since(begun)) // how long a host works on it is no part of the wait for one
				return err
			})
		})
		if changing := host.IsHeld(err) || centurion.KindOf(err) == centurion.KindNetwork; err == nil || !changing || time.Since(start) > host.HeirTimeout {
			return err
		}
		if err := host.WaitRetry(ctx); err != nil {
			return err
		}
	}
}

// sent says what becomes of a message.
func sent(got orchestrator.Posted, queued bool) string {
	who := fmt.Sprintf("%s (%s)", cmp.Or(got.Address, got.Task), tui.Clean(got.Agent))
	waits := got.State == centurion.TaskQueued || got.State == centurion.TaskWaiting
	switch {
	case got.Compact:
		return compacts(got, who)
	case !got.Working:
		status := string(got.Status)
		if got.Status.Alive() {
			status = "interrupted"
		}
		return fmt.Sprintf("kept for %s of mission %s, which is %s; it is read with: centurion resume %s", who, got.Mission, status, got.Mission)
	case waits && got.Reason != "":
		return fmt.Sprintf("sent to %s; it is read when its task goes on, which waits: %s", who, tui.Clean(got.Reason))
	case waits:
		return fmt.Sprintf("sent to %s; it is read when its task goes on", who)
	case queued:
		return fmt.Sprintf("sent to %s; it is read at the end of the turn", who)
	}
	return "sent to " + who
}

// commanderOf is the Commander of a mission, to be written to from the live view.
type commanderOf struct {
	api     shower
	mission string
}

var _ tui.Writer = commanderOf{}

func (c commanderOf) Write(ctx context.Context, text string) error {
	_, err := c.api.Send(ctx, orchestrator.Post{To: c.mission, Text: text})
	return err
}
