package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/guard"
	"centurion/permission"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script answers the requests of one role.
type script func(scripted.Request) scripted.Answer

// rig is a project with everything real but the model, the shell and the system's file watch: a bubble's clock does not
// move while a goroutine waits for the system.
type rig struct {
	t     testing.TB
	ctx   context.Context
	cfg   Config
	dir   string
	ws    *workspace.Workspace
	store *store.Store
	model *scripted.Model
	http  *http.Client
	shell *shell
	host  *Host
	poke  chan struct{} // a person has touched the plan
	runs  int           // of missions, each of which has one last event
}

// bubble runs a test with a rig in which time is faked.
func bubble(t *testing.T, cast map[string]script, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(newRig(t, cast)) })
}

// newRig makes a project whose agents answer as cast says; who is missing there says «done».
func newRig(t testing.TB, cast map[string]script) *rig {
	t.Helper()
	return newRigWith(t, scripted.Config{Chunk: -1, Func: func(req scripted.Request) scripted.Answer {
		a := say("done")
		if s := cast[req.Agent()]; s != nil {
			a = s(req)
		}
		// The faked clock moves when everybody waits: so the commander's own steps come before anything that a task does, and
		// a planner's before its workers'.
		switch req.Agent() {
		case "commander":
		case "planner":
			a.Delay += time.Millisecond
		default:
			a.Delay += 10 * time.Millisecond
		}
		return a
	}})
}

func newRigWith(t testing.TB, sc scripted.Config) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour) // what waits for ever ends on the faked clock, and the test fails
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, dir: t.TempDir(), shell: &shell{}, model: scripted.New(sc), poke: make(chan struct{}, 1)}
	var err error
	if r.ws, err = workspace.Open(r.dir); err != nil {
		t.Fatal(err)
	}
	if r.store, err = store.Open(r.ctx, filepath.Join(t.TempDir(), "centurion.db")); err != nil {
		t.Fatal(err)
	}
	r.http = r.model.Client()
	r.cfg = Config{Store: r.store, Workspace: r.ws, Runner: r.shell, Version: "test", Scratch: t.TempDir(),
		Rules: func(string) []permission.Level { return rules(permission.Allow) }}
	r.cfg.Watch = r.watch
	r.restart()
	t.Cleanup(func() {
		r.http.CloseIdleConnections()
		if err := r.model.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range r.model.Violations() {
			t.Errorf("request %d (turn %d of %s): %s", v.Number, v.Turn, v.Session, v.Message)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		if err := r.ws.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// restart makes a new host on the same state, as a new process would.
func (r *rig) restart() {
	cfg := r.cfg
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
	if cfg.Model == nil {
		cfg.Model = func(string) (Model, error) {
			return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}}, nil
		}
	}
	r.host = New(cfg)
}

var ref = centurion.ModelRef{Provider: "scripted", ID: "scripted"}

func rules(a permission.Action) []permission.Level {
	return []permission.Level{{Name: "test", Rules: []permission.Rule{{Permission: "*", Pattern: "*", Action: a}}}}
}

// watch tells what a watch of the file would tell, without the system: it is poked by what the test does to the plan, and
// looks every minute at what the host did to it.
func (r *rig) watch(ctx context.Context, plan *workspace.TodoFile, changed func()) error {
	_, seen, _ := plan.Load()
	for tick := time.Tick(time.Minute); ; {
		poked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.poke:
			poked = true
			time.Sleep(50 * time.Millisecond)
		case <-tick:
		}
		if _, now, _ := plan.Load(); now != seen || poked {
			seen = now
			changed()
		}
	}
}

