package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/provider"
	"centurion/server"
	"centurion/store"
	"centurion/workspace"
)

// BenchmarkToken is the way of a token: from the moment in which the model writes it, through a mission's session and the
// hub, to readers at the other end of the host's socket. The model writes 200 tokens 5 ms apart, each of which is the time
// at which it was written.
func BenchmarkToken(b *testing.B) {
	for _, readers := range []int{1, 200} {
		b.Run(fmt.Sprintf("%d-readers", readers), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, tokens(b, readers)...)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// tokens runs a mission of one long answer and returns how long each of its tokens took to each reader.
func tokens(b *testing.B, readers int) []time.Duration {
	const n, pace = 200, 5 * time.Millisecond
	begin := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		select {
		case <-begin:
		case <-q.Context().Done():
		}
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for range n {
			<-tick.C
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d \"}}]}\n\n", time.Now().UnixNano())
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer model.Close()
	api, start := talking(b, model.URL+"/v1")
	path, end := listen(b, api)
	defer end()

	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	var ready, done sync.WaitGroup
	mission, run := start()
	for range readers {
		ready.Add(1)
		done.Go(func() {
			c := server.NewClient(path, token)
			defer c.Close()
			var mine []time.Duration
			there := sync.OnceFunc(ready.Done)
			defer there()
			for e, err := range c.Events(ctx, server.EventQuery{Mission: mission, Follow: true, Deltas: true}) {
				there()
				if err != nil {
					b.Error(err)
					break
				}
				mine = append(mine, ages(e)...)
				if e.Type == centurion.EventMissionCompleted {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	ready.Wait()
	close(begin)
	run()
	done.Wait()
	if len(took) < readers*n/2 {
		b.Fatalf("%d tokens came through, of %d", len(took), readers*n)
	}
	return took
}

// ages returns how old the tokens in a delta are.
func ages(e centurion.Event) []time.Duration {
	var d event.DeltaData
	if e.Type != centurion.EventDelta || json.Unmarshal(e.Data, &d) != nil || d.Gap {
		return nil
	}
	var out []time.Duration
	for word := range strings.FieldsSeq(d.Delta) {
		if at, err := strconv.ParseInt(word, 10, 64); err == nil {
			out = append(out, time.Since(time.Unix(0, at)))
		}
	}
	return out
}

// talking is a host whose assistant speaks to the model at url. Start records a mission of it, which run works on until it
// has ended.
func talking(b *testing.B, url string) (api *server.Local, start func() (id string, run func())) {
	s, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "p.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	ws, err := workspace.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ws.Close() })
	ref := centurion.ModelRef{Provider: "custom", ID: "m"}
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: url, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	hub := &event.Hub{}
	host := orchestrator.New(orchestrator.Config{Store: s, Workspace: ws, Publish: hub.Publish,
		Model: func(string) (orchestrator.Model, error) { return orchestrator.Model{Client: client, Ref: ref}, nil }})
	return &server.Local{Store: s, Hub: hub, Host: host}, func() (string, func()) {
		m, err := host.Start(b.Context(), "talk", centurion.MissionOptions{Profile: agents.ProfileAssistant, Isolation: "shared"})
		if err != nil {
			b.Fatal(err)
		}
		return m.ID, func() {
			if m, err := host.Run(b.Context(), m.ID); err != nil || m.Status != centurion.MissionCompleted {
				b.Fatal(m.Status, m.Reason, err)
			}
		}
	}
}
