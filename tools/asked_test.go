package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/permission"
)

// What a shell command asks for: its own words, and each path outside that they do not name, seen from where it runs.
func TestBashAsksForPathsOutside(t *testing.T) {
	b := newBench(t)
	b.Runner = &runner{}
	b.put("sub/deep/f", "x")
	b.gate.rules = []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
	up := filepath.ToSlash(filepath.Dir(b.dir))
	for _, tt := range []struct {
		command, workdir string
		patterns         []string
		always           string // one of what an answer of always allows
	}{
		{"cp f /outside/at", "", []string{"cp f /outside/at"}, ""},
		{"make > /outside/log", "", []string{"make", OutsidePrefix + "/outside/log"}, ""},
		{"cp f ../../../up", "sub/deep", []string{"cp f ../../../up", OutsidePrefix + up + "/up"}, ""},
		{"make > ../log; cat ../../top", "sub/deep", []string{"make", "cat ../../top"}, ""},
		{"cp f ./in", "sub/deep", []string{"cp f ./in"}, ""},
		{"git log; go test ./... > /outside/log", "", []string{"git log", "go test ./...", OutsidePrefix + "/outside/log"}, OutsidePrefix + "/outside/*"},
		{"if", "", []string{"if"}, ""},
	} {
		b.gate.asked = nil
		b.must("bash", args{"command": tt.command, "workdir": tt.workdir, "description": "try it"})
		a := b.gate.asked[len(b.gate.asked)-1]
		wantList(t, tt.command, a.Patterns, tt.patterns...)
		if tt.always != "" && !strings.Contains(strings.Join(a.Always, "\n"), tt.always) {
			t.Errorf("%s: always allows %q", tt.command, a.Always)
		}
		want(t, "command told", a.Metadata["command"], any(tt.command))
		want(t, "words told", a.Metadata["description"], any("try it"))
	}
	tl := tool(t, "bash")
	for in, readOnly := range map[string]bool{`{"command": "ls"}`: true, `{"command": "rm f"}`: false, `{"command": "ls", "workdir": "sub"}`: false, `{"command": "cat ../f"}`: false} {
		want(t, in, tl.Effect(json.RawMessage(in)).ReadOnly, readOnly)
	}
}

// Each end of a background command is told in its own words, and an exit code only where it has one.
func TestBackgroundStates(t *testing.T) {
	for status, tt := range map[BackgroundStatus]struct {
		code int
		want string
		exit bool
	}{
		BackgroundRunning:  {0, "bg_1 has been running for 3s", false},
		BackgroundExited:   {0, "bg_1 has ended with exit code 0 after 3s", true},
		BackgroundKilled:   {-1, "bg_1 was killed after 3s: why", false},
		BackgroundTimedOut: {-1, "bg_1 reached its time limit and was killed after 3s", false},
		BackgroundFailed:   {0, "bg_1 failed: why", false},
		BackgroundGone:     {0, "bg_1 does not run any more", false},
	} {
		c := BackgroundCommand{ID: "bg_1", Script: "make", Status: status, ExitCode: tt.code, Reason: "why", Runtime: 3 * time.Second, Bytes: 5}
		r := looked(c)
		says(t, r.Output, tt.want, "(make)")
		if _, has := r.Metadata["exit"]; has != tt.exit {
			t.Errorf("%s: %+v", status, r.Metadata)
		}
		if status != BackgroundGone {
			says(t, r.Output, "no new output, 5 bytes in all")
		}
		c.Output = "new\n"
		says(t, looked(c).Output, "new output, of 5 bytes in all:\nnew")
	}
	says(t, BackgroundCommand{ID: "bg_1", Status: BackgroundExited, ExitCode: -1}.State(), "was ended by a signal")
	says(t, looked(BackgroundCommand{ID: "bg_1", Status: BackgroundExited}).Output, "no output")
}

