package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

const (
	r20Missions  = 3 // in one host: anything the last needs beyond the first was not released
	r20Workers   = 50
	r20Requests  = 20  // of each worker
	r20MiB       = 300 // of resident memory, at most
	r20Flat      = 1.1 // of what the first mission needs
	r20Swing     = 4   // MiB that may depend on the garbage collector
	r20Slack     = 10  // extra descriptors or threads: a connection, a runtime thread that waits for a disk
	r20Idle      = 50  // maximum goroutines of an idle host, not counting idle connections: a leak per worker makes three times as many
	r20Every     = 50 * time.Millisecond
	r20Rest      = time.Second // for which an idle host is watched
	r20Goal      = "Work for a long time."
	r20FullPause = time.Minute // before every answer, so that the full trial takes an hour
)

// usage is what a process uses at a moment, or at most over a time.
type usage struct {
	mib                  float64
	descriptors, threads int // descriptors without sockets
	sockets              int
}

// r20 lets one background host work on missions of fifty workers, one after the other. Memory, descriptors and threads are measured
// from outside: memory and threads all the time, descriptors between two missions, because the number of open files is random while
// fifty work. Goroutines are counted once at the end: the runtime lists them when the process quits.
func r20(ctx context.Context, t *T) {
	p := t.Project(map[string]string{personRules: `{"permission": {"*": "allow"}}`, "in.txt": strings.Repeat("some text to read\n", 100)})
	latency := 2 * time.Millisecond
	limit := waitLimit
	if t.Full {
		latency = r20FullPause
		limit = 2 * r20Requests * r20FullPause
	}
	p.Serve(scripted.Config{Func: r20Answer, Latency: latency, Pace: -1, Chunk: -1, NoCheck: true})
	var peaks []usage
	pid := 0
	begun := time.Now()
	for n := range r20Missions {
		if ctx.Err() != nil {
			return
		}
		code, id := p.Run("run", "--detach", "--format", "json", "--model", "custom/m", "--max-per-agent", fmt.Sprint(r20Workers), "--ask", "allow",
			"--max-tokens", "1000000000", "--max-rounds", "100000", "--max-duration", "3h", fmt.Sprintf("%s (%d)", r20Goal, n+1))
		if code != 0 {
			t.Fatalf("run --detach exits with %d: %s", code, id)
		}
		switch now := r20Host(t, p); {
		case pid == 0:
			pid = now
		case pid != now:
			t.Fatalf("another host has taken over: process %d instead of %d", now, pid)
		}
		peak := r20Watch(t, p, pid, limit)
		rest := r20AtRest(t, pid)
		peak.descriptors, peak.sockets = rest.descriptors, rest.sockets
		t.Logf("mission %d: %+v", n+1, peak)
		peaks = append(peaks, peak)
	}
	if len(p.Model.Requests()) < r20Missions*r20Workers*r20Requests {
		t.Failf("only %d requests were made", len(p.Model.Requests()))
	}
	first, last := peaks[0], peaks[len(peaks)-1]
	t.Figure("missions", r20Missions)
	t.Figure("requests", len(p.Model.Requests()))
	t.Figure("MiB, first and last", fmt.Sprintf("%.0f, %.0f", first.mib, last.mib))
	t.Figure("descriptors at rest", fmt.Sprintf("%d, %d", first.descriptors, last.descriptors))
	t.Figure("sockets at rest", fmt.Sprintf("%d, %d", first.sockets, last.sockets))
	t.Figure("threads", fmt.Sprintf("%d, %d", first.threads, last.threads))
	for _, peak := range peaks {
		if peak.mib > r20MiB {
			t.Failf("%.0f MiB are resident, more than %d", peak.mib, r20MiB)
		}
		if most := r20Workers + r20Slack; peak.sockets > most { // how many connections are kept is random
			t.Failf("an idle host holds %d sockets, more than %d", peak.sockets, most)
		}
	}
	for _, wrong := range grown(first, last) {
		t.Failf("%s", wrong)
	}
	n := goroutines(t, p, pid)
	t.Figure("goroutines at the end", n)
	t.Figure("in all", time.Since(begun))
	if n > r20Idle {
		t.Failf("%d goroutines are left in an idle host", n)
	}
}

// grown reports what has grown.
func grown(first, last usage) (wrong []string) {
	if last.mib > first.mib*r20Flat+r20Swing {
		wrong = append(wrong, fmt.Sprintf("resident memory has grown from %.0f to %.0f MiB", first.mib, last.mib))
	}
	for _, one := range []struct {
		what     string
		from, to int
	}{{"descriptors", first.descriptors, last.descriptors}, {"threads", first.threads, last.threads}} {
		if most := int(math.Ceil(float64(one.from) * r20Flat)); one.to > max(most, one.from+r20Slack) {
			wrong = append(wrong, fmt.Sprintf("%s have grown from %d to %d", one.what, one.from, one.to))
		}
	}
	return wrong
}

