package session_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion/provider/scripted"
	"centurion/tools"
	"centurion/workspace"
)

type openGate struct{}

func (openGate) Ask(context.Context, *tools.Call, tools.Access) error { return nil }

// BenchmarkRound is one session that reads a file in every round, with a model that answers at once over loopback and a
// store on disk. It reports the gap between the end of an answer and the arrival of the next request, which is what the
// program itself takes: the commits, the tool, the request. The figures for a long conversation are those of its last
// rounds.
func BenchmarkRound(b *testing.B) {
	for _, rounds := range []int{20, 200} {
		b.Run(fmt.Sprintf("%d-rounds", rounds), func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(strings.Repeat("func f() {}\n", 50)), 0o600); err != nil {
				b.Fatal(err)
			}
			ws, err := workspace.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = ws.Close() }()
			read, err := tools.Named("read")
			if err != nil {
				b.Fatal(err)
			}
			answer := call(`read {"filePath":"a.go"}`)
			answer.Say = "I read the file."
			model := scripted.New(scripted.Config{NoCheck: true, Chunk: -1, Func: func(q scripted.Request) scripted.Answer {
				if q.Turn > rounds {
					return scripted.Answer{Say: "done"}
				}
				return answer
			}})
			var gaps []time.Duration
			var ended time.Time
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if !ended.IsZero() {
					gaps = append(gaps, time.Since(ended))
				}
				model.ServeHTTP(w, q)
				ended = time.Now()
			}))
			defer server.Close()
			r := newRig(b, inOrder(), read...)
			r.cfg.Call.Workspace, r.cfg.Call.Seen, r.cfg.Call.Writers, r.cfg.Call.Gate = ws, &tools.Seen{}, &tools.Writers{}, openGate{}
			r.cfg.MaxSteps = rounds + 1
			r.cfg.Model = client(&http.Client{Transport: &http.Transport{}}, server.URL+"/v1")
			var took []time.Duration
			for b.Loop() {
				r.id, gaps, ended = r.create(), nil, time.Time{}
				r.reopen()
				r.turn()
				if len(gaps) != rounds || !strings.Contains(outcomes(r.messages()[1])[0], "func f()") {
					b.Fatal(len(gaps), outcomes(r.messages()[1]))
				}
				took = append(took, gaps[max(0, rounds-20):]...)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