// What a file tool asks for names the file as the model does and as it is, and opens no more than its directory.
func TestFilesAreAskedForByBothNames(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	if real, err := filepath.EvalSymlinks(outside); err == nil {
		outside = real
	}
	b.put("real.txt", "a\n")
	if err := os.Symlink("real.txt", filepath.Join(b.dir, "link.txt")); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip("links need a right on Windows:", err)
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("a\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	b.gate.rules = []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
	asked := func(name string, in args) []string {
		b.gate.asked = nil
		b.must(name, in)
		return b.gate.permissions()
	}
	at := filepath.ToSlash(filepath.Join(outside, "f"))
	wantList(t, "read", asked("read", args{"filePath": "link.txt"}), "read real.txt,link.txt")
	wantList(t, "edit", asked("edit", args{"filePath": "link.txt", "oldString": "a", "newString": "b"}), "edit real.txt,link.txt")
	wantList(t, "outside", asked("read", args{"filePath": at}), "external_directory "+at, "read "+at)
	wantList(t, "opened", b.gate.asked[0].Always, filepath.ToSlash(outside)+"/*")
	r := b.must("edit", args{"filePath": at, "oldString": "a", "newString": "b"})
	if fi, err := os.Stat(filepath.Join(outside, "f")); err != nil || fi.Mode().Perm() != 0o640 || len(r.Files) > 0 {
		t.Errorf("the file outside has mode %v, %v; changed files of the project: %q", fi.Mode(), err, r.Files)
	}
	for in, files := range map[string][]string{"a/b": {"a/b"}, "/a": nil, "../a": nil, "~/a": nil, `c:\a`: nil, "": nil, "./x": {"x"}} {
		wantList(t, in, writes(in).Writes, files...)
	}
}

// Of two calls that write one file the second sees what the first has written, whichever waits; one that is stopped while it
// waits writes nothing.
func TestWritersOfOneFile(t *testing.T) {
	b := newBench(t)
	b.put("f", "one\n")
	b.must("read", args{"filePath": "f"})
	b.gate.rules = []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
	b.gate.then = func(a Access) { // somebody else writes while this call is asked for
		if a.Permission == "edit" {
			b.put("f", "two\n")
		}
	}
	b.refused("edit", args{"filePath": "f", "oldString": "one", "newString": "three"}, centurion.KindConflict, "has changed since you read it", "nothing was written")
	want(t, "file", b.get("f"), "two\n")
	b.gate.then = nil
	b.must("read", args{"filePath": "f"})
	b.must("edit", args{"filePath": "f", "oldString": "two", "newString": "three"})
	b.must("edit", args{"filePath": "f", "oldString": "three", "newString": "four"}) // the file is free again
	b.must("write", args{"filePath": "f", "content": "five\n"})                      // and known as it is
	release, err := b.Writers.hold(t.Context(), filepath.Join(b.dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrCancelled)
	if _, err := b.Writers.hold(ctx, filepath.Join(b.dir, "f")); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("it waits for ever: %v", err)
	}
	release()
	want(t, "file", b.get("f"), "five\n")
}

// What has been seen of a file decides which refusal a change of it gets.
func TestSeenRefusals(t *testing.T) {
	s := &Seen{}
	s.Saw("known", "1")
	s.Saw("none", "")
	for name, tt := range map[string]struct {
		rel, now string
		kind     centurion.Kind
		words    string
	}{
		"new":             {"new", "", "", ""},
		"unread":          {"other", "1", centurion.KindUsage, "you have not read it"},
		"the same":        {"known", "1", "", ""},
		"changed":         {"known", "2", centurion.KindConflict, "has changed since you read it"},
		"deleted":         {"known", "", centurion.KindConflict, "was deleted since you read it"},
		"made by another": {"none", "1", centurion.KindConflict, "was created by"},
		"still not there": {"none", "", "", ""},
	} {
		err := s.Check(tt.rel, tt.now)
		if centurion.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that has a byte order mark and CRLF keeps them, once, and the same text again is nothing to do.
func TestWriteLikeBefore(t *testing.T) {
	for name, tt := range map[string]struct{ old, content, want string }{
		"mark":                {"\uFEFFa\n", "b\n", "\uFEFFb\n"},
		"mark that is given":  {"\uFEFFa\n", "\uFEFFb\n", "\uFEFFb\n"},
		"ends of lines":       {"a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n"},
		"mixed ends of lines": {"a\r\nb\n", "c\nd\n", "c\nd\n"},
		"ends that are given": {"a\r\n", "c\r\nd\n", "c\r\nd\n"},
		"both":                {"\uFEFFa\r\n", "b\n", "\uFEFFb\r\n"},
	} {
		b := newBench(t)
		b.put("f", tt.old)
		b.must("read", args{"filePath": "f"})
		b.must("write", args{"filePath": "f", "content": tt.content})
		want(t, name, b.get("f"), tt.want)
		b.refused("write", args{"filePath": "f", "content": tt.content}, centurion.KindUsage, "already has exactly this content")
	}
}
