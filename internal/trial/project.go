package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/store"
)

// waitLimit is how long a trial waits for something that must happen and whose time is not under test: it ends what hangs. A slow, busy
// machine may need many times longer than usual.
const waitLimit = 5 * time.Minute

// project is a working directory with its own home, state directory and model. The exported fields may be changed before a command is
// started, for example to put the state on another disk.
type project struct {
	Root  string // contains everything of the project
	Dir   string // the project directory
	Home  string // HOME
	State string // CENTURION_HOME
	Bin   string // the program
	Env   []string
	Model *scripted.Model

	t   *T
	out string // output of commands
	url string

	mu       sync.Mutex
	children []*process
	waits    guard.Group
	models   []*scripted.Model
}

// Serve starts a scripted model on loopback, replacing the previous one. The program reaches it as custom/m.
func (p *project) Serve(c scripted.Config) *scripted.Model {
	p.Model = scripted.New(c)
	url, err := p.Model.Serve()
	p.t.Must(err)
	p.url = url
	p.models = append(p.models, p.Model)
	return p.Model
}

// Script serves a scenario, see package scripted.
func (p *project) Script(yaml string) *scripted.Model {
	s, err := scripted.Parse("scenario", []byte(yaml))
	p.t.Must(err)
	return p.Serve(scripted.Config{Scenario: s})
}

// environ is the environment of the project's commands; of this process's own it contains only PATH.
func (p *project) environ() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home, "CENTURION_HOME=" + p.State, "TMPDIR=" + os.TempDir(), "TERM=xterm-256color",
		"OPENAI_BASE_URL=" + p.url,
	}, p.Env...)
}

// process is a running or finished command.
type process struct {
	cmd   *exec.Cmd
	start time.Time
	out   string // the file with its standard output
	err   string // the file with its standard error
	done  chan struct{}
	ended time.Time // set before done is closed

	reading sync.Mutex // protects the fields below
	read    int64      // bytes of out that were read as events
	told    []centurion.Event
}

// Start starts the program in the background, in its own process group. Its output goes to files, so that nothing it printed is lost.
func (p *project) Start(args ...string) *process { return p.StartWith(nil, args...) }

// StartWith starts it after changing the command, such as its files or environment.
func (p *project) StartWith(change func(*exec.Cmd), args ...string) *process {
	cmd := exec.Command(p.Bin, args...)
	cmd.Dir, cmd.Env = p.Dir, p.environ()
	inGroup(cmd)
	p.mu.Lock()
	name := filepath.Join(p.out, strconv.Itoa(len(p.children)))
	c := &process{cmd: cmd, out: name + ".out", err: name + ".err", done: make(chan struct{})}
	p.children = append(p.children, c)
	p.mu.Unlock()
	stdout, err := os.Create(c.out)
	p.t.Must(err)
	defer stdout.Close()
	stderr, err := os.Create(c.err)
	p.t.Must(err)
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if change != nil {
		change(cmd)
	}
	c.start = time.Now()
	p.t.Must(cmd.Start())
	p.waits.Go("wait for "+strings.Join(args, " "), func() error {
		_ = cmd.Wait() // ProcessState tells how it ended
		c.ended = time.Now()
		close(c.done)
		return nil
	})
	return c
}

// Run runs the program to its end and returns its exit code and output. Not ending is a failure, and it is killed.
func (p *project) Run(args ...string) (int, string) {
	c := p.Start(args...)
	return c.Wait(p.t, waitLimit), c.Stdout()
}

// Wait waits for the end of a process and returns its exit code, -9 after SIGKILL. Not ending in time is a failure, and it is killed.
func (c *process) Wait(t *T, limit time.Duration) int {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		t.Failf("%s did not end within %s; the end of what it printed:\n%s\n%s", strings.Join(c.cmd.Args[1:], " "), limit, lastLines(c.Stdout(), 3), lastLines(c.Stderr(), 3))
		c.Kill()
	case <-t.ctx.Done():
		c.Kill()
	}
	return c.Code()
}

// Code returns the exit code of a finished process, or minus the number of the signal that ended it.
func (c *process) Code() int {
	if ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// Ended reports whether it has ended.
func (c *process) Ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the process itself, not to its group.
func (c *process) Signal(s os.Signal) error { return c.cmd.Process.Signal(s) }

// Kill kills only the process with SIGKILL and waits until it is gone. Its children are up to the program.
func (c *process) Kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.done
}

