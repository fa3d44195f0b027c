package session_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"centurion/guard/cputime"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/tools"
	"centurion/workspace"
)

// BenchmarkSessions runs many sessions at once in one process, each with a tool call in every round, over loopback and
// with full durability. With a model that takes 200 ms it reports the wall time against the ideal, CPU a request and memory
// a session; with one that answers at once («flat out») the gap between the end of an answer and the arrival of its
// session's next request. The model server is part of all figures.
func BenchmarkSessions(b *testing.B) {
	const wait = 200 * time.Millisecond
	for _, bench := range []struct {
		name             string
		sessions, rounds int
		latency          time.Duration
	}{
		{"50-flat-out", 50, 20, 0},
		{"50", 50, 5, wait},
		{"200", 200, 5, wait},
		{"1000", 1000, 5, wait},
	} {
		b.Run(bench.name, func(b *testing.B) {
			m := manySessions{b: b, latency: bench.latency, rounds: bench.rounds, ended: map[string]time.Time{}}
			for b.Loop() {
				m.run(bench.sessions)
			}
			m.report()
		})
	}
}

// manySessions is a model that many sessions talk to, and what was measured of them.
type manySessions struct {
	b       *testing.B
	latency time.Duration
	rounds  int

	mu    sync.Mutex
	ended map[string]time.Time // of a session's latest answer
	gaps  []time.Duration

	walls, cpus []float64 // of the ideal; ms a request
	memory      []float64 // kB a session
}

func (m *manySessions) run(sessions int) {
	m.b.StopTimer()
	ws, err := workspace.Open(m.b.TempDir())
	if err != nil {
		m.b.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	ls, err := tools.Named("ls")
	if err != nil {
		m.b.Fatal(err)
	}
	model := scripted.New(scripted.Config{NoCheck: true, Chunk: -1, Func: func(q scripted.Request) scripted.Answer {
		answer := call(`ls {}`)
		if q.Turn > m.rounds-1 {
			answer = scripted.Answer{Say: "done"}
		}
		answer.Delay = m.latency
		return answer
	}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { m.serve(model, w, q) }))
	defer server.Close()
	r := newRig(m.b, inOrder(), ls...)
	r.cfg.Call.Workspace, r.cfg.Call.Seen, r.cfg.Call.Writers, r.cfg.Call.Gate = ws, &tools.Seen{}, &tools.Writers{}, openGate{}
	transport := &http.Transport{MaxIdleConnsPerHost: sessions + 1}
	defer transport.CloseIdleConnections()
	r.cfg.Model = client(&http.Client{Transport: transport}, server.URL+"/v1")
	open := make([]*session.Session, sessions)
	for i := range open {
		if open[i], err = session.Open(m.b.Context(), r.cfg, r.create()); err != nil {
			m.b.Fatal(err)
		}
	}
	var before, mid runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ideal := max(m.latency*time.Duration(m.rounds), time.Millisecond)
	time.AfterFunc(ideal/2, func() { runtime.GC(); runtime.ReadMemStats(&mid) })
	m.b.StartTimer()
	cpu, began := cputime.Used(), time.Now()
	group, ctx := errgroup.WithContext(m.b.Context())
	for _, s := range open {
		group.Go(func() error { _, err := s.Turn(context.WithoutCancel(ctx)); return err })
	}
	if err := group.Wait(); err != nil {
		m.b.Fatal(err)
	}
	wall, used := time.Since(began), cputime.Used()-cpu
	if n := len(model.Requests()); n != sessions*m.rounds {
		m.b.Fatalf("%d requests", n)
	}
	m.walls = append(m.walls, float64(wall)/float64(ideal))
	m.cpus = append(m.cpus, float64(used.Microseconds())/1000/float64(sessions*m.rounds))
	m.memory = append(m.memory, float64(int64(mid.HeapInuse+mid.StackInuse)-int64(before.HeapInuse+before.StackInuse))/float64(sessions)/1024)
}

// serve answers a request and notes how long its session took to come back.
func (m *manySessions) serve(model *scripted.Model, w http.ResponseWriter, q *http.Request) {
	id := q.Header.Get("x-session-id")
	m.mu.Lock()
	if at, ok := m.ended[id]; ok {
		m.gaps = append(m.gaps, time.Since(at))
	}
	m.mu.Unlock()
	model.ServeHTTP(w, q)
	m.mu.Lock()
	m.ended[id] = time.Now()
	m.mu.Unlock()
}

func (m *manySessions) report() {
	if m.latency == 0 {
		slices.Sort(m.gaps)
		m.b.ReportMetric(float64(m.gaps[len(m.gaps)/2].Microseconds())/1000, "p50-ms")
		m.b.ReportMetric(float64(m.gaps[len(m.gaps)*99/100].Microseconds())/1000, "p99-ms")
	} else {
		m.b.ReportMetric(median(m.walls), "wall/ideal")
		m.b.ReportMetric(median(m.memory), "kB/session")
	}
	m.b.ReportMetric(median(m.cpus), "cpu-ms/request")
}

func median[T cmp.Ordered](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}
