//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion/plugin"
	"centurion/provider/scripted"
)

// everyCall is a plugin that is asked before and after each call, and before each request.
const everyCall = `export default { id: "every", server: async () => ({
  "tool.execute.before": async (input, output) => { output.args.seen = undefined },
  "tool.execute.after": async (input, output) => { output.output += "\n(seen)" },
  "chat.params": async () => {},
}) }`

// BenchmarkPlugin50 is a mission of 50 workers with 5 rounds each against a model that takes 200 ms, in the whole program, without a plugin
// and with one that is asked on every call. Goal: at most 5 % longer.
func BenchmarkPlugin50(b *testing.B) {
	exe := program(b)
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	installed := filepath.Join(cache, "centurion-test", "plugins")
	if _, err := plugin.Installed(installed); err != nil {
		if _, err := plugin.Install(b.Context(), installed, nil, runProgram); err != nil {
			b.Fatal(err)
		}
	}
	root, err := os.MkdirTemp(filepath.Dir(installed), "bench-") // links cannot go elsewhere, and a plugin sees no directory for temporary files
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(root)
	plugins := filepath.Join(root, "home/.config/opencode/plugin")
	if err := errors.Join(os.MkdirAll(plugins, 0o700), os.Mkdir(filepath.Join(root, "state"), 0o700)); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("cp", "-al", installed, filepath.Join(root, "state/plugins")).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	took, cpu := map[bool][]time.Duration{}, map[bool][]time.Duration{}
	for b.Loop() {
		for _, with := range []bool{len(took[true])%2 == 1, len(took[true])%2 == 0} { // each is the first one as often
			file := filepath.Join(plugins, "every.js")
			if err := os.RemoveAll(file); err != nil {
				b.Fatal(err)
			}
			if with {
				if err := os.WriteFile(file, []byte(everyCall), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			wall, spent := mission50(b, exe, root, with)
			took[with], cpu[with] = append(took[with], wall), append(cpu[with], spent)
		}
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(took[false]), "ms-without")
	b.ReportMetric(median(took[true]), "ms-with")
	b.ReportMetric(100*(median(took[true])/median(took[false])-1), "%-longer")
	b.ReportMetric(median(cpu[false]), "cpu-ms-without")
	b.ReportMetric(median(cpu[true]), "cpu-ms-with")
}

// mission50 runs a mission and returns the time from the Commander's call to the last answer of a worker, and the CPU time of all processes.
func mission50(b *testing.B, exe, root string, with bool) (wall, cpu time.Duration) {
	const workers, rounds, latency = 50, 5, 200 * time.Millisecond
	const thought = time.Second // of the Commander's, in which the plugin starts
	var mu sync.Mutex
	var called, last time.Time
	seen := 0
	model := scripted.New(scripted.Config{Chunk: -1, NoCheck: true, Func: func(r scripted.Request) scripted.Answer {
		mu.Lock()
		defer mu.Unlock()
		var calls []scripted.Call
		switch {
		case r.Agent() == "commander" && r.Step() > 1:
			return scripted.Answer{Say: "I wait."}
		case r.Agent() == "commander":
			for i := range workers {
				calls = append(calls, scripted.Call{Name: "delegate_task", Arguments: fmt.Sprintf(`{"agent":"worker","description":"Look %d","prompt":"Look."}`, i)})
			}
			called = time.Now().Add(thought)
			return scripted.Answer{Calls: calls, Delay: thought}
		case strings.HasSuffix(r.Last(), "(seen)"):
			seen++
		}
		if last = time.Now().Add(latency); r.Step() == rounds {
			return scripted.Answer{Say: "Seen.", Delay: latency}
		}
		return scripted.Answer{Calls: []scripted.Call{{Name: "ls", Arguments: "{}"}}, Delay: latency}
	}})
	url, err := model.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	cmd := exec.Command(exe, "run", "--format", "json", "--model", "custom/m", "--ask", "allow", "--max-per-agent", fmt.Sprint(workers), "look")
	cmd.Dir = b.TempDir()
	cmd.Env = []string{"HOME=" + filepath.Join(root, "home"), "CENTURION_HOME=" + filepath.Join(root, "state"), "OPENAI_BASE_URL=" + url, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out[max(0, len(out)-2000):])
	}
	if want := workers * (rounds - 1); seen != want && with || seen > 0 && !with {
		b.Fatalf("the plugin was asked %d times, of %d", seen, want)
	}
	return last.Sub(called), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
