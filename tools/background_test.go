package tools

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/permission"
)

// backer is the orchestrator as far as the background tools see it.
type backer struct {
	all     []BackgroundCommand
	started []centurion.Command
	words   string
	killed  string
	err     error
}

func (k *backer) Start(_ context.Context, _ *Call, c centurion.Command, words string) (BackgroundCommand, error) {
	k.started, k.words = append(k.started, c), words
	return BackgroundCommand{ID: "bg_1", Script: c.Script, Status: BackgroundRunning, PID: 4711}, k.err
}

func (k *backer) Look(_ context.Context, _ *Call, id string) (BackgroundCommand, error) {
	for _, b := range k.all {
		if b.ID == id {
			return b, nil
		}
	}
	return BackgroundCommand{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "you have no background command " + id, Hint: "yours are bg_1"}
}

func (k *backer) List(context.Context, *Call) ([]BackgroundCommand, error) { return k.all, nil }

func (k *backer) Kill(ctx context.Context, c *Call, id string) (BackgroundCommand, error) {
	k.killed = id
	return k.Look(ctx, c, id)
}

// ORCH-52
func TestRunBackground(t *testing.T) {
	b, k := newBench(t), &backer{}
	b.refused("run_background", args{"command": "make"}, centurion.KindPermission, "your role does not start background commands")
	b.Background = k
	b.put("sub/f", "x")
	r := b.must("run_background", args{"command": "make serve"})
	says(t, r.Output, "bg_1 is running, for 5m at most", "ends with your task", "check_background")
	want(t, "title", r.Title, "bg_1: make serve")
	want(t, "id for after a restart", r.Metadata["background"], any("bg_1"))
	want(t, "process", r.Metadata["pid"], any(4711))
	given := k.started[0]
	want(t, "script", given.Script, "make serve")
	want(t, "directory", given.Cwd(), b.dir)
	want(t, "timeout", given.Timeout, 5*time.Minute)
	a := b.gate.asked[0]
	want(t, "permission", a.Permission, "bash")
	want(t, "script that is analysed", a.Script, "make serve")
	wantList(t, "patterns", a.Patterns, "make serve")

	r = b.must("run_background", args{"command": "make", "workdir": "sub", "timeout": "3600000", "description": "build it"})
	want(t, "directory", k.started[1].Cwd(), filepath.Join(b.dir, "sub"))
	want(t, "timeout", k.started[1].Timeout, time.Hour)
	want(t, "words", k.words, "build it")
	want(t, "network", k.started[1].Network, false)
	b.Network = true // a person has allowed it
	b.must("run_background", args{"command": "make"})
	want(t, "network that a person has allowed", k.started[2].Network, true)
	want(t, "title", r.Title, "bg_1: build it")

	b.refused("run_background", args{"command": "make", "timeout": 3600001}, centurion.KindUsage, "timeout")
	b.refused("run_background", args{"command": ""}, centurion.KindUsage, "command")
	b.refused("run_background", args{"command": "ls", "workdir": ".."}, centurion.KindPermission, "outside the project")
	b.refused("run_background", args{"command": "ls", "workdir": "nowhere"}, centurion.KindNotFound, "nowhere does not exist")
	b.gate.rules = []permission.Rule{{Permission: "bash", Pattern: "git push *", Action: permission.Deny}}
	b.refused("run_background", args{"command": "make && git push origin"}, centurion.KindPermission, "git push")
	want(t, "started", len(k.started), 3)
	k.err = &centurion.Error{Kind: centurion.KindConflict, Msg: "8 run already", Hint: "end one"}
	b.refused("run_background", args{"command": "make"}, centurion.KindConflict, "8 run already", "end one")
}

