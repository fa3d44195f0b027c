package orchestrator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/guard"
	"centurion/orchestrator/roots"
	"centurion/provider/scripted"
	"centurion/store"
)

// Issue "Real OpenCode clients": a person's command runs without the model, also as the first thing of a session. The agent waits for its
// end and knows what it printed; while the agent works, there is none.
func TestPersonsCommand(t *testing.T) {
	cast := map[string]script{"assistant": func(req scripted.Request) scripted.Answer { return scripted.Answer{Delay: time.Minute, Say: "done"} }}
	bubble(t, cast, func(r *rig) {
		s, err := r.host.Roots.Open(r.ctx, roots.Opening{Profile: agents.ProfileAssistant})
		if err != nil {
			r.t.Fatal(err)
		}
		var g guard.Group
		run := func(script string, want ...string) {
			g.Go("command", func() error {
				m, err := r.host.Shell.Run(r.ctx, s.ID, script)
				if err != nil || m.Finish != centurion.FinishStop || len(m.Parts) != 1 {
					r.t.Errorf("%s: %+v, %v", script, m, err)
					return nil
				}
				for _, w := range want {
					if out := m.Parts[0].State.Output; !strings.Contains(out, w) {
						r.t.Errorf("%s has the output %q, want %q", script, out, w)
					}
				}
				return nil
			})
			synctest.Wait()
		}
		refused := func(what, id string) {
			if _, err := r.host.Shell.Run(r.ctx, id, "true"); centurion.KindOf(err) != centurion.KindConflict {
				r.t.Errorf("a command %s: %v", what, err)
			}
		}
		run("false", "it is false", "exit code 1")
		run("sleep 1h", "ended it")
		refused("beside another one", s.ID)
		m, err := r.host.Start(r.ctx, "Do it", centurion.MissionOptions{Session: s.ID, Profile: agents.ProfileAssistant})
		if err != nil {
			r.t.Fatal(err)
		}
		ended := r.inBackground(&g, m.ID)
		synctest.Wait()
		equal(r.t, "requests during the command", len(r.requests("assistant")), 0)
		if was, err := r.host.Shell.Abort(r.ctx, s.ID); !was || err != nil {
			r.t.Errorf("aborted: %v, %v", was, err)
		}
		synctest.Wait()
		refused("of a session that works", s.ID)
		r.is(<-ended, centurion.MissionCompleted, "")
		equal(r.t, "requests", len(r.requests("assistant")), 1)
		if got := fmt.Sprint(r.requests("assistant")[0].Messages()); !strings.Contains(got, "it is false") || !strings.Contains(got, "ended it") {
			r.t.Errorf("the model knows %q", got)
		}
		run("true")
		if was, _ := r.host.Shell.Abort(r.ctx, s.ID); was {
			r.t.Error("a command that has ended is aborted")
		}
		task := centurion.Session{ID: centurion.NewID(centurion.PrefixSession), ParentID: s.ID, Metadata: centurion.SessionMeta{Mission: m.ID, Task: "tsk_1"}}
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutSession(&task) }); err != nil {
			r.t.Fatal(err)
		}
		refused("of a task", task.ID)
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
}
