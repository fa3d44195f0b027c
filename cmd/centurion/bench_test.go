//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"centurion/provider/scripted"
)

// program builds the binary as it is released.
func program(b testing.TB) string {
	b.Helper()
	exe := filepath.Join(b.TempDir(), "centurion")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", exe, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// whole runs a command for each iteration and reports the median of its wall time and its peak memory.
func whole(b *testing.B, command func() *exec.Cmd) {
	b.Helper()
	var walls []time.Duration
	var peak int64
	for b.Loop() {
		cmd := command()
		started := time.Now()
		out, err := cmd.CombinedOutput()
		walls = append(walls, time.Since(started))
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, r.Maxrss)
		}
	}
	slices.Sort(walls)
	b.ReportMetric(float64(walls[len(walls)/2].Microseconds())/1000, "ms/p50")
	b.ReportMetric(float64(peak)/1024, "MB-peak")
}

func BenchmarkVersion(b *testing.B) {
	exe := program(b)
	whole(b, func() *exec.Cmd { return exec.Command(exe, "--version") })
}

// One prompt to its text, whole process: configuration, state directory, database, request, answer, end. Goal: 60 ms, 60 MB.
func BenchmarkPrompt(b *testing.B) {
	exe := program(b)
	model := scripted.Func(func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "It is a converter."} })
	url, err := model.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	home := b.TempDir()
	whole(b, func() *exec.Cmd {
		cmd := exec.Command(exe, "run", "--model", "openai/gpt-5", "--format", "json", "what is this project?")
		cmd.Dir = b.TempDir()
		cmd.Env = []string{"HOME=" + home, "CENTURION_HOME=" + b.TempDir(), "OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + url,
			"PATH=" + os.Getenv("PATH")}
		return cmd
	})
	if n := len(model.Requests()); n < b.N {
		b.Fatalf("%d runs asked the model %d times", b.N, n)
	}
}

// From the start of a run to its first request, with 20 MCP servers of which 5 never answer. Goal: not later than without.
func BenchmarkFirstRequest(b *testing.B) {
	exe := program(b)
	asked := make(chan time.Time, 1)
	model := scripted.Func(func(scripted.Request) scripted.Answer { asked <- time.Now(); return scripted.Answer{Say: "hello"} })
	url, err := model.Serve()
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	dir := b.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = exec.Command("cp", self, filepath.Join(dir, "toolserver")).Run()
	}
	if err != nil {
		b.Fatal(err)
	}
	servers := map[string]any{}
	for i := range 20 {
		command := []string{"./toolserver"}
		if i < 5 {
			command = []string{"sleep", "1000"}
		}
		servers[fmt.Sprint("s", i)] = map[string]any{"type": "local", "command": command}
	}
	with, err := json.Marshal(map[string]any{"mcp": servers})
	if err != nil {
		b.Fatal(err)
	}
	for name, configuration := range map[string]string{"no servers": "{}", "20 servers": string(with)} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				cmd := exec.Command(exe, "run", "--profile", "assistant", "--model", "openai/gpt-5", "--format", "json", "hello")
				cmd.Dir = dir
				cmd.Env = []string{"HOME=" + b.TempDir(), "CENTURION_HOME=" + b.TempDir(), "OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + url, "PATH=" + os.Getenv("PATH"),
					"OPENCODE_CONFIG_CONTENT=" + configuration}
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				took = append(took, (<-asked).Sub(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/p50")
		})
	}
}
