package trial

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
)

const (
	r13Small  = 10_000    // bytes printed by each command in the reference run
	r13Quick  = 200 << 20 // bytes printed by each command, and in each file
	r13Full   = 1 << 30
	r13Memory = 32       // MiB of resident memory above the reference run, at most
	r13Stored = 64 << 10 // bytes of one result
	r13Limit  = 10 * time.Minute
)

// r13Floods are scripts that print %d bytes.
var r13Floods = []struct{ name, script string }{
	{"lines", `yes | head -c %d`},
	{"binary", `head -c %d /dev/urandom`},
	{"no newline", `head -c %d /dev/zero | tr '\0' x`},
	{"terminal sequences", `yes "$(printf '\033[1;31mred\033[0m\a\r\033]0;title\a\b')" | head -c %d`},
}

// r13 lets a worker print, read and search far more than should be kept.
func r13(ctx context.Context, t *T) {
	small, _ := r13Run(ctx, t, r13Small)
	if ctx.Err() != nil || t.Failed() {
		return
	}
	size := t.Scale(r13Quick, r13Full)
	big, took := r13Run(ctx, t, size)
	if big-small > r13Memory {
		t.Failf("the host took %.0f MiB at most, and %.0f MiB with little output", big, small)
	}
	t.Figure("bytes each", size)
	t.Figure("calls", len(r13Calls(size)))
	t.Figure("resident at most", fmt.Sprintf("%.0f MiB, with little output %.0f MiB", big, small))
	t.Figure("took", took)
}

// r13Calls are the worker's calls: the floods, the same in the background, and reads of two large files.
func r13Calls(size int) (all []scripted.Call) {
	for _, f := range r13Floods {
		all = append(all, tool("bash", map[string]any{"command": fmt.Sprintf(f.script, size), "timeout": 600_000}))
	}
	for i, f := range r13Floods {
		all = append(all, tool("run_background", map[string]any{"command": fmt.Sprintf(f.script, size), "timeout": 600_000}),
			tool("check_background", map[string]any{"id": fmt.Sprintf("bg_%d", i+1)}))
	}
	return append(all, tool("read", map[string]any{"filePath": "lines.txt"}), tool("read", map[string]any{"filePath": "lines.txt", "offset": size / len(r13Line)}),
		tool("read", map[string]any{"filePath": "long.txt"}), tool("grep", map[string]any{"pattern": "never there", "path": "lines.txt"}),
		tool("grep", map[string]any{"pattern": "work", "path": "lines.txt"}), tool("grep", map[string]any{"pattern": "x", "path": "long.txt"}),
		tool("grep", map[string]any{"patterns": []string{"x$", "play"}}))
}

const r13Line = "all work and no play\n"

// r13File writes a file that repeats the same text.
func r13File(t *T, path, text string, size int) {
	f, err := os.Create(path)
	t.Must(err)
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for n := 0; n < size; n += len(text) {
		_, err := w.WriteString(text)
		t.Must(err)
	}
	t.Must(w.Flush())
}

// r13Run runs the mission and returns its host's peak resident memory, in MiB, and how long it took.
func r13Run(ctx context.Context, t *T, size int) (float64, time.Duration) {
	p := t.Project(map[string]string{personRules: `{"permission": {"*": "allow"}}`})
	r13File(t, filepath.Join(p.Dir, "lines.txt"), r13Line, size)
	r13File(t, filepath.Join(p.Dir, "long.txt"), strings.Repeat("x", 64<<10), size)
	calls := r13Calls(size)
	finished := map[string]bool{} // the worker's calls; many polls make its history shrink
	p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		past := history(r)
		if len(r.Tools()) == 0 {
			return scripted.Answer{Say: "Much was printed."}
		}
		if r.Agent() == "commander" {
			if len(past) == 0 {
				return scripted.Answer{Calls: []scripted.Call{tool("delegate_task", map[string]any{"agent": "worker", "description": "Print", "prompt": "Print much."})}}
			}
			return scripted.Answer{Say: "It was printed."}
		}
		for _, m := range r.Messages() {
			if m.Role == "tool" && !strings.Contains(m.Text, "has been running") { // polling of what still runs is repeated
				finished[m.CallID] = true
			}
		}
		n := len(finished)
		if n >= len(calls) {
			return scripted.Answer{Say: "All is printed."}
		}
		a := scripted.Answer{Calls: []scripted.Call{calls[n]}}
		if calls[n].Name == "check_background" {
			a.Delay = time.Second // few polls while it runs, even on a slow machine
		}
		return a
	}})
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "allow", "--max-tokens", "1000000000", "Print.")
	most := 0.0
	for deadline := time.Now().Add(r13Limit); !c.Ended() && ctx.Err() == nil && time.Now().Before(deadline); {
		most = max(most, peak(c.cmd.Process.Pid))
		time.Sleep(10 * time.Millisecond) // nothing announces growth
	}
	if code := c.Wait(t, waitLimit); code != 0 {
		t.Failf("the mission ended with %d: %s", code, lastLines(c.Stdout()+c.Stderr(), 3))
	}
	check(t, p, p.Told(c))
	r13Stores(ctx, t, p, size, len(calls))
	return most, c.ended.Sub(c.start)
}

// peak returns a process's peak resident memory so far, in MiB; 0 for an ended one.
func peak(pid int) float64 {
	for line := range strings.Lines(readAll(fmt.Sprintf("/proc/%d/status", pid))) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0]) // the kernel writes a number
			return float64(kb) / 1024
		}
	}
	return 0
}

// r13Stores checks what is kept of the results.
func r13Stores(ctx context.Context, t *T, p *project, size, calls int) {
	s, err := store.Open(ctx, p.Database())
	t.Must(err)
	defer s.Close()
	missions, err := s.Missions(ctx)
	t.Must(err)
	sessions, err := s.Sessions(ctx, missions[0].ID)
	t.Must(err)
	n := 0
	for _, one := range sessions {
		if one.Agent != "worker" {
			continue
		}
		messages, err := s.Messages(ctx, one.ID)
		t.Must(err)
		for _, m := range messages {
			for _, part := range m.Parts {
				if part.Type != centurion.PartTool || part.Tool == "check_background" && strings.Contains(part.State.Output, "has been running") {
					continue
				}
				n++
				r13Result(t, part, size)
			}
		}
	}
	if n != calls {
		t.Failf("%d results are kept, and not %d", n, calls)
	}
}

// r13Result checks one result.
func r13Result(t *T, part centurion.Part, size int) {
	out, what := part.State.Output, part.Tool+" "+centurion.Clip(string(part.State.Input), 100)
	if part.State.Error != "" || out == "" {
		t.Failf("%s: failed: %q", what, part.State.Error)
		return
	}
	kept, _ := part.State.Metadata["output"].(string)
	for _, text := range []string{out, kept} {
		if len(text) > r13Stored {
			t.Failf("%s: %d bytes are kept", what, len(text))
		}
		if !utf8.ValidString(text) {
			t.Failf("%s: what is kept is not UTF-8", what)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Failf("%s: a control code is kept: %q", what, text[i:min(len(text), i+20)])
		}
	}
	flood := part.Tool == "bash" || part.Tool == "check_background"
	// The last poll of a background command may find that the previous one has reported everything.
	if flood && size > r13Small && !strings.Contains(out, "bytes left out") && !strings.Contains(out, "no new output") {
		t.Failf("%s: it does not say what was left out: %q", what, centurion.Clip(out, 200))
	}
}
