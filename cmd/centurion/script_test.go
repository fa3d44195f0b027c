package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.HelperCommand { // of a host in a test's own process
		os.Exit(sandbox.Helper())
	}
	testscript.Main(m, map[string]func(){"centurion": main, "frontend": frontend, "toolserver": toolServer, "nativeplugin": nativePlugin, "acpagent": acpAgent})
}

// patience is how long a script waits for something that must come.
const patience = 20 * time.Second

// quietTime is how long a program that runs may write nothing of what a script waits for: it may build and test a module
// meanwhile, with nothing cached, on a machine with other things to do. A program that has ended is not waited for.
const quietTime = 2 * time.Minute

// TestScripts runs the scripts of testdata/script against the program itself. Beside testscript's own commands they have:
//
//	model [-loose] FILE       serve a scripted model over loopback HTTP; $MODEL is its URL. Requests that a strict
//	                          provider would refuse fail the test, except with -loose
//	code N COMMAND ARG...     run a command, which must exit with N
//	start NAME COMMAND ARG... run a command in the background; its output goes to NAME.out and NAME.err
//	signal NAME INT|KILL...   send signals to a command in the background
//	finish NAME N             wait for a command in the background, which must exit with N (-1: killed)
//	until FILE REGEXP         wait until a file matches, at most until the command in the background whose output it is has ended
//	lines FILE [TYPE]         a file holds JSON lines of events and nothing else; the last one is of TYPE
//	json FILE PATH [VALUE]    what stands at a path (a.b, 0.a, # for a length) of a JSON file; - means that nothing does
//	set NAME FILE PATH        put what stands there into a variable
//	big FILE MB               make a text file of so many megabytes
//	png FILE WIDTH HEIGHT     make an image
//	record FILE               write a mission into the project's state; see record_test.go
//	browse STATUS FILE PATH [FORM]  ask a server for a page; see page_test.go
//	tty STEPS N COMMAND...    run a command on a terminal (Linux); see tty_linux_test.go
func TestScripts(t *testing.T) { scripts(t, "testdata/script") }

// TestPluginScripts runs those that install something with npm.
func TestPluginScripts(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil && os.Getenv("CI") == "" {
		t.Skip("npm is missing")
	} else if err != nil {
		t.Fatal(err)
	}
	scripts(t, "testdata/npm")
}

func scripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": serveModel, "code": runCode, "start": startCommand, "signal": signalCommand, "finish": finishCommand,
			"until": until, "lines": eventLines, "json": jsonPath, "set": setVariable, "big": bigFile, "tty": tty, "png": pngFile, "record": record, "browse": browse,
		},
	})
}

// condition knows localmodel: a model server answers on one of the usual ports of this machine.
func condition(cond string) (bool, error) {
	if cond != "localmodel" {
		return false, fmt.Errorf("no condition %q", cond)
	}
	for _, port := range []string{"11434", "1234", "8080"} {
		if c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
			return true, c.Close()
		}
	}
	return false, nil
}

// setup gives every script a home, a state directory and a project of its own, and nothing of the machine's.
func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	cache, err := os.UserCacheDir() // what scripts build is the same everywhere
	if err != nil {
		return err
	}
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"DOCS": docs, "HOME": home, "USERPROFILE": home, "CENTURION_HOME": filepath.Join(env.WorkDir, "state"),
		"XDG_CONFIG_HOME": filepath.Join(home, ".config"), "XDG_DATA_HOME": filepath.Join(home, ".local", "share"),
		"XDG_STATE_HOME": filepath.Join(home, ".local", "state"), "XDG_CACHE_HOME": filepath.Join(home, ".cache"),
		"XDG_RUNTIME_DIR": "", "DBUS_SESSION_BUS_ADDRESS": "", "TERM": "xterm-256color", "GOCOVERDIR": os.Getenv("GOCOVERDIR"),
		"OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "GOCACHE": cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")), "GOTOOLCHAIN": "local",
		"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": filepath.Join(home, ".gitconfig"),
		"GORACE": "atexit_sleep_ms=10", // the race detector would make every command take a second more
	} {
		env.Setenv(name, value)
	}
	for _, dir := range []string{home, filepath.Join(env.WorkDir, "p")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	env.Values[background] = map[string]*running{}
	env.Defer(func() { endLeftovers(env.WorkDir) })
	return nil
}

