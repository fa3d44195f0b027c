//go:build unix && !linux

package sandbox

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// scan lists the processes of this user with the entry mark in their environment, except this process and its ancestors, as far as ps
// shows it.
func scan(ctx context.Context, mark string) ([]Process, error) {
	show := "-axeww"
	if runtime.GOOS == "darwin" {
		show = "-axEww"
	}
	cmd := exec.CommandContext(ctx, "ps", show, "-o", "pid=,ppid=,uid=,command=")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var found []Process
	parents := map[int]int{}
	for line := range bytes.Lines(out) {
		pid, parent, user, command, ok := psLine(string(line))
		if !ok {
			continue
		}
		parents[pid] = parent
		if user == os.Geteuid() && slices.Contains(strings.Fields(command), mark) {
			found = append(found, Process{PID: pid, Command: commandLine(command)})
		}
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !spared[pid]; pid = parents[pid] {
		spared[pid] = true
	}
	return slices.DeleteFunc(found, func(p Process) bool { return spared[p.PID] }), nil
}

// psLine parses a line of ps: three numbers, then the command with its environment.
func psLine(line string) (pid, parent, user int, command string, ok bool) {
	rest := line
	for _, n := range []*int{&pid, &parent, &user} {
		word, after, found := strings.Cut(strings.TrimLeft(rest, " "), " ")
		v, err := strconv.Atoi(word)
		if !found || err != nil {
			return 0, 0, 0, "", false
		}
		*n, rest = v, after
	}
	return pid, parent, user, strings.TrimSpace(rest), true
}

// marked trusts the recent scan: another ps takes longer than the reuse of a pid.
func marked(int, string) bool { return true }
