package acp

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
)

// The conversation of a task is no conversation of the person's.
func TestLoadOfATask(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.child = centurion.NewID(centurion.PrefixSession)
		got := e.says(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/p","sessionId":"` + e.child + `"}}`)
		if !strings.HasPrefix(got, `{"id":1,"error":`) || strings.Count(got, "\n") != 1 {
			t.Errorf("it is loaded: %s", got)
		}
	})
}

// A message that reaches its mission after it was cancelled is stopped when the mission goes on; one that was not cancelled is left alone.
func TestCancelBeforeItBegins(t *testing.T) {
	played(t, func(h *host, _ v1.Begin) { h.end(centurion.MissionCompleted, "") }, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.says(strings.Replace(aPrompt, `"id":2`, `"id":3`, 1))
		e.tell(centurion.Event{Type: centurion.EventMissionResumed})
		e.says("")
		before := e.stops
		e.says(aCancel)
		cancelled := e.stops
		e.tell(centurion.Event{Type: centurion.EventMissionResumed})
		if e.says(""); before != 0 || cancelled != 1 || e.stops != 2 {
			t.Errorf("it was stopped %d times before the cancel, %d times by it, and %d times when it began", before, cancelled, e.stops)
		}
	})
}

// An answer to a new message is not put below the one before.
func TestAnswersAreApart(t *testing.T) {
	played(t, func(*host, v1.Begin) {}, func(e *editor) {
		e.says(newSession)
		e.says(aPrompt)
		e.message("ses_1", "", centurion.FinishStop, textPart("prt_1", "One."))
		e.host.mu.Lock()
		e.messages["msg_again"] = server.Message{Info: centurion.Message{ID: "msg_again", SessionID: "ses_1", Role: centurion.RoleUser}}
		e.host.mu.Unlock()
		e.tell(centurion.Event{Type: centurion.EventMessageUpdated, Session: "ses_1", Data: []byte(`{"message":"msg_again"}`)})
		e.message("ses_1", "", centurion.FinishStop, textPart("prt_2", "Two."))
		want(t, "told", e.says(""), `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"One."}}`, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Two."}}`)
		e.end(centurion.MissionCompleted, "")
		e.says("")
	})
}

// An editor that leaves pauses what it has begun, and not what it has only looked at: somebody else works there.
func TestLeaving(t *testing.T) {
	for what, paused := range map[string][]string{"begun": {"msn_1"}, "looked at": nil} {
		var h *host
		played(t, func(*host, v1.Begin) {}, func(e *editor) {
			if h = e.host; what == "begun" {
				e.says(newSession)
				e.says(aPrompt)
				return
			}
			e.status = centurion.MissionRunning
			if got := e.says(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/p","sessionId":"` + centurion.NewID(centurion.PrefixSession) + `"}}`); !strings.Contains(got, `"result"`) {
				t.Errorf("it is not loaded: %s", got)
			}
		})
		if !slices.Equal(h.paused, paused) {
			t.Errorf("%s: paused are %q, want %q", what, h.paused, paused)
		}
	}
}

// drain is an output that is closed once.
type drain struct {
	bytes.Buffer
	closed int
}

func (d *drain) Close() error {
	d.closed++
	return nil
}

// There is room again when the editor has read; what was sent before the end is written, what comes after it is refused.
func TestQueueHasRoomAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &drain{}
		q := newQueue(strings.NewReader(""), out)
		part := []byte(strings.Repeat("x", maxWaiting/2+1))
		over := make(chan error, 1)
		for range 2 {
			if err := q.Send(part); err != nil {
				t.Fatal(err)
			}
		}
		roomy := make(chan struct{})
		go func() { _ = q.room(t.Context()); close(roomy) }()
		if synctest.Wait(); isClosed(roomy) {
			t.Error("there is room for more than may wait")
		}
		go func() { over <- q.write() }()
		if synctest.Wait(); !isClosed(roomy) || out.Len() != 2*(len(part)+1) {
			t.Errorf("all was read, and nothing more is told: %d bytes", out.Len())
		}
		if err := q.Send([]byte("{}")); err != nil {
			t.Error(err)
		}
		_ = q.Close()
		if err := q.Send([]byte("late")); err != io.ErrClosedPipe {
			t.Errorf("after the end: %v", err)
		}
		if err := <-over; err != nil || out.closed != 1 || !strings.HasSuffix(out.String(), "x\n{}\n") {
			t.Errorf("%v, closed %d times, …%q", err, out.closed, out.String()[out.Len()-8:])
		}
	})
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