// endLeftovers ends what a script has left running: background hosts, and commands of hosts that it killed.
func endLeftovers(dir string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // there is none but on Linux
	for _, path := range all {
		vars, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(vars, []byte("="+dir+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if p, ferr := os.FindProcess(pid); err == nil && ferr == nil && pid != os.Getpid() {
			_ = p.Kill() // it may have ended
		}
	}
}

// serveModel starts a scripted model that lives as long as the script. Every script that names no other provider reaches
// it as custom/NAME.
func serveModel(ts *testscript.TestScript, neg bool, args []string) {
	loose := len(args) > 1 && args[0] == "-loose"
	if loose {
		args = args[1:]
	}
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model [-loose] FILE")
	}
	scenario, err := scripted.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	m := scripted.New(scripted.Config{Scenario: scenario})
	url, err := m.Serve()
	ts.Check(err)
	ts.Setenv("MODEL", url)
	ts.Setenv("OPENAI_BASE_URL", url)
	ts.Defer(func() {
		_ = m.Close() // a client that was killed may have left a connection
		if v := m.Violations(); len(v) > 0 && !loose {
			ts.Fatalf("the model was sent requests that a strict provider refuses: %v", v)
		}
	})
}

func runCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARG...")
	}
	want := number(ts, args[0])
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("it exited with %d, not %d", got, want)
	}
}

// backgroundKey is where a script's running commands are.
type backgroundKey struct{}

var background backgroundKey

type running struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// over reports whether it has ended.
func (r *running) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func startCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND ARG...")
	}
	path := args[1]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, args[1]); isFile(p) {
			path = p
			break
		}
	}
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	out, err := os.Create(filepath.Join(ts.Getenv("WORK"), args[0]+".out"))
	ts.Check(err)
	errs, err := os.Create(filepath.Join(ts.Getenv("WORK"), args[0]+".err"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	r := &running{cmd: cmd, done: make(chan struct{})}
	ts.Value(background).(map[string]*running)[args[0]] = r
	go func() { // a test's own goroutine; it ends with the process that it waits for
		_ = cmd.Wait() // how it ended stands in ProcessState
		close(r.done)
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-r.done
		if err := errors.Join(out.Close(), errs.Close()); err != nil {
			ts.Logf("%v", err)
		}
	})
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// scriptVariables are the variables that scripts hand to the program.
var scriptVariables = []string{"AGENT_STATE", "PATH", "HOME", "USERPROFILE", "CENTURION_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "TERM", "NO_COLOR", "VISUAL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "WORK", "GOCOVERDIR", "GORACE", "GOCACHE", "GOTOOLCHAIN", "SystemRoot"}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range scriptVariables {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func job(ts *testscript.TestScript, name string) *running {
	r := ts.Value(background).(map[string]*running)[name]
	if r == nil {
		ts.Fatalf("nothing was started as %s", name)
	}
	return r
}

func signalCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: signal NAME INT|KILL|TERM|STOP|CONT|HUP...")
	}
	for i, name := range args[1:] {
		sig := map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill, "TERM": syscall.SIGTERM}[name]
		if sig == nil {
			sig = jobSignals[name]
		}
		if sig == nil {
			ts.Fatalf("no signal %s", name)
		}
		if i > 0 { // two equal signals at the same moment are one
			time.Sleep(50 * time.Millisecond)
		}
		if err := job(ts, args[0]).cmd.Process.Signal(sig); i == 0 || !errors.Is(err, os.ErrProcessDone) { // a second one may come too late
			ts.Check(err)
		}
	}
}

func finishCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: finish NAME N")
	}
	r := job(ts, args[0])
	select {
	case <-r.done:
	case <-time.After(patience):
		ts.Fatalf("%s has not ended after %s:\n%s", args[0], patience, ts.ReadFile(filepath.Join(ts.Getenv("WORK"), args[0]+".out")))
	}
	if got := r.cmd.ProcessState.ExitCode(); got != number(ts, args[1]) {
		ts.Fatalf("%s exited with %d, not %s:\n%s\n%s", args[0], got, args[1], ts.ReadFile(filepath.Join(ts.Getenv("WORK"), args[0]+".out")),
			ts.ReadFile(filepath.Join(ts.Getenv("WORK"), args[0]+".err")))
	}
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	path := filepath.Join(ts.Getenv("WORK"), args[0])
	writer := ts.Value(background).(map[string]*running)[strings.TrimSuffix(args[0], filepath.Ext(args[0]))]
	deadline, seen := time.Now().Add(quietTime), 0
	for {
		over := writer != nil && writer.over() // asked first: what it wrote last is looked at
		b, err := os.ReadFile(path)
		if err == nil && re.Match(b) {
			return
		}
		if len(b) != seen { // who still writes is at work, however slow the machine is
			deadline, seen = time.Now().Add(quietTime), len(b)
		}
		if over || time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond) // another process writes it
	}
	b, _ := os.ReadFile(path)
	ts.Fatalf("%s does not match %s:\n%s", args[0], args[1], b)
}

