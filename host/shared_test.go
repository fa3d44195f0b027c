package host

import (
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/config"
	"centurion/provider/scripted"
)

// Two projects in one process share the limits of the process: the sessions that run at once, the commands, and the waits for a provider.
func TestProjectsShareLimits(t *testing.T) {
	var mu sync.Mutex
	var at, most int
	both := make(chan struct{})
	answer := func(r scripted.Request) scripted.Answer {
		if r.Agent() == "assistant" && r.Step() == 1 {
			return scripted.Answer{Calls: []scripted.Call{{Name: "sub_agent", Arguments: `{"prompt": "look"}`}}}
		}
		if r.Agent() == "assistant" {
			return scripted.Answer{Say: "done"}
		}
		mu.Lock()
		if at++; at > most {
			most = at
		}
		if at == 2 {
			close(both)
		}
		mu.Unlock()
		select {
		case <-both:
		case <-time.After(300 * time.Millisecond): // the other one would have come
		}
		mu.Lock()
		defer mu.Unlock()
		at--
		return scripted.Answer{Say: "seen"}
	}
	shared := NewShared()
	hosts := map[*Host]string{}
	for range 2 {
		x := newProject(t, answer)
		cfg := x.config(func(o *config.Own) { o.MaxWorkers = 1 })
		h, err := Own(t.Context(), x.Place, x.ws, NewModels(cfg, config.Resolved{}), cfg, Options{Shared: shared})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if h.models.gates != &shared.gates || h.runner.Turns != &shared.turns {
			t.Error("its gates or its commands are its own")
		}
		m, err := h.api.Start(t.Context(), "go", centurion.MissionOptions{Model: "custom/m", Profile: "assistant", Isolation: centurion.IsolationShared, MaxWorkers: 1})
		if err != nil {
			t.Fatal(err)
		}
		hosts[h] = m.ID
	}
	for h, id := range hosts {
		h.mu.Lock()
		r := h.all[id]
		h.mu.Unlock()
		<-r.done
		if tasks, err := h.api.Tasks(t.Context(), id); err != nil || len(tasks) != 1 || tasks[0].Status != centurion.TaskCompleted {
			t.Errorf("tasks: %+v, %v", tasks, err)
		}
	}
	if most != 1 {
		t.Errorf("%d sessions ran at once", most)
	}
}
