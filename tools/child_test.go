package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

// Somebody who waits for a task lets others begin, gets what was asked for, and ends when their turn does.
func TestDelegationAndItsTurn(t *testing.T) {
	b, boss := newBoss(t)
	begun := 0
	b.Begun = func() { begun++ }
	r := b.must("delegate_task", args{"agent": "worker", "description": "x", "prompt": "y", "context": true})
	if d := boss.delegated[0]; !d.Context || begun != 1 || r.Metadata["background"] != true {
		t.Errorf("%+v, begun %d times: %v", d, begun, r.Metadata)
	}
	r = b.must("delegate_task", args{"agent": "worker", "description": "x", "prompt": "y", "background": false})
	if d := boss.delegated[1]; d.Context || begun != 2 || r.Metadata["background"] != nil {
		t.Errorf("%+v, begun %d times: %v", d, begun, r.Metadata)
	}
	synctest.Test(t, func(t *testing.T) {
		boss.ends, b.Await = time.Hour, 30*time.Minute
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, centurion.ErrCancelled)
		defer cancel()
		wait := false
		in := delegateTaskInput{Agent: "worker", Description: "x", Prompt: "y", Background: &wait}
		if r, err := runDelegateTask(ctx, b.Call, in); centurion.KindOf(err) != centurion.KindCancelled {
			t.Errorf("it goes on after its turn: %q, %v", r.Output, err)
		}
		for limit, ends := range map[time.Duration]bool{30 * time.Minute: false, time.Hour: true, time.Hour - syncGrace/2: true} {
			b.Await = limit
			begin := time.Now()
			r, err := runDelegateTask(t.Context(), b.Call, in)
			if err != nil || strings.Contains(r.Output, "in the background") == ends || (len(r.Consumes) > 0) != ends {
				t.Errorf("waiting %s: %q, %v after %s", limit, r.Output, err, time.Since(begin))
			}
		}
	})
}

// A sub-agent that was not at its end is no result, whatever it was doing, and nothing of it is taken.
func TestSubAgentThatHasNotEnded(t *testing.T) {
	for _, status := range []centurion.TaskStatus{centurion.TaskQueued, centurion.TaskRunning, centurion.TaskWaiting} {
		r, err := SubReport{Task: centurion.Task{ID: "tsk_1", Number: 1, Status: status, Result: "half"}}.result("ses_1")
		if err != nil || len(r.Consumes) > 0 || strings.Contains(r.Output, "half") || !strings.Contains(r.Output, "do not start it again") {
			t.Errorf("%s: %+v, %v", status, r, err)
		}
	}
	var calls []SubCall
	for i := range subCallMax + 20 {
		calls = append(calls, SubCall{ID: fmt.Sprint(i), Tool: "read"})
	}
	log, _ := SubReport{Task: centurion.Task{Status: centurion.TaskCompleted}, Calls: calls}.metadata("ses_1")["log"].([]SubCall)
	if len(log) != subCallMax || log[0].ID != "20" {
		t.Errorf("the log has %d calls", len(log))
	}
}

// A path that begins with a tilde is the home directory only where a shell takes it for that, and files are edited up to a size.
func TestWhereAPathLeads(t *testing.T) {
	b := newBench(t)
	b.put("~other/f", "a\n")
	b.put("~f", "a\n")
	for _, name := range []string{"~other/f", "~f"} {
		if p, err := locate(b.Call, "read", name); err != nil || p.Rel != name {
			t.Errorf("%s leads to %+v, %v", name, p, err)
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	if p, err := locate(b.Call, "read", "~/f"); err != nil || !p.Outside || !strings.HasSuffix(p.Abs(), "/f") || runtime.GOOS != "windows" && !strings.Contains(p.Abs(), filepath.Base(home)) {
		t.Errorf("~/f leads to %+v, %v", p, err)
	}
	for size, fits := range map[int64]bool{maxEdit: true, maxEdit + 1: false} {
		at := filepath.Join(b.dir, "big")
		b.put("big", "")
		if err := os.Truncate(at, size); err != nil {
			t.Fatal(err)
		}
		if _, _, err := enterFile(t.Context(), b.Call, "edit", "big"); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
