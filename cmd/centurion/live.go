package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
)

const abortHelp = `End the turn of an agent, not its session: its request and its tool calls end with their processes.

ID is a session, a task, a mission (its Commander), an item of the plan such as T2, or an address such as 0/3. What was
written to the agent and not read yet is answered next. Otherwise the Commander stands still until somebody writes to it or
resumes the mission; without a terminal (--ask deny or allow) the mission pauses as soon as none of its tasks runs, and
«run» exits with 3. A task is cancelled.`

func abortCommand(c *cli) *cobra.Command {
	return endingCommand(c, "abort ID", "End an agent's turn, not its session", abortHelp,
		"  centurion abort 0/\n  centurion abort T2 --reason \"wrong file\"", ending{
			do: func(ctx context.Context, api server.API, id, reason string) error { return api.Abort(ctx, id, reason) },
			done: func(ctx context.Context, api server.API, typed, id string) string {
				return "aborted the turn of " + id + afterAbort(ctx, api, typed, id)
			}})
}

const stopHelp = `End an agent's session with all that it has started: its turn, its tool calls with their processes, and its tasks with
theirs. It returns when they have ended.

ID is a session, a task, a mission, an item of the plan such as T2, or an address such as 0/3. A task is cancelled with the tasks
below it. The Commander's session is its mission, which is paused and can be resumed.`

func stopCommand(c *cli) *cobra.Command {
	return endingCommand(c, "stop ID", "End an agent with all that it has started", stopHelp,
		"  centurion stop T2\n  centurion stop 0/1 --reason \"goes in circles\"", ending{
			over: overAlready,
			do:   func(ctx context.Context, api server.API, id, reason string) error { return api.Stop(ctx, id, reason) },
			done: func(ctx context.Context, api server.API, _, id string) string {
				return "stopped " + id + afterStop(ctx, api, id)
			}})
}

// afterStop says how a mission goes on whose first session was stopped. A task is over.
func afterStop(ctx context.Context, api server.API, id string) string {
	s, err := api.State(ctx, id)
	if err != nil || s.Task != "" {
		return ""
	}
	return "; its mission is paused; go on with: centurion resume " + s.Mission
}

// ending is a command that ends something of an agent.
type ending struct {
	over func(ctx context.Context, api server.API, id string) string // what stands there already, "" if there is something to end
	do   func(ctx context.Context, api server.API, id, reason string) error
	// done is what is said of it then. It is asked before: with its mission the host may go, too.
	done func(ctx context.Context, api server.API, typed, id string) string
}

// afterAbort says how an agent whose turn was aborted goes on, where that is up to the person.
func afterAbort(ctx context.Context, api server.API, typed, id string) string {
	s, err := api.State(ctx, id)
	if err != nil || s.Task != "" || s.Queued > 0 {
		return ""
	}
	m, err := api.Mission(ctx, s.Mission)
	if err != nil || m.Status.Ended() {
		return ""
	}
	resume := "centurion resume " + m.ID
	if m.Options.Ask != "ask" || !m.Status.Alive() {
		return "; its mission pauses; go on with: " + resume
	}
	to := id
	if strings.Contains(typed, "/") { // which means the same for send
		to = typed
	}
	return fmt.Sprintf("; it stands still; go on with: centurion send %s \"TEXT\"  or: %s", to, resume)
}

// overAlready says of a task or mission that it has nothing left to stop. What cannot be read is told by the stop itself.
func overAlready(ctx context.Context, api server.API, id string) string {
	s, err := api.State(ctx, id)
	if err != nil {
		return ""
	}
	if s.Task != "" {
		t, err := api.Task(ctx, s.Task)
		if err != nil || !t.Status.Ended() {
			return ""
		}
		return fmt.Sprintf("nothing to stop: task %s is %s", t.ID, t.Status)
	}
	m, err := api.Mission(ctx, s.Mission)
	if err != nil || m.Status.Alive() || m.Reason == server.Interrupted {
		return ""
	}
	return fmt.Sprintf("nothing to stop: mission %s is %s", m.ID, m.Status)
}

func endingCommand(c *cli, use, short, long, example string, e ending) *cobra.Command {
	var reason string
	cmd := projectCommand(c, use, short, long, example, exactly(1, 1, "an id"), func(ctx context.Context, v *view, args []string) error {
		id, err := idOf(ctx, v.API, args[0])
		if err != nil {
			return err
		}
		said := ""
		if e.over != nil {
			said = e.over(ctx, v.API, id)
		}
		if said == "" {
			said = e.done(ctx, v.API, args[0], id)
			if err := v.AsHost(ctx, func(api server.API) error { return e.do(ctx, api, id, reason) }); err != nil {
				return err
			}
		}
		if v.json() { // the first word: aborted, stopped or nothing
			return writeJSON(c.out, map[string]string{"id": id, "done": strings.Fields(said)[0]})
		}
		return c.say(nil, said)
	})
	cmd.ValidArgsFunction = complete(c, 1, agentsOf)
	cmd.Flags().StringVar(&reason, "reason", "", "kept with what is ended")
	return cmd
}