// Stdout returns its output so far.
func (c *process) Stdout() string { return readAll(c.out) }

// Stderr returns its standard error so far.
func (c *process) Stderr() string { return readAll(c.err) }

// Events returns the JSON lines printed so far. An incomplete last line does not count. Only new output is read: waiters call it often,
// and the machine is there for the trial.
func (c *process) Events() ([]centurion.Event, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	f, err := os.Open(c.out)
	if err != nil {
		return slices.Clip(c.told), nil // it was not started, or its project is gone
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, c.read, math.MaxInt64-c.read))
	if err != nil {
		return slices.Clip(c.told), err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	more, err := parseEvents(string(b))
	if err != nil {
		return slices.Concat(c.told, more), err
	}
	c.told, c.read = append(c.told, more...), c.read+int64(len(b))
	return slices.Clip(c.told), nil
}

func parseEvents(text string) ([]centurion.Event, error) {
	var all []centurion.Event
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e centurion.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return all, fmt.Errorf("not a JSON line: %q: %w", line, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Until waits until it has printed text or has ended, and reports which.
func (c *process) Until(t *T, text string, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for time.Now().Before(deadline) && t.ctx.Err() == nil {
		ended := c.Ended()
		if b, err := os.ReadFile(c.out); err == nil && bytes.Contains(b, []byte(text)) {
			return true
		}
		if ended {
			return false
		}
		time.Sleep(2 * time.Millisecond) // another process writes it
	}
	return false
}

// Database returns the path of the project's state file, empty if there is none.
func (p *project) Database() string {
	found := ""
	_ = filepath.WalkDir(p.State, func(path string, d fs.DirEntry, err error) error { // what is not there is not found
		if err == nil && d.Name() == "centurion.db" {
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// left lists the processes with the project's state directory in their environment, or working inside the project: its commands, and
// their children.
func (p *project) left() []string {
	var all []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd")) // an ended one has none
		inside := cwd == p.Dir || strings.HasPrefix(cwd, p.Dir+string(filepath.Separator))
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if !inside && !bytes.Contains(env, []byte("CENTURION_HOME="+p.State+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(line) > 0 { // a zombie has none
			all = append(all, filepath.Base(dir)+" "+string(bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '})))
		}
	}
	return all
}

// children lists the processes whose parent is pid.
func children(pid int) []string {
	var all []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat := readAll(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(stat, ") ") // the name before may contain anything
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(pid) {
			all = append(all, filepath.Base(dir))
		}
	}
	return all
}

// commandsOf lists the children of a host, with those of its helpers, which start its confined commands.
func commandsOf(host int) (all []string) {
	for _, pid := range children(host) {
		all = append(all, pid)
		if n, err := strconv.Atoi(pid); err == nil {
			all = append(all, children(n)...)
		}
	}
	return all
}

// close ends everything that the project still runs.
func (p *project) close() {
	for _, c := range p.children {
		if c.cmd.Process != nil {
			if !c.Ended() {
				endGroup(c.cmd.Process.Pid)
			}
		}
	}
	for _, line := range p.left() {
		word, _, _ := strings.Cut(line, " ")
		if pid, err := strconv.Atoi(word); err == nil {
			endProcess(pid) // it carries the name of our scratch directory
		}
	}
	_ = p.waits.Wait() // they return nil
	for _, m := range p.models {
		_ = m.Close() // a client that was killed may have left a connection
	}
}

// undone says why the newest mission's tasks are not done: the error of each failed one, or what it waits for.
func (p *project) undone(ctx context.Context) string {
	db, err := store.Open(ctx, p.Database())
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	missions, err := db.Missions(ctx)
	if err != nil || len(missions) == 0 {
		return fmt.Sprintf("%d missions: %v", len(missions), err)
	}
	tasks, err := db.Tasks(ctx, missions[0].ID)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, t := range tasks {
		switch {
		case t.Status == centurion.TaskCompleted:
		case t.Error != nil:
			fmt.Fprintf(&b, "%s %s is %s at its attempt %d, returned %d times: %s: %s\n", t.Item, t.ID, t.Status, t.Attempt, t.Returns, t.Error.Kind, t.Error.Message)
		default:
			fmt.Fprintf(&b, "%s %s is %s: %s\n", t.Item, t.ID, t.Status, t.Reason)
		}
	}
	return b.String()
}

func readAll(file string) string {
	b, _ := os.ReadFile(file) // what is not there is empty
	return string(b)
}

// lastLines returns the end of a text.
func lastLines(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