// ORCH-53
func TestCheckBackground(t *testing.T) {
	command := func(b BackgroundCommand) BackgroundCommand {
		b.ID, b.Script, b.Runtime = "bg_1", "make serve\nexit", 12*time.Second
		return b
	}
	tests := []struct {
		name string
		b    BackgroundCommand
		want string
	}{
		{"running", BackgroundCommand{Status: BackgroundRunning}, "bg_1 has been running for 12s (make serve …)\nno output"},
		{"new output", BackgroundCommand{Status: BackgroundRunning, Output: "ready\n", Bytes: 106}, "bg_1 has been running for 12s (make serve …)\nnew output, of 106 bytes in all:\nready"},
		{"nothing new", BackgroundCommand{Status: BackgroundRunning, Bytes: 106}, "bg_1 has been running for 12s (make serve …)\nno new output, 106 bytes in all"},
		{"ended", BackgroundCommand{Status: BackgroundExited, ExitCode: 3}, "bg_1 has ended with exit code 3 after 12s (make serve …)\nno output"},
		{"by a signal", BackgroundCommand{Status: BackgroundExited, ExitCode: -1}, "bg_1 was ended by a signal after 12s (make serve …)\nno output"},
		{"timed out", BackgroundCommand{Status: BackgroundTimedOut}, "bg_1 reached its time limit and was killed after 12s (make serve …)\nno output"},
		{"killed", BackgroundCommand{Status: BackgroundKilled, Reason: "the work of its task had ended"}, "bg_1 was killed after 12s: the work of its task had ended (make serve …)\nno output"},
		{"killed by its session", BackgroundCommand{Status: BackgroundKilled}, "bg_1 was killed after 12s (make serve …)\nno output"},
		{"failed", BackgroundCommand{Status: BackgroundFailed, Reason: "no shell"}, "bg_1 failed: no shell (make serve …)\nno output"},
		{"gone", BackgroundCommand{Status: BackgroundGone}, "bg_1 does not run any more: it ended with the host that started it, or when its mission stopped (make serve …)\n" +
			"what it printed is lost; start it again if it is still needed"},
		{"no UTF-8", BackgroundCommand{Status: BackgroundRunning, Output: "\xff!", Bytes: 1}, "bg_1 has been running for 12s (make serve …)\nnew output, of 1 byte in all:\n\uFFFD!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, k := newBench(t), &backer{all: []BackgroundCommand{command(tt.b)}}
			b.Background = k
			for _, in := range []args{{"id": "bg_1"}, {"id": " bg_1 ", "action": "look"}} {
				r := b.must("check_background", in)
				want(t, "output", r.Output, tt.want)
				want(t, "status", r.Metadata["status"], any(string(tt.b.Status)))
			}
			want(t, "killed", k.killed, "")
			want(t, "output after a kill", b.must("check_background", args{"id": "bg_1", "action": "kill"}).Output, tt.want)
			want(t, "killed", k.killed, "bg_1")
			want(t, "list", b.must("check_background", args{}).Output, strings.SplitN(tt.want, "\n", 2)[0])
			if len(b.gate.asked) > 0 {
				t.Errorf("a look asks for permission: %v", b.gate.permissions())
			}
		})
	}
}

func TestCheckBackgroundOfNothing(t *testing.T) {
	b, k := newBench(t), &backer{}
	b.refused("check_background", args{}, centurion.KindPermission, "your role does not start background commands")
	b.Background = k
	says(t, b.must("check_background", args{}).Output, "you have no background commands", "earlier run of the host")
	b.refused("check_background", args{"id": "bg_2"}, centurion.KindNotFound, "no background command bg_2", "yours are bg_1")
	b.refused("check_background", args{"action": "kill"}, centurion.KindUsage, "kill which command?")
	b.refused("check_background", args{"id": "bg_1", "action": "restart"}, centurion.KindUsage, "action")
	want(t, "killed", k.killed, "")
}

// A script in the background may touch anything at any time, whatever it looks like; looking touches nothing; killing
// touches no file.
func TestBackgroundEffects(t *testing.T) {
	for _, tt := range []struct {
		tool, in         string
		readOnly, hosted bool
	}{
		{"run_background", `{"command":"ls"}`, false, false},
		{"check_background", `{}`, true, false},
		{"check_background", `{"id":"bg_1"}`, true, false},
		{"check_background", `{"id":"bg_1","action":"look"}`, true, false},
		{"check_background", `{"id":"bg_1","action":"kill"}`, false, true},
	} {
		e := tool(t, tt.tool).Effect(json.RawMessage(tt.in))
		if e.ReadOnly != tt.readOnly || e.Hosted != tt.hosted || e.Writes != nil || e.Once || e.Alike != "" {
			t.Errorf("%s %s: %+v", tt.tool, tt.in, e)
		}
	}
}
