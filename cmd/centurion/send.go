package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/goal"
	"centurion/cli/print"
	"centurion/config"
	"centurion/host"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/text"
)

const sendHelp = `Write to an agent of a mission (default: the latest mission).

ADDRESS is 0/ for the Commander, 0/3 for its fourth child, an item of the plan such as T2, or the id of a session or task.
TEXT is one message, or - to read standard input. The agent reads it after its current tool calls, before its next request to
the model; with --queue at the end of its turn. Commands such as /pause have no effect in it, except /compact alone: see
centurion compact --help.

An idle Commander answers at once, also during its countdown. An agent that waits for a slot reads it when it runs. A stopped
mission keeps the message until it is resumed; a blocked one continues with it if a process hosts the project.`

func sendCommand(c *cli) *cobra.Command {
	var p mail.Post
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
			if p.Text, err = c.readMessage(args[1:]); err != nil {
				return err
			}
			m := &message{c, f, p}
			if err := m.attach(files); err != nil {
				return err
			}
			if wait && strings.TrimSpace(m.post.Text) != mail.CompactWord { // which no agent answers
				return m.prompt(cmd.Context())
			}
			return m.send(cmd.Context())
		}}
	f.bind(cmd)
	fileFlag(cmd, &files)
	cmd.Flags().StringVar(&p.Mission, "mission", "", "mission of the address (default: the latest mission)")
	cmd.Flags().BoolVar(&steer, "steer", false, "deliver before the next request to the model (default)")
	cmd.Flags().BoolVar(&p.Queue, "queue", false, "deliver after the turn, in a turn of its own")
	cmd.Flags().StringVar(&p.Model, "model", "", "another model for the mission's own agent from this message on (provider/model), while it is not working")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the answer and print it")
	return cmd
}

// message is a text to an agent, and how to show the answer.
type message struct {
	*cli
	f    *readFlags
	post mail.Post
}

