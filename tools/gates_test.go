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
	"centurion/redact"
	"centurion/tools/web"
)

// What a rule denies is not done, by no tool, and each tool asks under the name that a person's rules use.
func TestEachToolAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		in         args
		permission string
	}{
		"read":        {args{"filePath": "f"}, "read"},
		"ls":          {args{"path": "."}, "list"},
		"glob":        {args{"pattern": "*"}, "glob"},
		"grep":        {args{"pattern": "one"}, "grep"},
		"write":       {args{"filePath": "new", "content": "x"}, "edit"},
		"edit":        {args{"filePath": "f", "oldString": "one", "newString": "x"}, "edit"},
		"bash":        {args{"command": "make"}, "bash"},
		"update_todo": {args{"level": 2}, "todowrite"},
		"ask_user":    {args{"question": "Which?"}, "question"},
	} {
		b, boss := newBoss(t)
		run, asker := &runner{}, &person{}
		b.Runner, b.Asker = run, asker
		b.put("f", "one\n")
		b.gate.rules = []permission.Rule{{Permission: tt.permission, Pattern: "*", Action: permission.Deny}}
		b.refused(name, tt.in, centurion.KindPermission, tt.permission, "denied")
		if run.runs > 0 || len(asker.asked) > 0 || boss.update.Level > 0 || b.get("f") != "one\n" {
			t.Errorf("%s was done although it is denied", name)
		}
		b.gate.rules = []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
		b.gate.asked = nil
		b.must(name, tt.in)
		want(t, name, b.gate.asked[0].Permission, tt.permission)
		if name == "write" {
			want(t, "file", b.get("new"), "x")
		}
	}
	b := newBench(t)
	b.put("f", "one\n")
	b.gate.rules = []permission.Rule{{Permission: "read", Pattern: "f", Action: permission.Deny}}
	b.refused("grep", args{"pattern": "one", "path": "f"}, centurion.KindPermission, "read")
}

// A placeholder that stands for a key of a file is never written over the key, and one that stood there before may be changed.
func TestKeysOfFilesAreKept(t *testing.T) {
	const key, shown = "zq7-0wn-service-key", "[key SERVICE]"
	b := newBench(t)
	b.Keys = redact.New(redact.Key{Name: "SERVICE", Value: key})
	b.put("f", "a\nkey = "+key+"\n")
	b.must("read", args{"filePath": "f"})
	b.refused("write", args{"filePath": "f", "content": "b\nkey = " + shown + "\n"}, centurion.KindPermission, "f has a key that is only shown as "+shown, "leave the key to the person")
	b.refused("edit", args{"filePath": "f", "oldString": "key = " + shown, "newString": "x"}, centurion.KindUsage, shown+", which only stands for a key in f", "which name no key")
	b.refused("edit", args{"filePath": "f", "oldString": "key = " + key, "newString": "key = " + shown}, centurion.KindPermission, "only shown as")
	want(t, "file", b.get("f"), "a\nkey = "+key+"\n")
	b.must("edit", args{"filePath": "f", "oldString": "a\n", "newString": "b\n"})
	want(t, "file", b.get("f"), "b\nkey = "+key+"\n")
	r := b.must("write", args{"filePath": "new", "content": "key = " + shown})
	want(t, "output", r.Output, "created new, 1 line; it has "+shown+" as it stands there, not the key")
	want(t, "without one", b.must("write", args{"filePath": "other", "content": "x\ny"}).Output, "created other, 2 lines")
}

// No file that is not text is changed by edit: what surrounds the text would be damaged.
func TestEditOfBinary(t *testing.T) {
	b := newBench(t)
	b.put("f", "\x7fELF\x00one\x00")
	b.refused("edit", args{"filePath": "f", "oldString": "one", "newString": "two"}, centurion.KindUsage, "f")
	want(t, "file", b.get("f"), "\x7fELF\x00one\x00")
}

// How a command ended is told whole: a limit that it exceeded, and what it was kept from.
func TestCommandTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		result centurion.CommandResult
		want   string
	}{
		"a limit":           {centurion.CommandResult{Output: "a\n", ExitCode: -1, Exceeded: "4 GB of memory"}, "a\nwas killed with everything it had started: it used more than 4 GB of memory, the limit for all commands of a workspace. Use less at a time."},
		"something refused": {centurion.CommandResult{Output: "a\n", Held: "no network"}, "a\n(no network)"},
		"both":              {centurion.CommandResult{Output: "a\n", ExitCode: 3, Held: "no network"}, "a\nexit code 3\n(no network)"},
	} {
		want(t, name, CommandText(tt.result, time.Second), tt.want)
	}
	says(t, looked(BackgroundCommand{ID: "bg_1", Script: "make", Status: BackgroundRunning, Output: "x", Held: "no network"}).Output, "x\n(no network)")
}

