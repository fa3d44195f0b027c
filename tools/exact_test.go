package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/tools/web"
)

// hooked is a plugin that answers each hook with an output, or an error.
type hooked struct {
	output string
	err    error
	got    string
}

func (h *hooked) Has(string) bool { return true }
func (h *hooked) Hook(_ context.Context, hook string, input any, output json.RawMessage) (json.RawMessage, []string, error) {
	b, _ := json.Marshal(input)
	h.got = fmt.Sprintf("%s %s %s", hook, b, output)
	return json.RawMessage(h.output), []string{"p"}, h.err
}

// A command gets all that the call has for it: place, variables of plugins, what a person has allowed, limits, and where its output goes.
func TestWholeCommand(t *testing.T) {
	b := newBench(t)
	b.put("sub/f", "x")
	run, back, out := &runner{}, &backer{}, &bytes.Buffer{}
	dialled, changed := "", ""
	b.Runner, b.Background, b.Output, b.Network = run, back, out, true
	b.Connect = func(_ context.Context, address string) (net.Conn, error) {
		dialled += address
		return nil, net.ErrClosed
	}
	b.Agent, b.Mission, b.Task = "worker", "msn_1", "tsk_1"
	b.Changed = func(what string, by []string) { changed += fmt.Sprint(what, by) }
	hook := &hooked{output: `{"env":{"B":"2","A":"1","":"x","C=D":"x","N\u0000":"x","M":"x\u0000"}}`}
	b.Hooks = hook
	dir := filepath.Join(b.dir, "sub")
	b.must("bash", args{"command": "make", "workdir": "sub", "timeout": 1500})
	b.must("run_background", args{"command": "make", "workdir": "sub", "timeout": 1500})
	for what, got := range map[string]centurion.Command{"bash": run.given, "run_background": back.started[0]} {
		expected := centurion.Command{Script: "make", Dir: b.dir, Workdir: "sub", Workspace: b.Workspace.Place().Workspace, Network: true, Env: []string{"A=1", "B=2"}, Timeout: 1500 * time.Millisecond}
		if what == "bash" {
			expected.Output, expected.Keep = out, bashKeep
		}
		if got.Connect == nil {
			t.Fatalf("%s connects to nothing", what)
		}
		_, _ = got.Connect(t.Context(), what+":1 ")
		if got.Connect = nil; !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if !strings.Contains(dialled, "bash:1 ") || !strings.Contains(dialled, "run_background:1 ") || changed != "environment[p]environment[p]" {
		t.Errorf("dialled %s, changed %s", dialled, changed)
	}
	in, _ := json.Marshal(dir)
	want(t, "hook", hook.got, `shell.env {"sessionID":"ses_1","agent":"worker","mission":"msn_1","task":"tsk_1","cwd":`+string(in)+`,"callID":"call_1"} {"env":{}}`)
	hook.err = centurion.ErrCancelled
	b.must("bash", args{"command": "make"})
	if run.given.Env != nil {
		t.Errorf("after an error the variables are %q", run.given.Env)
	}
}

// What is wrong with an input is said of the first few properties, and of the others how many there are.
func TestFaultsInOneLine(t *testing.T) {
	long := strings.Repeat("x", 80)
	for in, words := range map[string]string{
		`{"filePath":"a","a1":1,"b2":1,"c3":1,"d4":1,"e5":1}`:        `read: "a1" is not a property; "b2" is not a property; "c3" is not a property; "d4" is not a property; "e5" is not a property`,
		`{"filePath":"a","a1":1,"b2":1,"c3":1,"d4":1,"e5":1,"f6":1}`: `read: "a1" is not a property; "b2" is not a property; "c3" is not a property; "d4" is not a property; "e5" is not a property; and 1 more`,
		`{"filePath":{"a":"` + long + `"}}`:                          `read: "filePath" is {"a":"` + long[:54] + `… and has to be a string`,
		`{"filePath":"a","limit":null,"offset":[1]}`:                 `read: "offset" is [1] and has to be a whole number`,
	} {
		_, err := Normalize(tool(t, "read"), json.RawMessage(in))
		if err == nil || err.Error() != words || centurion.HintOf(err) != "the arguments are {filePath, offset?, limit?}" {
			t.Errorf("%v (%s)", err, centurion.HintOf(err))
		}
	}
}

// A refusal for a file's version says what to do about it.
func TestSeenHints(t *testing.T) {
	s := &Seen{}
	s.Saw("known", "1")
	s.Saw("none", "")
	for rel, words := range map[string]string{
		"other": "other exists and you have not read it|read it first with the tool read, so that nothing of it is lost unseen",
		"known": "known has changed since you read it; read it again|a command, another's merged work or your own of before may have changed it: make your change in what stands there now",
		"none":  "none was created by someone else meanwhile|read it first",
	} {
		err := s.Check(rel, "2")
		want(t, rel, err.Error()+"|"+centurion.HintOf(err), words)
	}
	want(t, "deleted", centurion.HintOf(s.Check("known", "")), "look with ls or git what happened; read it again if you mean to create it anew")
	s.Saw("known", "2")
	if err := s.Check("known", "2"); err != nil {
		t.Error(err)
	}
	if got := s.known("known", "none", "other"); !reflect.DeepEqual(got, map[string]any{"known": "2", "none": ""}) {
		t.Errorf("known are %v", got)
	}
}

// Writers of other files do not wait for each other, those of one do, in turn.
func TestWritersWait(t *testing.T) {
	w := &Writers{}
	release, err := w.hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.hold(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	var got []string
	done := make(chan error)
	go func() {
		free, err := w.hold(context.Background(), "a")
		got = append(got, "second")
		free()
		done <- err
	}()
	got = append(got, "first")
	release()
	if err := <-done; err != nil || strings.Join(got, " ") != "first second" || len(w.held) != 0 {
		t.Errorf("%v, %v, still held: %v", got, err, w.held)
	}
}

// A long page loses its middle at the ends of lines or letters, and no more is said to be left out than is.
func TestPageWithoutItsMiddle(t *testing.T) {
	e := strings.Repeat("é", 100)
	left := func(n int64) string {
		return fmt.Sprintf("\n\n[… %s left out; it is not kept …]\n\n", centurion.Bytes(n))
	}
	for text, shown := range map[string]string{
		e[:40]:       e[:40],
		e:            e[:20] + left(160) + e[:20],
		e + "x":      e[:20] + left(162) + e[:18] + "x",
		"x" + e:      "x" + e[:18] + left(162) + e[:20],
		e[:41] + "x": e[:20] + left(2) + e[:18] + e[:1] + "x",
		strings.Repeat("a", 17) + "\n" + e + "\n" + strings.Repeat("b", 18): strings.Repeat("a", 17) + left(202) + strings.Repeat("b", 18),
		strings.Repeat("a", 14) + "\n" + e + "\n" + strings.Repeat("b", 12): strings.Repeat("a", 14) + "\n" + e[:4] + left(190) + e[:6] + "\n" + strings.Repeat("b", 12),
	} {
		if got := headTail(text, 20, 20, web.Doc{}); got != shown {
			t.Errorf("got  %q\nwant %q", got, shown)
		}
	}
}
