package server_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
)

// The plan is told as it was read last, a conversation as its mission stands, and of several tasks all are counted.
func TestWhatIsTold(t *testing.T) {
	p, ctx := newProject(t), t.Context()
	if d, err := p.local.Todo(ctx, p.mission.ID); err != nil || d.Title != "" {
		t.Errorf("without a plan: %+v, %v", d, err)
	}
	p.mission.Title, p.mission.Below = "A name", "ses_9"
	second := p.task
	second.ID = centurion.NewID(centurion.PrefixTask)
	if err := p.store.Update(ctx, func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&p.mission), tx.PutTask(&second))
		for _, title := range []string{"first", "second", "third"} {
			_, terr := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: p.mission.ID, Data: event.Data(event.TodoData{Title: title})})
			err = errors.Join(err, terr)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if d, err := p.local.Todo(ctx, p.mission.ID); err != nil || d.Title != "third" {
		t.Errorf("the plan is %+v, %v", d, err)
	}
	if m, err := p.local.Mission(ctx, p.mission.ID); err != nil || m.Tasks["queued"] != 2 {
		t.Errorf("its tasks are %v, %v", m.Tasks, err)
	}
	if s, err := p.local.Session(ctx, p.session.ID); err != nil || s.ID != p.session.ID || s.Title != "A name" || s.Metadata.Below != "ses_9" {
		t.Errorf("its conversation is %+v, %v", s, err)
	}
	if tree, err := p.local.Tree(ctx, p.session.ID); err != nil || tree.Session.ID != p.session.ID || tree.Leaf != p.message || len(tree.Messages) != 1 {
		t.Errorf("its tree is %+v, %v", tree, err)
	}
	if all, err := p.local.Servers(ctx, true); err != nil || all == nil || len(all) != 0 {
		t.Errorf("without MCP servers: %v, %v", all, err)
	}
	if _, err := p.local.Content(ctx, server.ServerQuery{}); fails(err) != "mcp: no MCP servers are configured | not_found | " {
		t.Error(fails(err))
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := collect(p.local.Events(over, server.EventQuery{View: server.ViewAgent, Mission: p.mission.ID, After: 1})); err == nil {
		t.Error("a reader whose time is over is told that there is no more")
	}
}

// What is not there, or cannot be done now, is said with its name and the next step.
func TestRefusedWhole(t *testing.T) {
	p, ctx := newProject(t), t.Context()
	l, nobody := p.local, &server.Local{Store: p.store}
	_, noView := collect(l.Events(ctx, server.EventQuery{View: "x"}))
	_, toasts := collect(l.Events(ctx, server.EventQuery{View: server.ViewAgent, Toasts: true}))
	const resume = " | conflict | continue with: centurion resume"
	for want, err := range map[string]error{
		"abort: nothing is running in this project" + resume:                                   nobody.Abort(ctx, p.session.ID, ""),
		"stop: nothing is running in this project" + resume:                                    nobody.Stop(ctx, p.session.ID, ""),
		"read events: there is no view \"x\" | usage | the only one is agent":                  noView,
		"read events: notices are not part of the view agent | usage | ask for one of the two": toasts,
	} {
		if fails(err) != want {
			t.Errorf("got %s, want %s", fails(err), want)
		}
	}
	for name, err := range map[string]error{"cancel": l.Cancel(ctx, "nonsense", ""), "stop": l.Stop(ctx, "ses_none", ""), "abort": l.Abort(ctx, "tsk_none", "")} {
		if centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%s of what is not there: %v", name, err)
		}
	}
	worker := p.worker()
	if got, want := fails(l.Compact(ctx, worker, "")), "compact session: session "+worker+" will be shortened before its next request, and it is not being worked on | conflict | continue with: centurion resume "+p.mission.ID; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	peer := server.WithPeer(ctx, sandbox.Peer{PID: 7, Refused: "an agent's"})
	for name, h := range map[string]http.Handler{
		"host":   server.Handler(l, token, server.Info{}, func(sandbox.Peer) {}),
		"server": server.Guard(token, "127.0.0.1", http.NotFoundHandler()),
	} {
		rec := recorder{header: http.Header{}}
		h.ServeHTTP(&rec, mustRequest(t, http.MethodGet, "/missions", "").WithContext(peer))
		hint := map[string]string{"host": "; run the command in a terminal of your own"}[name]
		want := fmt.Sprintf(`{"error":{"kind":"permission","message":"Centurion's %s refuses this process: an agent's","hint":"agents cannot control Centurion%s"}}`+"\n", name, hint)
		if rec.String() != want || rec.status != http.StatusForbidden {
			t.Errorf("%d %s, want %s", rec.status, rec.String(), want)
		}
	}
	rec := recorder{header: http.Header{}}
	server.Guard(token, "127.0.0.1", http.NotFoundHandler()).ServeHTTP(&rec, mustRequest(t, http.MethodGet, "/missions", ""))
	if want := `{"error":{"kind":"permission","message":"this server is not host","hint":"use the address that ` + "`centurion serve`" + ` has printed"}}` + "\n"; rec.String() != want {
		t.Errorf("another name: %s", rec.String())
	}
}

// A fact whose host cannot be reached is told again, and what comes after it not before; one that cannot be told is noted and passed over.
func TestFollowerTellsAgain(t *testing.T) {
	var asked []server.EventQuery
	events := func(_ context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
		asked = append(asked, q)
		return func(yield func(centurion.Event, error) bool) {
			for seq := q.After + 1; seq <= 5; seq++ {
				if !yield(centurion.Event{Seq: seq, Type: centurion.EventTaskStarted}, nil) {
					return
				}
			}
			yield(centurion.Event{Type: centurion.EventDelta}, nil)
		}
	}
	var told []int64
	var notes []string
	lost := false
	err := new(server.Follower).Run(t.Context(), server.EventQuery{After: 1, Mission: "msn_1", Follow: true}, events, func(_ context.Context, e centurion.Event) error {
		told = append(told, e.Seq)
		switch {
		case e.Seq == 3 && !lost:
			lost = true
			return &centurion.Error{Kind: centurion.KindNetwork, Msg: "gone"}
		case e.Seq == 4:
			return errors.New("no such session")
		case e.Seq == 0:
			return &centurion.Error{Kind: centurion.KindNetwork, Msg: "gone"}
		}
		return nil
	}, func(s string) { notes = append(notes, s) })
	if want := []int64{2, 3, 3, 4, 5, 0}; !slices.Equal(told, want) || err != nil {
		t.Errorf("told %v, want %v; %v", told, want, err)
	}
	if want := []server.EventQuery{{After: 1, Mission: "msn_1", Follow: true}, {After: 2, Mission: "msn_1", Follow: true}}; !slices.Equal(asked, want) {
		t.Errorf("asked for %+v", asked)
	}
	if want := []string{"an event of task.started could not be told to clients: no such session", "an event of message.part.delta could not be told to clients: gone"}; !slices.Equal(notes, want) {
		t.Errorf("noted %q", notes)
	}
}