// start records a mission.
func (r *rig) start(opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Start(r.ctx, "build it", opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// run works on a mission until it stops and checks what must hold for every mission that has stopped.
func (r *rig) run(id string) centurion.Mission {
	r.t.Helper()
	return r.runIn(r.ctx, id)
}

func (r *rig) runIn(ctx context.Context, id string) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Run(ctx, id)
	if err != nil {
		r.t.Errorf("run: %v", err)
	}
	r.runs++
	r.check(m)
	return m
}

// mission starts a mission and runs it to its end.
func (r *rig) mission(opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	return r.run(r.start(opts).ID)
}

// inBackground runs a mission while the test does something to it; the result comes through the channel.
func (r *rig) inBackground(g *guard.Group, id string) <-chan centurion.Mission {
	done := make(chan centurion.Mission, 1)
	g.Go("mission", func() error {
		m, err := r.host.Run(r.ctx, id)
		done <- m
		return err
	})
	return done
}

// check looks at what a stopped mission leaves behind.
func (r *rig) check(m centurion.Mission) {
	r.t.Helper()
	if m.Status.Alive() || m.Status == "" {
		r.t.Errorf("the mission has stopped and is %q", m.Status)
	}
	stored, err := r.store.Mission(r.ctx, m.ID)
	if err != nil || stored.Status != m.Status || stored.Reason != m.Reason {
		r.t.Errorf("stored: %s %q, returned: %s %q, %v", stored.Status, stored.Reason, m.Status, m.Reason, err)
	}
	ends := 0
	all := r.events(m.ID)
	for _, e := range all {
		if e.Type.EndsMission() {
			ends++
		}
	}
	if last := all[len(all)-1]; ends != r.runs || string(last.Type) != "mission."+string(m.Status) {
		r.t.Errorf("%d ends after %d runs, the last event is %s of a mission that is %s", ends, r.runs, last.Type, m.Status)
	}
	// Every right to run was given back, and none twice: else the second acquisition succeeds.
	r.full("the host", r.host.slots.right, r.host.slots.size)
	if n := len(r.host.Running()); n > 0 {
		r.t.Errorf("%d missions run after the end", n)
	}
	r.checkDeliveries(m.ID)
	r.checkMessages(m.ID)
	open, err := r.store.Asks(r.ctx, m.ID, true)
	if m.Status == centurion.MissionPaused || m.Status == centurion.MissionBlocked { // a question waits for its answer
		open = slices.DeleteFunc(open, func(a store.Ask) bool { return a.Type == store.AskQuestion && a.Call != "" })
	}
	if err != nil || len(open) > 0 {
		r.t.Errorf("asks that are left open: %v, %v", open, err)
	}
}

func (r *rig) full(name string, right interface {
	TryAcquire(int64) bool
	Release(int64)
}, n int,
) {
	r.t.Helper()
	if !right.TryAcquire(int64(n)) {
		r.t.Errorf("slots of %s are still held", name)
		return
	}
	right.Release(int64(n))
}

// checkDeliveries looks that no result was told twice, and none forgotten: every task that has ended has one delivery.
func (r *rig) checkDeliveries(mission string) {
	r.t.Helper()
	all, err := r.store.Deliveries(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	of, told := map[string]int{}, map[string]int{}
	for _, d := range all {
		of[d.Task]++
	}
	for _, e := range r.events(mission, centurion.EventTaskDelivered) {
		told[e.Task]++
	}
	for _, t := range r.tasks(mission) {
		if want := map[bool]int{true: 1}[t.Status.Ended()]; of[t.ID] != want && t.Status != centurion.TaskCancelled || of[t.ID] > 1 {
			r.t.Errorf("task %s is %s and has %d deliveries", t.ID, t.Status, of[t.ID])
		}
		if told[t.ID] > 1 {
			r.t.Errorf("the result of task %s was told %d times", t.ID, told[t.ID])
		}
	}
}

// checkMessages looks that no answer and no call is left half done.
func (r *rig) checkMessages(mission string) {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	rec, err := r.store.Mission(r.ctx, mission)
	if err != nil {
		r.t.Error(err)
	}
	waits := map[string]bool{"": rec.Status == centurion.MissionPaused || rec.Status == centurion.MissionBlocked} // a question waits for its answer
	for _, t := range r.tasks(mission) {
		waits[t.ID] = waits[""] || t.Status == centurion.TaskCancelled
	}
	for _, s := range sessions {
		messages, err := r.store.Messages(r.ctx, s.ID)
		if err != nil {
			r.t.Error(err)
		}
		for _, m := range messages {
			if m.Role == centurion.RoleAssistant && m.Finish == "" {
				r.t.Errorf("an answer of %s has no end", s.Agent)
			}
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool && !p.State.Ended() && (p.Tool != "ask_user" || !waits[s.Metadata.Task]) {
					r.t.Errorf("a call of %s by %s has no end", p.Tool, s.Agent)
				}
			}
		}
	}
}

func (r *rig) events(mission string, types ...centurion.EventType) []centurion.Event {
	r.t.Helper()
	all, err := r.store.Events(r.ctx, store.EventQuery{Mission: mission, Types: types, Limit: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// count returns how many events of a type there are.
func (r *rig) count(mission string, t centurion.EventType) int { return len(r.events(mission, t)) }

func (r *rig) tasks(mission string) []centurion.Task {
	r.t.Helper()
	tasks, err := r.store.Tasks(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	return tasks
}

// task returns the only task of an item.
func (r *rig) task(mission, item string) centurion.Task {
	r.t.Helper()
	var found []centurion.Task
	for _, t := range r.tasks(mission) {
		if t.Item == item {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("item %s has %d tasks", item, len(found))
	}
	return found[0]
}

// results returns what the calls of a tool were answered, in order, by all sessions.
func (r *rig) results(mission, tool string) []string {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, s := range sessions {
		messages, err := r.store.Messages(r.ctx, s.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range messages {
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool && p.Tool == tool {
					text, _ := p.State.Result()
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// requests returns what an agent's sessions have asked the model.
func (r *rig) requests(agent string) []scripted.Request {
	return slices.DeleteFunc(r.model.Requests(), func(q scripted.Request) bool { return q.Agent() != agent })
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil { // as an editor does: nobody sees half of it
		r.t.Fatal(err)
	}
	r.touched()
}

func (r *rig) touched() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

const todoMD = ".opencode/todo.md"

func (r *rig) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		r.t.Error(err)
	}
	return string(b)
}

// is asserts how a mission stands.
func (r *rig) is(m centurion.Mission, status centurion.MissionStatus, reason string) {
	r.t.Helper()
	if m.Status != status || !strings.Contains(m.Reason, reason) {
		r.t.Fatalf("the mission is %s (%s); want %s (%s)", m.Status, m.Reason, status, reason)
	}
}

// has asserts that a text holds parts, in this order.
func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		i := strings.Index(rest, p)
		if i < 0 {
			t.Errorf("%q is not where it should be in:\n%s", p, text)
			return
		}
		rest = rest[i+len(p):]
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// shell is the runner: it knows a few commands and keeps what it ran.
//
//	exists NAME     succeeds if the file exists
//	sleep DURATION  takes its time, and so does build, which no rule takes for a command that only reads
//	rm NAME         removes a file
//	put NAME TEXT   writes a file
//	holds NAME TEXT succeeds if the file holds the text, and lacks if it does not
//	flaky N         fails the Nth time that it is run
//	panic           crashes
//	anything else   succeeds, unless it begins with "false"
type shell struct {
	mu  sync.Mutex
	ran []string
}

func (s *shell) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c.Script)
	s.mu.Unlock()
	word, arg, _ := strings.Cut(c.Script, " ")
	if word == "flaky" && arg == fmt.Sprint(s.times(c.Script)) {
		return centurion.CommandResult{ExitCode: 1, Output: "not this time"}, nil
	}
	// It ends nothing at its limit: what takes longer has waited in the line for as long, and never ran.
	if d, _ := time.ParseDuration(arg); c.Begun != nil && d <= c.Timeout {
		c.Begun()
	}
	switch word {
	case "exists":
		if _, err := os.Stat(filepath.Join(c.Dir, arg)); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: "no " + arg}, nil
		}
	case "sleep", "build":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return centurion.CommandResult{ExitCode: 2, Output: err.Error()}, nil
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return centurion.CommandResult{ExitCode: -1}, context.Cause(ctx)
		}
	case "holds", "lacks":
		name, want, _ := strings.Cut(arg, " ")
		b, _ := os.ReadFile(filepath.Join(c.Dir, name))
		if strings.Contains(string(b), want) != (word == "holds") {
			return centurion.CommandResult{ExitCode: 1, Output: "FAIL: " + name + " is wrong: " + string(b)}, nil
		}
	case "put":
		name, text, _ := strings.Cut(arg, " ")
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: err.Error()}, nil
		}
	case "rm":
		if err := os.Remove(filepath.Join(c.Dir, arg)); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: err.Error()}, nil
		}
	case "panic":
		panic("the shell has crashed")
	case "false":
		return centurion.CommandResult{ExitCode: 1, Output: "it is false"}, nil
	}
	return centurion.CommandResult{}, nil
}