// prompt is `centurion send --wait`: it prints the answer of the turn that answers. While one host takes over from another
// it is tried again, under the same id.
func (c *cli) prompt(ctx context.Context, f *readFlags, p orchestrator.Post) error {
	p.ID = centurion.NewID(centurion.PrefixDelivery)
	var got orchestrator.Reply
	var m server.Mission
	here := false
	err := c.open(ctx, f, func(v *view) (err error) {
		m, here, err = c.goesOnHere(ctx, v.API, p)
		return err
	})
	if err != nil {
		return err
	}
	if here {
		got, err = c.promptHere(ctx, f, m, p)
	} else {
		err = c.throughHosts(ctx, f, func(api server.API) (err error) {
			got, err = api.Prompt(ctx, p)
			return err
		})
	}
	if err != nil {
		return err
	}
	if f.format == "json" {
		return writeJSON(c.out, got)
	}
	_, err = fmt.Fprintln(c.out, strings.Join(tui.CleanLines(got.Text), "\n"))
	return err
}

// goesOnHere finds the run of the profile assistant that is begun again for a message because nobody hosts its project.
func (c *cli) goesOnHere(ctx context.Context, api server.API, p orchestrator.Post) (m server.Mission, goesOn bool, err error) {
	if _, idle := api.(*server.Local); !idle {
		return m, false, nil
	}
	to, id := p.To, p.Mission
	switch kind, _, _ := strings.Cut(to, "_"); centurion.Prefix(kind) {
	case centurion.PrefixMission, centurion.PrefixSession:
		s, err := api.State(ctx, to)
		if err != nil || s.Task != "" {
			return m, false, err
		}
		id = s.Mission
	default:
		if strings.Trim(to, "/") != "0" {
			return m, false, nil
		}
	}
	m, err = api.Mission(ctx, id)
	return m, err == nil && orchestrator.GoesOn(centurion.Mission{Status: m.Status, Reason: m.Reason, Options: m.Options}), err
}

// promptHere hosts a run until it has answered a message. Ctrl-C pauses it. What cannot be answered is refused before the
// message is stored.
func (c *cli) promptHere(ctx context.Context, read *readFlags, m server.Mission, p orchestrator.Post) (got orchestrator.Reply, err error) {
	f := &runFlags{dir: read.dir, format: "json"} // nobody is there to be asked
	s, opts, err := c.again(ctx, f, m)
	if err != nil {
		return got, err
	}
	defer s.Workspace.Close()
	model, err := s.Models.Get("")
	if err == nil {
		err = orchestrator.CheckFiles(p.Files, model)
	}
	if err != nil {
		return got, err
	}
	if err := c.open(ctx, read, func(v *view) error {
		return v.AsHost(ctx, func(api server.API) error { _, err := api.Send(ctx, p); return err })
	}); err != nil {
		return got, err
	}
	s.Except = m.ID
	if err := s.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return got, err
	}
	if _, err = s.API().Resume(ctx, m.ID, opts); err == nil {
		p.Resume = true // it may have answered already
		got, err = host.Call(ctx, s, func(api server.API) (orchestrator.Reply, error) { return api.Prompt(ctx, p) })
	}
	if ctx.Err() != nil {
		s.Pause(m.ID)
	}
	say := s.Note
	s.Note = func(text string) { // its run is only just ending
		if !strings.Contains(text, m.ID) {
			say(text)
		}
	}
	return got, errors.Join(err, s.Close(ctx))
}

// turnOf is the turn of a mission's first session, to be ended from the live view.
type turnOf struct {
	api     shower
	mission string
}

var _ tui.Aborter = turnOf{}

func (t turnOf) Abort(ctx context.Context) error {
	return t.api.Abort(ctx, t.mission, "stopped with esc")
}

// stateLine says how a session stands in one line for a person.
func stateLine(s orchestrator.State) string {
	var line strings.Builder
	line.WriteString("now: " + string(s.Activity))
	if s.Waits != "" {
		line.WriteString(", waits for " + string(s.Waits))
	}
	for _, call := range s.Calls {
		fmt.Fprintf(&line, " · %s for %s", tui.Clean(call.Tool), time.Since(call.Since.Time).Round(time.Second))
	}
	if s.Queued > 0 {
		line.WriteString(" · " + centurion.Count(s.Queued, "message") + " unread")
	}
	return line.String()
}

// withState adds how a session stands right now to what is shown of it or its task: to the object for a script, and
// before the text for a person. What has ended, or has no session yet, has no such state.
func (v *view) withState(ctx context.Context, id string, object any) (any, error) {
	s, err := v.API.State(ctx, id)
	switch kind := centurion.KindOf(err); {
	case kind == centurion.KindNotFound || kind == centurion.KindConflict:
		return object, nil
	case err != nil:
		return nil, err
	case v.json():
		return merged(object, map[string]any{"state": s})
	case s.Activity == orchestrator.Ended:
		return object, nil
	}
	_, err = fmt.Fprintln(v.out, stateLine(s))
	return object, err
}

// merged adds fields to an object as it is written in JSON.
func merged(object any, more map[string]any) (any, error) {
	b, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for name, v := range more {
		if fields[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	return fields, nil
}