// Contract «JSON lines»: one object a line and nothing else, each with seq, time, type and data, seq increasing, and
// exactly one event that ends the run, at the end.
func eventLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: lines FILE [TYPE]")
	}
	text := ts.ReadFile(args[0])
	last, seq := "", 0.0
	if text != "" && !strings.HasSuffix(text, "\n") {
		ts.Fatalf("the last line is not ended")
	}
	ends := 0
	for line := range strings.Lines(text) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			ts.Fatalf("not a JSON object: %s", line)
		}
		n, ok := e["seq"].(float64)
		if !ok || n <= seq {
			ts.Fatalf("seq is missing or does not increase after %v: %s", seq, line)
		}
		seq = n
		when, _ := e["time"].(string)
		if at, err := time.Parse(time.RFC3339Nano, when); err != nil || time.Since(at).Abs() > time.Hour {
			ts.Fatalf("time is not the time in RFC 3339: %s", line)
		}
		if last, ok = e["type"].(string); !ok || last == "" {
			ts.Fatalf("type is missing: %s", line)
		}
		if _, ok := e["data"].(map[string]any); !ok {
			ts.Fatalf("data is no object: %s", line)
		}
		if id, _ := e["mission"].(string); !strings.HasPrefix(id, "msn_") {
			ts.Fatalf("mission is missing: %s", line)
		}
		if slices.Contains([]string{"mission.completed", "mission.failed", "mission.paused", "mission.blocked", "mission.cancelled"}, last) {
			ends++
		}
	}
	if len(args) == 2 && (last != args[1] || ends != 1) {
		ts.Fatalf("the last line is %q, not %q, and %d lines end the mission, not 1", last, args[1], ends)
	}
}

// valueAt finds a value in JSON text; for a file of events the last line is meant.
func valueAt(ts *testscript.TestScript, file, path string) (any, bool) {
	text := ts.ReadFile(file)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &v); err != nil {
			ts.Fatalf("%s is no JSON: %s", file, text)
		}
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case []any:
			if key == "#" {
				return float64(len(at)), true
			}
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return nil, false
			}
			v = at[i]
		case map[string]any:
			var ok bool
			if v, ok = at[key]; !ok {
				return nil, false
			}
		default:
			return nil, key == "" && v != nil
		}
	}
	return v, true
}

func shownValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func jsonPath(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json FILE PATH [REGEXP]")
	}
	v, ok := valueAt(ts, args[0], args[1])
	if len(args) == 2 {
		if ok == neg {
			ts.Fatalf("%s in %s: present is %t", args[1], args[0], ok)
		}
		return
	}
	if !ok {
		ts.Fatalf("%s has no %s:\n%s", args[0], args[1], ts.ReadFile(args[0]))
	}
	re, err := regexp.Compile("^(?:" + args[2] + ")$")
	ts.Check(err)
	if re.MatchString(shownValue(v)) == neg {
		ts.Fatalf("%s of %s is %s", args[1], args[0], shownValue(v))
	}
}

func setVariable(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: set NAME FILE PATH")
	}
	v, ok := valueAt(ts, args[1], args[2])
	if !ok {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], shownValue(v))
}

func bigFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: big FILE MB")
	}
	line := []byte("a line of text that is sixty-four bytes long with its line end.\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat(line, number(ts, args[1])<<20/len(line)), 0o600))
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// The second signal ends at once what takes its time; the third, or too long a time after it, ends the process, whatever
// still works.
func TestHeed(t *testing.T) {
	for _, third := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			signals, done, exited := make(chan os.Signal), make(chan struct{}), make(chan int)
			ended, urged := 0, 0
			var g guard.Group
			g.Go("heed", func() error {
				handleSignals(signals, done, func() { ended++ }, func() { urged++ }, func(code int) {
					exited <- code
					runtime.Goexit() // a process that exits does nothing after it
				})
				return nil
			})
			signals <- os.Interrupt
			synctest.Wait()
			if ended != 1 || urged != 0 {
				t.Errorf("the first signal ends %d times and hurries %d times", ended, urged)
			}
			signals <- os.Interrupt
			synctest.Wait()
			if ended != 1 || urged != 1 {
				t.Errorf("the second signal ends %d times and hurries %d times", ended-1, urged)
			}
			start, want := time.Now(), forceTimeout
			if third {
				signals <- os.Interrupt
				want = 0
			}
			if code, took := <-exited, time.Since(start); code != exitInterrupted || took != want {
				t.Errorf("it exits with %d after %s, not with %d after %s", code, took, exitInterrupted, want)
			}
		})
	}
}

// Ctrl-C in a terminal in raw mode is a key: it does what the signal does.
func TestInterruptible(t *testing.T) {
	urged := make(chan struct{})
	ctx, interrupt, stop := interruptible(t.Context(), func() { close(urged) }, func(code int) { t.Errorf("it exits with %d", code) })
	defer stop()
	interrupt()
	<-ctx.Done()
	if cause := context.Cause(ctx); exitCode(cause) != exitInterrupted {
		t.Errorf("the first interrupt ends the context with %v, which exits with %d", cause, exitCode(cause))
	}
	interrupt()
	<-urged
}
