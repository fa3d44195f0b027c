package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"centurion/sandbox/confine"
)

// r11Marker is an argument by which the daemons below are found in the list of processes.
const r11Marker = "77771"

// r11Daemons are the ways to outlive the command that starts a process.
var r11Daemons = []string{
	`sleep ` + r11Marker + ` >/dev/null 2>&1 &`,
	`nohup sleep ` + r11Marker + ` >/dev/null 2>&1 &`,
	`setsid sleep ` + r11Marker + ` >/dev/null 2>&1 &`,
	`(setsid sh -c 'sleep ` + r11Marker + ` & exit' >/dev/null 2>&1 &)`,
	`env -i setsid -f sleep ` + r11Marker + ` >/dev/null 2>&1`,
	`(env -i sh -c 'trap "" TERM HUP; setsid sleep ` + r11Marker + ` & sleep ` + r11Marker + ` & wait' >/dev/null 2>&1 &)`,
}

// r11Grace is how long after the end of a host its commands' processes may be seen.
const r11Grace = 200 * time.Millisecond

// r11 lets commands of an agent leave daemons behind, and ends the mission well, by SIGTERM, and by SIGKILL to the host.
func r11(ctx context.Context, t *T) {
	for _, way := range []confine.Way{confine.Full, confine.Files} {
		for name, end := range map[string]func(c *process){
			"a good end": func(*process) {},
			"SIGTERM":    func(c *process) { _ = c.Signal(syscall.SIGTERM); c.Wait(t, waitLimit) },
			"kill -9":    func(c *process) { c.Kill() },
		} {
			if ctx.Err() != nil {
				return
			}
			most, left := 0, 0
			t.outside(func() {
				t.Part(string(way)+" "+name, func(t *T) {
					w := newWild(t)
					var scripts []string
					for i, daemon := range r11Daemons {
						scripts = append(scripts, w.put(fmt.Sprintf("%02d.sh", i), daemon+"\nsleep 0.2")) // it has left its group before that is ended
					}
					w.p.gitInit()
					w.run(way, scripts, func(c *process) {
						most = len(r11Left())
						end(c)
					})
					time.Sleep(r11Grace) // what is under test
					left = len(r11Left())
					r11End()
				})
			})
			t.Figure(string(way)+", "+name, fmt.Sprintf("%d of %d left", left, most))
			if left > 0 {
				t.Failf("%s: %d daemons are left after %s", way, left, name)
			}
			if most < 3 {
				t.Failf("only %d daemons ran, so that this proves little", most)
			}
		}
	}
}

// r11Left lists the daemons that run.
func r11Left() (pids []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if bytes.HasPrefix(line, []byte("sleep\x00"+r11Marker)) {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// r11End ends the daemons that are left, so that the next part starts without them.
func r11End() {
	for _, pid := range r11Left() {
		var n int
		if _, err := fmt.Sscan(strings.TrimSpace(pid), &n); err == nil {
			endProcess(n)
		}
	}
}
