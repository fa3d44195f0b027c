package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

const (
	bombGoal    = "Start a thousand workers."
	bombWorkers = 1000
	bombSlots   = 50
	bombAtOnce  = 700 // in the first answer, the rest in two more
	bombTokens  = 1200
	bombLatency = 150 * time.Millisecond
)

// bomb is a mission whose Commander asks for a thousand workers, each of which would work forever.
type bomb struct {
	mu         sync.Mutex
	working    int // workers' requests being answered
	peak       int
	spent      float64 // in USD, according to the model's answers
	unreserved int     // workers' requests, each of which costs something
}

// price of the bomb's model, in USD for a million tokens.
var bombPrice = centurion.Price{Input: 1, Output: 10}

// o2 starts a mission that asks for a thousand workers with little money: its spending never exceeds its budget, fifty work at once,
// and the others wait. With more money it continues where it stopped.
func o2(_ context.Context, t *T) {
	p := t.Project(nil)
	own := filepath.Join(p.Home, ".config", "opencode") // neither prices nor permissions of the project count
	t.Must(os.MkdirAll(own, 0o755))
	t.Must(os.WriteFile(filepath.Join(own, "opencode.json"), fmt.Appendf(nil,
		`{"permission": {"*": "allow"}, "provider": {"custom": {"models": {"m": {"cost": {"input": %g, "output": %g}, "limit": {"context": 200000, "output": 16000}}}}}}`,
		bombPrice.Input, bombPrice.Output), 0o644))
	b := &bomb{}
	p.Serve(scripted.Config{Func: b.answer, Pace: -1, Chunk: -1})
	budget := 1.0
	if t.Full {
		budget = 10
	}
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "allow", "--max-cost", fmt.Sprint(budget), "--max-per-agent", fmt.Sprint(bombSlots), bombGoal)
	code := c.Wait(t, waitLimit)
	events, err := c.Events()
	t.Must(err)
	if code != 3 {
		t.Failf("exit code %d, want 3; it said: %s", code, lastLines(c.Stderr(), 3))
	}
	run := bombRun{budget: budget}
	run.queued, run.sessions, run.atOnce, run.over = bombEvents(t, events)
	b.mu.Lock()
	run.spent, run.peak = b.spent, b.peak
	asked := b.unreserved
	b.mu.Unlock()
	_, text := p.Run("ps", "--format", "json")
	var all []struct {
		ID   string
		Cost float64
	}
	t.Must(json.Unmarshal([]byte(text), &all))
	if len(all) == 0 {
		t.Fatalf("there is no mission")
	}
	t.Figure("asked for", bombWorkers)
	run.cost = all[0].Cost
	t.Figure("tasks", run.queued)
	t.Figure("sessions at once", run.atOnce)
	t.Figure("requests at once", run.peak)
	t.Figure("requests", asked)
	t.Figure("spent", fmt.Sprintf("$%.4f of $%.2f", run.cost, budget))
	// A check of past spending alone lets every session start one more request near the limit.
	t.Figure("without a reservation, up to", fmt.Sprintf("$%.2f", budget+bombSlots*float64(bombTokens)*bombPrice.Output/1e6))
	run.check(t)
	again, _ := p.Run("resume", "--format", "json", "--max-cost", fmt.Sprint(budget*1.2), all[0].ID)
	if again != 3 {
		t.Failf("resumed with more, the exit code is %d, want 3 again", again)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent <= run.spent || b.spent > budget*1.2 {
		t.Failf("after the resume $%.4f was spent of $%.2f, before it $%.4f", b.spent, budget*1.2, run.spent)
	}
}

// bombRun is the result of the mission's first run.
type bombRun struct {
	budget, cost, spent      float64 // in USD; cost is the program's figure, spent the model's
	queued, sessions, atOnce int     // tasks recorded, started, and running simultaneously
	peak                     int     // simultaneous requests
	over                     int     // how often reaching the limit was reported
}

// check checks that the limits were kept, and reached at all.
func (r bombRun) check(t *T) {
	switch {
	case r.cost > r.budget || r.spent > r.budget:
		t.Failf("$%.4f was spent, $%.4f by the model's count, of $%.2f", r.cost, r.spent, r.budget)
	case r.spent < 0.8*r.budget:
		t.Failf("the mission stopped with only $%.4f spent of $%.2f", r.spent, r.budget)
	case r.atOnce > bombSlots || r.peak > bombSlots:
		t.Failf("%d sessions and %d requests at once", r.atOnce, r.peak)
	case r.peak < 2:
		t.Failf("no two workers were at work at the same time, so that this proves nothing")
	case r.over != 1:
		t.Failf("that the limit is reached was told %d times", r.over)
	case r.sessions >= r.queued || r.queued < bombSlots:
		t.Failf("%d tasks, of which %d began: nothing had to wait", r.queued, r.sessions)
	}
}

// bombEvents counts the recorded tasks, the started ones, the simultaneous sessions, and how often the limit was reported.
func bombEvents(t *T, events []centurion.Event) (queued, began, atOnce, over int) {
	running := map[string]bool{}
	seen := map[string]bool{}
	for _, e := range events {
		switch {
		case e.Type == centurion.EventTaskQueued:
			queued++
		case e.Type == centurion.EventBudgetExceeded:
			over++
		case e.Task != "" && strings.HasPrefix(string(e.Type), "task."):
			d, err := event.Decode[event.TaskData](e)
			if err != nil {
				t.Failf("%s: %v", e.Type, err)
				continue
			}
			if running[e.Task] = d.Status == centurion.TaskRunning; !running[e.Task] {
				delete(running, e.Task)
			} else if !seen[e.Task] {
				seen[e.Task] = true
				began++
			}
			atOnce = max(atOnce, len(running))
		}
	}
	return queued, began, atOnce, over
}

func (b *bomb) answer(r scripted.Request) scripted.Answer {
	if r.Agent() == "commander" {
		return b.bill(r, b.commander(r))
	}
	b.mu.Lock()
	b.working++
	b.unreserved++
	b.peak = max(b.peak, b.working)
	b.mu.Unlock()
	time.Sleep(bombLatency) // like a real model
	b.mu.Lock()
	b.working--
	b.mu.Unlock()
	return b.bill(r, scripted.Answer{Say: "I go on.", Calls: []scripted.Call{tool("ls", map[string]any{})}})
}

// bill gives an answer its realistic cost: the request and the answer.
func (b *bomb) bill(r scripted.Request, a scripted.Answer) scripted.Answer {
	n := 0
	for _, m := range r.Messages() {
		n += len(m.Text)
	}
	u := scripted.Usage{Input: 1000 + n/4, Output: 900}
	a.Usage = &u
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent += bombPrice.Cost(centurion.Tokens{Input: int64(u.Input), Output: int64(u.Output)}).USD
	return a
}

func (b *bomb) commander(r scripted.Request) scripted.Answer {
	from, to := 0, 0
	switch r.Step() {
	case 1:
		to = bombAtOnce
	case 2, 3:
		step := (bombWorkers - bombAtOnce) / 2
		from = bombAtOnce + (r.Step()-2)*step
		to = from + step
	default:
		return scripted.Answer{Say: "I wait."}
	}
	var calls []scripted.Call
	for i := from; i < to; i++ {
		calls = append(calls, tool("delegate_task", map[string]any{"agent": "worker", "description": fmt.Sprintf("Piece %d", i), "prompt": "Work on."}))
	}
	if r.Step() < 3 { // a turn that only delegates ends by itself
		calls = append(calls, tool("ls", map[string]any{}))
	}
	return scripted.Answer{Say: "More workers.", Calls: calls}
}