// r20AtRest returns how many descriptors and sockets an idle host holds: the minimum over a while, as it may be closing some.
func r20AtRest(t *T, pid int) usage {
	fewest := usage{descriptors: math.MaxInt, sockets: math.MaxInt}
	for end := time.Now().Add(r20Rest); time.Now().Before(end) && t.ctx.Err() == nil; time.Sleep(r20Every) { // another process is watched
		now, err := usageOf(pid)
		if err != nil {
			t.Failf("the host is gone: %v", err)
			break
		}
		fewest.descriptors, fewest.sockets = min(fewest.descriptors, now.descriptors), min(fewest.sockets, now.sockets)
	}
	return fewest
}

// r20Watch follows the newest mission to its end and returns its host's peak memory and threads.
func r20Watch(t *T, p *project, pid int, limit time.Duration) (peak usage) {
	c := p.Start("attach", "--format", "json")
	for deadline := time.Now().Add(limit); !c.Ended() && time.Now().Before(deadline) && t.ctx.Err() == nil; {
		now, err := usageOf(pid)
		if err != nil {
			t.Failf("the host is gone: %v", err)
			break
		}
		peak.mib, peak.threads = max(peak.mib, now.mib), max(peak.threads, now.threads)
		time.Sleep(r20Every) // another process is watched
	}
	if code := c.Wait(t, waitLimit); code != 0 {
		t.Failf("attach exits with %d: %s", code, lastLines(c.Stderr(), 3))
	}
	told := p.Told(c)
	done := 0
	for _, e := range told {
		if e.Type == centurion.EventTaskCompleted {
			done++
		}
	}
	if done != r20Workers {
		t.Failf("%d of %d tasks are completed", done, r20Workers)
	}
	return peak
}

// r20Host returns the process that hosts the project.
func r20Host(t *T, p *project) int {
	var owner struct{ PID int }
	t.Must(json.Unmarshal([]byte(readAll(filepath.Join(filepath.Dir(p.Database()), "owner.json"))), &owner))
	return owner.PID
}

// usageOf reads a process's usage from the kernel.
func usageOf(pid int) (usage, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return usage{}, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return usage{}, err
	}
	var u usage
	for _, fd := range fds {
		switch to, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); {
		case err != nil: // closed meanwhile
		case strings.HasPrefix(to, "socket:"):
			u.sockets++
		default:
			u.descriptors++
		}
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n := 0
		_, _ = fmt.Sscan(value, &n) // not a number: stays zero
		switch name {
		case "VmRSS":
			u.mib = float64(n) / 1024
		case "Threads":
			u.threads = n
		}
	}
	return u, nil
}

// goroutines quits the host, so that the runtime lists its goroutines in the log, and counts them.
func goroutines(t *T, p *project, pid int) int {
	log := filepath.Join(filepath.Dir(p.Database()), "host.log")
	before := len(readAll(log))
	host, err := os.FindProcess(pid)
	t.Must(err)
	t.Must(host.Signal(syscall.SIGQUIT))
	if left := p.gone(waitLimit); len(left) > 0 {
		t.Failf("left behind: %q", left)
	}
	text := readAll(log)[before:]
	n := countGoroutines(text)
	if n == 0 {
		t.Failf("the host was quit and has not listed its goroutines: %s", lastLines(text, 3))
	}
	return n
}

// countGoroutines counts the listed goroutines without those of idle connections to a provider, which are kept on purpose and limited.
func countGoroutines(text string) (n int) {
	for one := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(one, "goroutine ") && !strings.Contains(one, "net/http.(*persistConn)") {
			n++
		}
	}
	return n
}

// r20Answer is the model: every worker makes the same number of requests, with calls of all kinds.
func r20Answer(r scripted.Request) scripted.Answer {
	if r.Agent() == "commander" {
		if r.Step() > 1 {
			return scripted.Answer{Say: "I wait."}
		}
		var calls []scripted.Call
		for i := range r20Workers {
			calls = append(calls, tool("delegate_task", map[string]any{"agent": "worker", "description": "Work on " + item(i), "prompt": "You are " + item(i) + "."}))
		}
		return scripted.Answer{Say: "I delegate.", Calls: calls}
	}
	step := r.Step()
	if step >= r20Requests {
		return scripted.Answer{Say: "I have worked for a long time."}
	}
	_, rest, _ := strings.Cut(r.First(), "You are T")
	number, _, _ := strings.Cut(rest, ".")
	call := tool("ls", map[string]any{"path": "."})
	switch {
	case step == r20Requests/2:
		call = tool("bash", map[string]any{"command": "true " + number, "description": "Work"})
	case step%3 == 0:
		call = tool("read", map[string]any{"filePath": "in.txt"})
	case step%3 == 1:
		call = tool("write", map[string]any{"filePath": "out/T" + number + ".txt", "content": fmt.Sprintf("step %d\n", step)})
	}
	return scripted.Answer{Say: "I work.", Calls: []scripted.Call{call}}
}
