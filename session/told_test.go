package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/store"
	"centurion/tools"
)

// What the gate has decided stands once in a call's data, whether the call went well or not, and the tool's own data stays as it was.
func TestDecisionsAreStored(t *testing.T) {
	own := map[string]any{"lines": 3.0}
	allow, once := tools.Decision{Permission: "edit", Action: "allow"}, tools.Decision{Permission: "bash", Action: "ask", Answer: "once", By: "person"}
	decide := func(c *tools.Call) {
		for _, d := range []tools.Decision{allow, once, allow} {
			c.Decided(d)
		}
	}
	r := newRig(t, inOrder(call("well", "bare", "bad", "plain")),
		tool{name: "well", run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
			decide(c)
			return tools.Result{Output: "x", Title: "a title", Metadata: own}, nil
		}},
		tool{name: "bare", run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
			decide(c)
			return tools.Result{Output: "x"}, nil
		}},
		tool{name: "bad", run: func(_ context.Context, c *tools.Call, _ json.RawMessage) (tools.Result, error) {
			decide(c)
			return tools.Result{Metadata: own}, errors.New("no")
		}},
		tool{name: "plain", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{Metadata: own}, nil
		}})
	r.turn()
	decisions := []any{map[string]any{"permission": "edit", "action": "allow"}, map[string]any{"permission": "bash", "action": "ask", "answer": "once", "by": "person"}}
	want := []map[string]any{{"lines": 3.0, "permission": decisions}, {"permission": decisions}, {"lines": 3.0, "permission": decisions}, {"lines": 3.0}}
	var got []map[string]any
	for _, p := range calls(r.messages()[1]) {
		got = append(got, p.State.Metadata)
	}
	if d := cmp.Diff(want, got); d != "" || !maps.Equal(own, map[string]any{"lines": 3.0}) {
		t.Errorf("%s, the tool's own data is %v", d, own)
	}
	if title := calls(r.messages()[1])[0].State.Title; title != "a title" {
		t.Errorf("title %q", title)
	}
}

// Keys in a tool's result or error are neither stored nor sent.
func TestKeysInResults(t *testing.T) {
	const key = "AKIAIOSFODNN7EXAMPLE"
	r := newRig(t, inOrder(call("show", "fail")),
		tool{name: "show", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{Output: "id " + key + "!"}, nil
		}},
		tool{name: "fail", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			return tools.Result{}, errors.New("refused " + key + "!")
		}})
	r.turn()
	if got := strings.Join(outcomes(r.messages()[1]), "; "); got != "show: id [key aws]!; fail: !refused [key aws]!" {
		t.Errorf("stored %s", got)
	}
	if got := strings.Join(r.model.Requests()[1].Results(), "; "); got != "id [key aws]!; refused [key aws]!" {
		t.Errorf("sent %s", got)
	}
}

// What is recorded of a session beside its turns is in its row: a wait, and why it was stopped.
func TestRowBesideTurns(t *testing.T) {
	r := newRig(t, inOrder())
	wait := centurion.Retry{At: centurion.MillisTime(5000), WaitMS: 7, Reason: "slow", Attempts: 2}
	put := func(f func(tx *store.Tx) error) centurion.SessionMeta {
		t.Helper()
		if err := r.store.Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		return r.record().Metadata
	}
	if m := put(func(tx *store.Tx) error { return r.PutRetry(tx, wait) }); m.Retry == nil || m.Retry.WaitMS != 7 || m.Retry.Reason != "slow" || m.Retry.Attempts != 2 {
		t.Errorf("waits %+v", m.Retry)
	}
	if m := put(func(tx *store.Tx) error { return r.PutAborted(tx, "enough") }); m.Aborted != "enough" || r.Record().Metadata.Aborted != "enough" {
		t.Errorf("stopped because of %q", m.Aborted)
	}
	if m := put(func(tx *store.Tx) error { return r.PutAborted(tx, "") }); m.Aborted != "" {
		t.Errorf("it goes on and is stopped because of %q", m.Aborted)
	}
}

// What is said to a session that another attempt has superseded is refused, and not in its history either.
func TestSayIsFenced(t *testing.T) {
	r := newRig(t, inOrder())
	fenced := errors.New("superseded")
	r.cfg.Fence = func(*store.Tx) error { return fenced }
	r.reopen()
	if err := r.Say(t.Context(), centurion.OriginPerson, "more"); !errors.Is(err, fenced) || len(r.messages()) != 1 {
		t.Errorf("%v, %d messages", err, len(r.messages()))
	}
}

// An error without words of its own is told by its kind, and by what to do.
func TestWordlessErrors(t *testing.T) {
	r := newRig(t, inOrder(call("fail")), tool{name: "fail", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{}, &centurion.Error{Kind: centurion.KindConflict, Hint: "look again"}
	}})
	r.turn()
	if got := outcomes(r.messages()[1])[0]; got != "fail: !conflict. look again" {
		t.Error(got)
	}
}

// The facts of a session tell who works on what, and long texts only in part.
func TestFactsOfASession(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	r := newRig(t, inOrder(call(`write {"text":"`+long+`"}`, "fail")), tool{name: "write", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: long, Title: "a.txt"}, nil
	}}, tool{name: "fail", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{}, errors.New(long)
	}})
	r.say(long)
	r.turn()
	fields := func(n int, of centurion.EventType) map[string]any {
		t.Helper()
		all := r.events(of)
		if n >= len(all) {
			t.Fatalf("%d facts of %s", len(all), of)
		}
		var m map[string]any
		if err := json.Unmarshal(all[n].Data, &m); err != nil || all[n].Mission != "msn_1" || all[n].Task != "tsk_1" || time.Since(all[n].Time.Time) > time.Hour {
			t.Fatalf("%v, %+v", err, all[n])
		}
		return m
	}
	clipped := func(what string, v any, n int) {
		t.Helper()
		if s, _ := v.(string); s != long[:n]+"…" {
			t.Errorf("%s has %d bytes: %.40q", what, len(s), s)
		}
	}
	if m := fields(0, centurion.EventSessionCreated); m["agent"] != "worker" || m["address"] != "0/1" {
		t.Errorf("created: %v", m)
	}
	if m := fields(0, centurion.EventMessageCreated); m["role"] != "user" || m["origin"] != "person" || m["text"] != goal || m["message"] == "" {
		t.Errorf("goal: %v", m)
	}
	clipped("a message", fields(1, centurion.EventMessageCreated)["text"], 2000)
	m := fields(0, centurion.EventToolCompleted)
	clipped("a result", m["output"], 2000)
	if m["tool"] != "write" || m["title"] != "a.txt" || m["call"] == "" {
		t.Errorf("a result: %v", m["title"])
	}
	clipped("a failure", fields(1, centurion.EventToolCompleted)["error"], 2000)
	started, _ := fields(0, centurion.EventToolStarted)["input"].(map[string]any)
	clipped("an argument", started["text"], 200)
	if m := fields(0, centurion.EventSessionIdle); m["finish"] != "stop" || m["steps"] != 2.0 || m["text"] != "done" {
		t.Errorf("idle: %v", m)
	}
}