// RunBackground knows the same commands.
func (s *shell) RunBackground(ctx context.Context, c centurion.Command, out io.Writer, started func(int)) (centurion.CommandResult, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	started(4711)
	res, err := s.Run(limited, c)
	if limited.Err() != nil && ctx.Err() == nil {
		res.TimedOut, err = true, nil
	}
	n, werr := io.WriteString(out, res.Output)
	res.Output, res.Bytes, res.Duration = "", int64(n), time.Since(began)
	return res, errors.Join(err, werr)
}

// times returns how often a command was run.
func (s *shell) times(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.ran {
		if c == command {
			n++
		}
	}
	return n
}

// Answers.

func say(text string) scripted.Answer { return scripted.Answer{Say: text} }

func do(calls ...scripted.Call) scripted.Answer { return scripted.Answer{Calls: calls} }

// after delays an answer.
func after(d time.Duration, a scripted.Answer) scripted.Answer {
	a.Delay = d
	return a
}

type args map[string]any

func call(name string, a args) scripted.Call {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return scripted.Call{Name: name, Arguments: string(b)}
}

// steps answers with the n-th answer in the n-th step of a session and says «done» from then on.
func steps(answers ...scripted.Answer) script {
	return func(r scripted.Request) scripted.Answer {
		if n := r.Step(); n <= len(answers) {
			return answers[n-1]
		}
		return say("done")
	}
}