// readMessage reads a text from the arguments or from standard input. It is not trimmed: code may begin with spaces.
func (c *cli) readMessage(args []string) (string, error) {
	text := strings.Join(args, " ")
	if text != "-" {
		return text, nil
	}
	b, err := io.ReadAll(io.LimitReader(c.in, mail.MaxPost+1))
	if err != nil {
		return "", &centurion.Error{Op: "read the message from standard input", Kind: centurion.KindUsage, Err: err}
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// send is `centurion send`. It retries under the same id while one host takes over from another.
func (c *message) send(ctx context.Context) error {
	c.post.ID = centurion.NewID(centurion.PrefixDelivery)
	var got mail.Posted
	err := c.retryAcrossHosts(ctx, func(api server.API) (err error) {
		got, err = api.Send(ctx, c.post)
		return err
	})
	if err != nil {
		return err
	}
	if c.f.format == "json" {
		return writeJSON(c.out, got)
	}
	c.noteUntakenFiles(ctx, got)
	return c.say(nil, print.Sent(got, c.post.Queue))
}

// retryAcrossHosts calls ask with the host of a project, and again while one host takes over from another. ask must recognise its own
// earlier call.
func (c *message) retryAcrossHosts(ctx context.Context, ask func(api server.API) error) error {
	for start := time.Now(); ; {
		err := c.open(ctx, c.f, func(v *view) error {
			return v.AsHost(ctx, func(api server.API) error {
				begun := time.Now()
				err := ask(api)
				start = start.Add(time.Since(begun)) // the host's working time does not count as waiting for one
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

// prompt is `centurion send --wait`: it prints the answer of the turn that answers. It retries under the same id while one host takes
// over from another.
func (c *message) prompt(ctx context.Context) error {
	c.post.ID = centurion.NewID(centurion.PrefixDelivery)
	var got mail.Reply
	var m server.Mission
	here := false
	err := c.open(ctx, c.f, func(v *view) (err error) {
		m, here, err = c.resumesHere(ctx, v.API)
		return err
	})
	if err != nil {
		return err
	}
	if here {
		got, err = c.promptHere(ctx, m)
	} else {
		err = c.retryAcrossHosts(ctx, func(api server.API) (err error) {
			got, err = api.Prompt(ctx, c.post)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.printResult(c.f.format, got, strings.Join(text.CleanLines(got.Text), "\n"))
}

// resumesHere finds the run of the profile assistant that this process must resume for a message, because no process hosts its project.
func (c *message) resumesHere(ctx context.Context, api server.API) (m server.Mission, goesOn bool, err error) {
	if _, idle := api.(*server.Local); !idle {
		return m, false, nil
	}
	to, id := c.post.To, c.post.Mission
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
	return m, err == nil && mail.GoesOn(centurion.Mission{Status: m.Status, Reason: m.Reason, Options: m.Options}), err
}

// promptHere hosts a run until it has answered a message. Ctrl-C pauses it. Impossible requests are refused before the message is
// stored.
func (c *message) promptHere(ctx context.Context, m server.Mission) (got mail.Reply, err error) {
	conn, opts, err := (&runner{c.cli, &runFlags{dir: c.f.dir, format: "json"}}).prepareResume(ctx, m) // no person can be asked
	if err != nil {
		return got, err
	}
	defer conn.Workspace.Close()
	model, err := conn.Models.Get("")
	if err == nil {
		err = mail.CheckFiles(c.post.Files, model)
	}
	if err != nil {
		return got, err
	}
	if err := c.open(ctx, c.f, func(v *view) error {
		return v.AsHost(ctx, func(api server.API) error { _, err := api.Send(ctx, c.post); return err })
	}); err != nil {
		return got, err
	}
	conn.Except = m.ID
	if err := conn.ConnectOrOwn(ctx, host.FirstTimeout); err != nil {
		return got, err
	}
	if _, err = conn.API().Resume(ctx, m.ID, opts); err == nil {
		c.post.Resume = true // it may have answered already
		got, err = host.Call(ctx, conn, func(api server.API) (mail.Reply, error) { return api.Prompt(ctx, c.post) })
	}
	if ctx.Err() != nil {
		conn.Pause(m.ID)
	}
	say := conn.Note
	conn.Note = func(text string) { // its run is just ending
		if !strings.Contains(text, m.ID) {
			say(text)
		}
	}
	return got, errors.Join(err, conn.Close(ctx))
}

const compactHelp = `Shorten a conversation: the older part of it, or all of a short one, is replaced by a summary, which the model is asked for.
Nothing is deleted; centurion show tells the whole of it.

ADDRESS is 0/ for the Commander, 0/3 for its fourth child, an item of the plan such as T2, or the id of a session, task or
mission (default: the Commander of the latest mission). The message /compact does the same: centurion send 0/ /compact, or m in
the live view. A mission's own conversation is shortened at once while it has no turn, also when the mission has stopped or is over. Any
other is shortened before its next request.`

func compactCommand(c *cli) *cobra.Command {
	f, p := &readFlags{}, mail.Post{Text: mail.CompactWord}
	cmd := &cobra.Command{Use: "compact [ADDRESS]", Short: "Shorten a conversation", Long: compactHelp,
		Example: "  centurion compact\n  centurion compact 0/3\n  centurion compact T2 --mission msn_0199…",
		Args:    exactly(0, 1, "at most one address"), ValidArgsFunction: complete(c, 1, agentsOf),
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.To = first(args); p.To == "" {
				err := c.open(cmd.Context(), f, func(v *view) error {
					m, err := v.API.Mission(cmd.Context(), p.Mission)
					p.To = m.ID
					return err
				})
				if err != nil {
					return err
				}
			}
			return (&message{c, f, p}).send(cmd.Context())
		}}
	f.bind(cmd)
	cmd.Flags().StringVar(&p.Mission, "mission", "", "mission of the address (default: the latest mission)")
	return cmd
}

// fileFlag is --file of run and send.
func fileFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringArrayVarP(paths, "file", "f", nil, "attach a text, image or PDF; repeatable")
}

// attach adds the files of `centurion send` to a message.
func (c *message) attach(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, ws, err := c.locate(c.f.dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	with, err := goal.Attach(ws, paths, mail.MaxPost-len(c.post.Text))
	c.post.Text, c.post.Files = c.post.Text+with.Text, with.Files
	return err
}

// noteUntakenFiles reports that the receiver's model does not accept such files and only gets a description. It says nothing if the
// model is unknown.
func (c *message) noteUntakenFiles(ctx context.Context, got mail.Posted) {
	if len(c.post.Files) == 0 || got.Session == "" {
		return
	}
	_ = c.open(ctx, c.f, func(v *view) error {
		s, err := v.API.Session(ctx, got.Session)
		if err != nil || s.Model == nil {
			return err
		}
		cfg, err := config.Load(config.Options{Dir: s.Directory, Env: c.getenv})
		if err != nil {
			return err
		}
		r, err := cfg.ResolveModel(ctx, s.Model.Provider+"/"+s.Model.ID)
		if err != nil {
			return err
		}
		for _, file := range c.post.Files {
			if !r.Media.Takes(file.Mime) {
				c.note(fmt.Sprintf("the model %s takes no %s: it is told in words that there is one; if it does take them, set %s",
					r.Model, goal.KindOf(file), mail.MediaKey(r.Model)))
				return nil
			}
		}
		return nil
	})
}