// A model is told of a task only what holds: what it waits for, that it ends, and what its files mean.
func TestTaskTexts(t *testing.T) {
	want(t, "waiting", state(centurion.Task{Status: centurion.TaskWaiting, Reason: "after T1, T2"}), "waiting for T1, T2")
	want(t, "after", state(centurion.Task{Status: centurion.TaskFailed, Reason: "after all"}), "failed: after all")
	want(t, "plain", state(centurion.Task{Status: centurion.TaskQueued}), "queued")
	says(t, Overlaps(true), "run one after the other", "its own worktree")
	says(t, Overlaps(false), "run one after the other", "share one directory")
	silent(t, Overlaps(false), "worktree")
	b, boss := newBoss(t)
	boss.tasks = map[string]centurion.Task{"tsk_1": {ID: "tsk_1", Number: 1, Title: "x", Agent: "worker", Status: centurion.TaskRunning}}
	b.Delegator = ending{boss}
	says(t, b.must("cancel_task", args{"task_id": "tsk_1"}).Output, "is being cancelled")
}

// ending is a boss whose tasks take a while to be cancelled.
type ending struct{ *boss }

func (e ending) Cancel(_ context.Context, _ *Call, id, _ string) (centurion.Task, error) {
	return e.find(id)
}

// The schema that a model gets names the agents that it may call, and no option that is not offered.
func TestDelegationTo(t *testing.T) {
	var s struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(DelegationTo([]string{"worker", "tester"}), &s); err != nil {
		t.Fatal(err)
	}
	wantList(t, "agents", s.Properties["agent"].Enum, "worker", "tester")
	if _, there := s.Properties["budget"]; there || len(s.Properties) < 4 {
		t.Errorf("its options are %v", s.Properties)
	}
}

// The middle that is left out of a page begins and ends with whole letters.
func TestHeadTail(t *testing.T) {
	text := strings.Repeat("ü", 50)
	for _, cut := range []int{9, 10} {
		got := headTail(text, cut, cut, web.Doc{File: "x.md"})
		head, rest, _ := strings.Cut(got, "\n\n[… ")
		_, tail, _ := strings.Cut(rest, " …]\n\n")
		if strings.Trim(head, "ü") != "" || strings.Trim(tail, "ü") != "" || len(head) > cut || len(tail) > cut || len(head) < cut-1 {
			t.Errorf("%d: %q", cut, got)
		}
		says(t, got, "all of it stands in .opencode/docs/x.md")
	}
	says(t, headTail(text, 9, 9, web.Doc{}), "it is not kept")
	want(t, "short", headTail("abc", 2, 1, web.Doc{}), "abc")
}

// A wait for a task that fails is an error, not a task that goes on, and a wait that takes too long is told as that.
func TestWaitThatFails(t *testing.T) {
	b, boss := newBoss(t)
	in := args{"agent": "worker", "description": "x", "prompt": "y", "background": false}
	b.Delegator = lost{boss}
	b.refused("delegate_task", in, centurion.KindDisk, "the disk is full")
	b.gate.asked = nil
	b.Delegator = boss
	says(t, b.must("delegate_task", in).Output, "the notice of w9: all done")
}

// lost is a boss that cannot tell how a task ends.
type lost struct{ *boss }

func (l lost) Await(context.Context, *Call, string) (centurion.Task, error) {
	return centurion.Task{}, &centurion.Error{Kind: centurion.KindDisk, Msg: "the disk is full"}
}

// What a repository's own configuration makes git run is looked at before a command that only reads is let through.
func TestScriptPlaceLooksAtGit(t *testing.T) {
	b := newBench(t)
	b.put(".git/HEAD", "ref: refs/heads/main\n")
	b.put(".git/objects/x", "")
	b.put(".git/refs/x", "")
	b.put(".git/config", "[core]\n\tfsmonitor = ./x\n")
	for script, only := range map[string]bool{"git status": false, "ls": true} {
		if s := ScriptPlace(b.Workspace, ".").Parse(script); s.ReadOnly != only {
			t.Errorf("%s only reads: %v (%s)", script, s.ReadOnly, s.Why)
		}
	}
}

// What is at a limit or odd is taken as it is: a note of the most bytes, a pattern over lines, other UTF-16, the home directory alone.
func TestEdgesOfInputs(t *testing.T) {
	b, kept := newBench(t), &book{}
	b.Notebook = kept
	b.must("update_context", args{"note": strings.Repeat("x", maxNote)})
	want(t, "notes", len(kept.got), 1)
	b.put("f.txt", "one\ntwo\n")
	for _, pattern := range []string{"one\ntwo", `one\ntwo`} {
		says(t, b.must("grep", args{"pattern": pattern}).Output, "no line matches in 1 file; a pattern is matched against one line at a time")
	}
	silent(t, b.must("grep", args{"pattern": "three"}).Output, "one line at a time")
	b.put("wide.txt", "\xfe\xff\x00o")
	b.refused("read", args{"filePath": "wide.txt"}, centurion.KindUsage, "UTF-16")
	t.Setenv("HOME", b.dir)
	t.Setenv("USERPROFILE", b.dir)
	for given, at := range map[string]string{"~": b.dir, "~/f.txt": filepath.Join(b.dir, "f.txt"), "~f": "~f", "": "."} {
		got, err := spelt("read", given)
		want(t, given, got, at)
		want(t, given, err, nil)
	}
	(&Seen{}).Recall(centurion.Part{}) // a part without a call tells nothing
}
