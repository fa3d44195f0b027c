package orchestrator

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/guard/cputime"
	"centurion/provider"
	"centurion/provider/scripted"
)

// BenchmarkMission50 is a mission of 50 workers with 5 rounds each against a model that takes 200 ms, over loopback and
// with full durability. Its figures are those of the table of goals: wall against the ideal, CPU a request, memory a
// session, the first worker's request after the call, the slowest telling of a result after its worker's last answer.
func BenchmarkMission50(b *testing.B) {
	const workers, rounds, latency = 50, 5, 200 * time.Millisecond
	for b.Loop() {
		var mu sync.Mutex
		var called, first, last time.Time
		ends := map[string]time.Time{} // of the last answers, by the worker's session
		r := newRigWith(b, scripted.Config{Chunk: -1, NoCheck: true, Func: func(q scripted.Request) scripted.Answer {
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !strings.HasPrefix(q.System(), "You are a Worker"):
				if q.Step() > 1 {
					return say("I wait")
				}
				called = now
				return many(workers)
			case first.IsZero():
				first = now
			}
			if q.Step() == rounds {
				ends[q.Session] = now.Add(latency)
				last = now.Add(latency)
				return after(latency, say("made"))
			}
			return after(latency, do(call("ls", args{})))
		}})
		url, err := r.model.Serve()
		if err != nil {
			b.Fatal(err)
		}
		r.cfg.Watch, r.cfg.PerAgent = nil, workers
		transport := &http.Transport{MaxIdleConnsPerHost: workers + 1}
		client := provider.New(provider.Endpoint{Model: ref, BaseURL: url, HTTP: &http.Client{Transport: transport}})
		r.cfg.Model = func(string) (Model, error) { return Model{Client: client, Ref: ref}, nil }
		r.restart()
		m := r.start(centurion.MissionOptions{})

		var before, mid runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		time.AfterFunc(latency*rounds/2, func() { runtime.GC(); runtime.ReadMemStats(&mid) })
		cpu, began := cputime.Used(), time.Now()
		m, err = r.host.Run(r.ctx, m.ID)
		wall, spent := time.Since(began), cputime.Used()-cpu
		if err != nil || m.Status != centurion.MissionCompleted || m.Rounds != workers*rounds+3 {
			b.Fatalf("%s (%s) after %d requests, %v", m.Status, m.Reason, m.Rounds, err)
		}
		transport.CloseIdleConnections()

		var slowest time.Duration
		session := map[string]string{}
		for _, t := range r.tasks(m.ID) {
			session[t.ID] = t.Session
		}
		for _, e := range r.events(m.ID, centurion.EventTaskDelivered) {
			slowest = max(slowest, e.Time.Sub(ends[session[e.Task]]))
		}
		ideal := latency * rounds
		b.ReportMetric(float64(wall.Milliseconds()), "wall-ms")
		b.ReportMetric(float64(wall)/float64(ideal), "wall/ideal")
		b.ReportMetric(float64(spent.Microseconds())/1000/float64(m.Rounds), "cpu-ms/request")
		b.ReportMetric(float64(int64(mid.HeapInuse+mid.StackInuse)-int64(before.HeapInuse+before.StackInuse))/workers/1024, "kB/session")
		b.ReportMetric(float64(first.Sub(called).Microseconds())/1000, "first-request-ms")
		b.ReportMetric(float64(last.Sub(called).Milliseconds()), "last-answer-ms")
		b.ReportMetric(float64(slowest.Microseconds())/1000, "told-ms")
	}
}

// BenchmarkFacts is what an idle mission costs each time that something happens: the plan and the tasks are looked at.
func BenchmarkFacts(b *testing.B) {
	var lines []string
	for i := range 50 {
		lines = append(lines, fmt.Sprintf("- [ ] T%d Item\n  - after: T%d", i+1, max(1, i)))
	}
	lines[0] = "- [ ] T1 First"
	r := newRig(b, map[string]script{"commander": steps(do(plans(lines...)))})
	m := newMission(b.Context(), r.host, r.start(centurion.MissionOptions{}))
	defer m.st.End(nil)
	var err error
	if m.loop.Root, err = m.opener.Open(b.Context(), mustMission(b, r, m.st.ID).Session, nil); err != nil {
		b.Fatal(err)
	}
	if _, err := m.loop.Root.Turn(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := m.loop.Facts(b.Context(), true)
		if err != nil || len(f.Runnable) != 1 {
			b.Fatal(f, err)
		}
	}
}

func mustMission(b *testing.B, r *rig, id string) centurion.Mission {
	b.Helper()
	m, err := r.store.Mission(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return m
}