// plans writes the plan. What is said to be done needs a check or a review: an item without a check is given one that passes.
func plans(lines ...string) scripted.Call { return barePlan(checked(strings.Join(lines, "\n"))) }

// barePlan writes the plan as it stands, for tests of what no check shows.
func barePlan(lines ...string) scripted.Call {
	return call("update_todo", args{"level": 2, "content": "# Plan\n" + strings.Join(lines, "\n") + "\n"})
}

var itemLine = regexp.MustCompile(`^(\s*)- \[[ xX~!]\] `)

// passes is the check of an item whose check is not what a test is about. It stays green, as the shell knows no such command.
const passes = "  - verify: `passes`"

// checked gives every item of a plan a check that has none, but for those of the reviewer.
func checked(plan string) string {
	var out []string
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		out = append(out, line)
		m := itemLine.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "@reviewer") {
			continue
		}
		has := false
		for _, next := range lines[i+1:] {
			if !strings.HasPrefix(next, " ") || itemLine.MatchString(next) {
				break
			}
			has = has || strings.Contains(next, "verify:")
		}
		if !has {
			out = append(out, m[1]+passes)
		}
	}
	return strings.Join(out, "\n")
}

// work hands a task to a worker, for an item or without one.
func work(item, prompt string) scripted.Call { return handTo("worker", item, prompt) }

func handTo(agent, item, prompt string) scripted.Call {
	a := args{"agent": agent, "description": "do " + item, "prompt": prompt}
	if item != "" {
		a["item"] = item
	}
	return call("delegate_task", a)
}

// many hands out n tasks without items in one answer.
func many(n int) scripted.Answer {
	var calls []scripted.Call
	for i := range n {
		calls = append(calls, work("", fmt.Sprintf("piece %d", i)))
	}
	return do(calls...)
}

func removeFile(t testing.TB, r *rig, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(r.dir, filepath.FromSlash(name))); err != nil {
		t.Error(err)
	}
	r.touched()
}

var taskID = regexp.MustCompile(`tsk_\w+`)

// firstTask returns the id of the task that a session was told of first.
func firstTask(r scripted.Request) string {
	for _, m := range r.Messages() {
		if id := taskID.FindString(m.Text); id != "" {
			return id
		}
	}
	return ""
}

// minutes works for n minutes and then says text. No single request takes long: the provider would take it for a stall.
func minutes(n int, text string) script {
	return func(r scripted.Request) scripted.Answer {
		if r.Step() < n {
			return after(time.Minute, do(call("ls", args{})))
		}
		return after(time.Minute, say(text))
	}
}
