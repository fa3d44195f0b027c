package orchestrator

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
)

// fullOnce is a model whose worker finds the disk full, once, when it has written something.
type fullOnce struct {
	session.Model
	done atomic.Bool
}

func (f *fullOnce) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	if line, _, _ := strings.Cut(req.System, "\n"); !strings.Contains(strings.ToLower(line), "worker") || len(req.Messages) < 2 || !f.done.CompareAndSwap(false, true) {
		return f.Model.Stream(ctx, req)
	}
	return func(yield func(provider.Delta, error) bool) { yield(provider.Delta{}, errFull) }
}

// TRIAL R4, issue «What works» 1: what goes on after a full disk, in the same host, finds the checkout with what was written in it.
func TestFullDiskKeepsCheckouts(t *testing.T) {
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(do(writes("made.txt", "made\n")), say("made")),
	})
	full := &fullOnce{Model: provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})}
	r.cfg.Model = func(string) (Model, error) { return Model{Client: full, Ref: ref}, nil }
	r.restart()
	m := r.start(centurion.MissionOptions{})
	m = r.live(m.ID).settled()
	r.is(m, centurion.MissionCompleted, "")
	if !full.done.Load() {
		t.Fatal("the disk was not full")
	}
	equal(t, "the task", r.task(m.ID, "").Status, centurion.TaskCompleted)
	equal(t, "what it wrote", r.git("show", m.Branch+":made.txt"), "made")
}
