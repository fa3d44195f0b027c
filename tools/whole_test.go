package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/agents/instructions"
	"centurion/permission"
	"centurion/tools/web"
)

var update = flag.Bool("update", false, "rewrite what the tools answered")

// scene is a place in which tools are called, each given as its name and its input.
type scene struct {
	name  string
	setup func(b *bench)
	calls []string
}

// The whole of what a model, a person, a client and the gate get of each call stands in testdata/whole.txt: after a change on purpose,
// run this test with -update and look at the difference.
func TestWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the sizes and paths are those of another system")
	}
	var out strings.Builder
	for _, s := range scenes() {
		fmt.Fprintf(&out, "# %s\n\n", s.name)
		b := newBench(t)
		server := httptest.NewServer(http.HandlerFunc(site))
		address := server.URL
		b.Web = web.New(web.Config{Docs: web.NewDocs(b.Workspace, 0), Search: web.Search{SearXNG: address}, AllowHosts: []string{strings.TrimPrefix(address, "http://")}})
		if s.setup != nil {
			s.setup(b)
		}
		for _, call := range s.calls {
			out.WriteString(b.whole(t, strings.ReplaceAll(call, "HOST", address)))
		}
		server.Close()
		text := strings.NewReplacer(b.dir, "/project", address, "HOST", strings.TrimPrefix(address, "http://"), "HOST").Replace(out.String())
		out.Reset()
		out.WriteString(variable.ReplaceAllString(text, "…"))
	}
	for _, tl := range append(All(), NotesOnly()) {
		spec := Spec(tl)
		fmt.Fprintf(&out, "# %s\n%s\n", spec.Name, spec.Schema)
	}
	const file = "testdata/whole.txt"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if d := cmp.Diff(string(want), out.String()); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

// variable is what differs from run to run: times of pages, and names made of their addresses.
var variable = regexp.MustCompile(`20\d\d-\d\d-\d\d[T ][0-9:.]+Z?|127\.0\.0\.1-\d*-?|-[0-9a-f]{16}\b|\b[0-9a-f]{64}\b|/tmp/[^\s"]+`)

// whole makes a call and writes all of it down.
func (b *bench) whole(t *testing.T, call string) string {
	t.Helper()
	name, in, _ := strings.Cut(call, " ")
	var said []string
	b.gate.asked, b.Progress, b.Begun = nil, func(s string) { said = append(said, "progress: "+s) }, func() { said = append(said, "begun") }
	b.Decided = nil
	tl, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	effect, _ := json.Marshal(tl[0].Effect(json.RawMessage(in)))
	effect = unset.ReplaceAll(effect, nil)
	r, err := b.call(name, in)
	var out strings.Builder
	fmt.Fprintf(&out, "> %s\neffect: %s\n", call, effect)
	for _, a := range b.gate.asked {
		meta, _ := json.Marshal(a.Metadata)
		fmt.Fprintf(&out, "asked: %s %q, always %q, script %q in %q, %s\n", a.Permission, a.Patterns, a.Always, a.Script, a.Workdir, meta)
	}
	for _, s := range said {
		out.WriteString(s + "\n")
	}
	if r.Title != "" || len(r.Metadata) > 0 {
		meta, _ := json.Marshal(r.Metadata)
		fmt.Fprintf(&out, "title: %s\nmetadata: %s\n", r.Title, meta)
	}
	if len(r.Files)+len(r.Consumes)+len(r.Attachments) > 0 || r.EndTurn {
		fmt.Fprintf(&out, "files %q, consumes %q, %d attachments, ends the turn: %v\n", r.Files, r.Consumes, len(r.Attachments), r.EndTurn)
	}
	if err != nil {
		fmt.Fprintf(&out, "%s: %v\nhint: %s\n", centurion.KindOf(err), err, centurion.HintOf(err))
	}
	last, times := "", 0
	for _, line := range append(strings.Split(strings.TrimSuffix(r.Output, "\n"), "\n"), "") {
		if times++; line != last && times > 3 {
			fmt.Fprintf(&out, "%s (%d times)\n", last, times-1)
		} else if line != last {
			out.WriteString(strings.Repeat(last+"\n", times-1))
		}
		if line != last {
			last, times = line, 1
		}
	}
	return out.String() + "\n"
}

// unset are the fields of an effect that say nothing.
var unset = regexp.MustCompile(`"\w+":(false|null|""),?`)

func site(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	switch r.URL.Path {
	case "/search":
		if r.URL.Query().Get("q") == "nothing" {
			_, _ = w.Write([]byte(`{"results":[]}`))
			return
		}
		_, _ = w.Write([]byte(`{"results":[{"title":"A","url":"https://a.b/1","content":"about A"},{"title":"B","url":"https://a.b/2"},{"title":"C","url":"https://a.b/3"}]}`))
	case "/long":
		_, _ = w.Write([]byte(strings.Repeat("a line of the page\n", 8000)))
	case "/none":
		http.NotFound(w, r)
	default:
		_, _ = w.Write([]byte("the text of " + r.URL.Path))
	}
}

// project fills a directory with one file of each kind.
func project(b *bench) {
	b.put("main.go", "package main\n\nfunc main() {\n\tlimit := 1\n\tuse(limit)\n\tuse(limit)\n}\n")
	b.put("src/ein Ordner/größe.go", "package b\r\nfunc Limit(n int) {}\r\n")
	b.put("src/a/b/c/deep.go", "package c\n")
	b.put("docs/a.md", "# Title\n\n  text  here\n")
	b.put("node_modules/x.js", "limit\n")
	b.put(".gitignore", "node_modules/\n")
	b.put(".env", "KEY=limit\n")
	b.put("bin", "\x7fELF\x00limit\x00")
	b.put("empty.txt", "")
	b.put("long.txt", strings.Repeat("word\n", 2500))
	b.put("wide.txt", strings.Repeat("é", 3000)+"\nlast")
	b.put(".git/config", "x")
	for i, n := range []string{"wide.txt", "long.txt", "empty.txt", "bin", "docs/a.md", "src/a/b/c/deep.go", "src/ein Ordner/größe.go", "main.go", ".gitignore", ".env"} {
		b.age(n, time.Duration(i+1)*time.Hour)
	}
}

func scenes() []scene {
	full := scene{"with everything", func(b *bench) {
		boss := &boss{tasks: map[string]centurion.Task{}}
		b.Delegator, b.Planner, b.Notebook, b.SubAgents, b.Asker = boss, boss, &book{}, &family{}, &person{}
		b.Skills = shelf{instructions.Skill{Name: "notes", Description: "writes notes", Dir: ".opencode/skills/notes", File: ".opencode/skills/notes/SKILL.md", Body: "One line.", Size: 9}}
		at := func(n int64) centurion.Time { return centurion.MillisTime(n * 1000) }
		for i, task := range []centurion.Task{
			{Title: "parse", Agent: "worker", Item: "T1", Status: centurion.TaskFailed, Error: &centurion.TaskError{Kind: centurion.KindTimeout, Message: "nothing came\nat all", Hint: "ask for less"}, Started: at(1), Ended: at(61), Session: "ses_9"},
			{Title: "parse", Agent: "worker", Item: "T1", Status: centurion.TaskCompleted, Result: "parsed", Files: []string{"a.go", "b.go"}, Started: at(100), Ended: at(190), Session: "ses_8", Usage: centurion.Usage{Tokens: centurion.Tokens{Input: 12000}, USD: 0.25}},
			{Title: "look", Agent: "reviewer", Number: 3, Status: centurion.TaskQueued},
			{Title: "wait", Agent: "worker", Number: 4, Status: centurion.TaskCancelled, Reason: "not needed"},
		} {
			task.ID = fmt.Sprintf("tsk_%d", i+1)
			boss.tasks[task.ID] = task
		}
	}, []string{
		`delegate_task {"agent":"worker","description":"parse limits","prompt":"do it","item":"T4"}`,
		`delegate_task {"agent":"worker","description":"parse","prompt":"do it","resume":"tsk_1","context":true}`,
		`delegate_task {"agent":"other","description":"parse","prompt":"do it"}`,
		`delegate_task {"agent":"worker","description":"parse","prompt":" "}`,
		`list_tasks {"status":"failed"}`, `list_tasks {"status":"blocked"}`,
		`get_task_result {"task_id":"tsk_1"}`, `get_task_result {"task_id":"tsk_2"}`, `get_task_result {"task_id":"tsk_3"}`, `get_task_result {"task_id":"tsk_8"}`,
		`cancel_task {"task_id":"tsk_3","reason":"no need"}`, `cancel_task {"task_id":"tsk_2","reason":"no need"}`, `cancel_task {"task_id":"tsk_8"}`,
		`mission_complete {"summary":"all of it"}`, `mission_complete {"summary":""}`,
		`update_todo {"level":2,"items":[{"id":"T1","status":"done","note":"well"}],"add":[{"title":"more","section":"Later"}]}`, `update_todo {}`, `update_todo {"items":[{"id":"T1"}]}`,
		`update_context {"note":"x","summary":"s"}`, `update_context {"note":"a\nb"}`, `update_context {}`,
		`sub_agent {"prompt":"look","model":"acme/large"}`, `ask_user {"question":"Which\none?","choices":["a","b"]}`, `ask_user {"question":" "}`,
		`ask_user {"question":"` + strings.Repeat("long ", 40) + `?"}`, `ask_user {"question":"x","choices":["a","a"]}`, `ask_user {"question":"x","choices":["` + strings.Repeat("c", 300) + `"]}`,
		`skill {"name":"notes"}`, `skill {"name":"none"}`,
	}}
	online := scene{"in the network", func(b *bench) {
		b.gate.rules = []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}}
	}, []string{
		`webfetch {"url":"HOST/page#x"}`, `webfetch {"url":"HOST/page"}`, `webfetch {"url":"HOST/page","refresh":true}`, `webfetch {"url":"HOST/long"}`, `webfetch {"url":"HOST/none"}`,
		`webfetch {"url":"ftp://x"}`, `websearch {"query":" x\n y ","limit":2}`, `websearch {"query":"nothing"}`, `codesearch {"query":"x"}`, `websearch {"query":" "}`,
		`cache_docs {"action":"list"}`, `cache_docs {"action":"get","url":"HOST/page"}`, `cache_docs {"action":"get","url":"HOST/none"}`, `cache_docs {"action":"get"}`,
		`cache_docs {"action":"clear","url":"HOST/page"}`, `cache_docs {"action":"clear","expired":true}`, `cache_docs {"action":"clear"}`, `cache_docs {"action":"list"}`,
	}}
	return append(fileScenes(), commandScene(), full, online, scene{"with nothing", func(b *bench) { b.Web = nil }, []string{
		`bash {"command":"x"}`, `run_background {"command":"x"}`, `check_background {}`, `webfetch {"url":"https://a.b"}`, `websearch {"query":"x"}`, `codesearch {"query":"x"}`,
		`cache_docs {"action":"list"}`, `skill {"name":"x"}`, `update_todo {"level":1}`, `update_context {"note":"x"}`, `delegate_task {"agent":"a","description":"x","prompt":"y"}`,
		`get_task_result {"task_id":"x"}`, `list_tasks {}`, `cancel_task {"task_id":"x"}`, `mission_complete {"summary":"x"}`, `ask_user {"question":"x"}`, `sub_agent {"prompt":"x"}`,
	}})
}

// fileScenes are the tools of files: those that look, those that change, and what they refuse.
func fileScenes() []scene {
	return []scene{
		{"looking", project, []string{
			`ls {}`, `ls {"path":"src/a"}`, `ls {"path":"main.go"}`, `ls {"path":"nowhere"}`, `ls {"path":"docs","depth":1}`,
			`glob {"pattern":"**/*.go"}`, `glob {"pattern":"*.rs"}`, `glob {"pattern":"*","path":"docs"}`, `glob {"pattern":"{a"}`,
			`grep {"pattern":"limit"}`, `grep {"pattern":"Limit","include":"*.go","path":"src"}`, `grep {"pattern":"none"}`, `grep {"pattern":"("}`, `grep {"pattern":"x","include":"{a"}`,
			`read {"filePath":"main.go"}`, `read {"filePath":"main.go","offset":4,"limit":2}`, `read {"filePath":"main.go","offset":99}`, `read {"filePath":"main.og"}`, `read {"filePath":"src"}`,
			`read {"filePath":"bin"}`, `read {"filePath":"empty.txt"}`, `read {"filePath":"long.txt","offset":2490}`, `read {"filePath":"wide.txt","offset":2}`, `read {"filePath":".env"}`,
			`read {"filePath":"a\u0000b"}`, `read {}`, `read {"filePath":7,"ofset":1}`,
		}},
		{"changing", project, []string{
			`edit {"filePath":"main.go","oldString":"limit := 1","newString":"limit := 2"}`,
			`read {"filePath":"main.go"}`, `read {"filePath":"docs/a.md"}`, `read {"filePath":"src/ein Ordner/größe.go"}`,
			`edit {"filePath":"main.go","oldString":"limit := 1","newString":"limit := 2"}`,
			`edit {"filePath":"main.go","oldString":"use(limit)","newString":"use(1)"}`,
			`edit {"filePath":"main.go","oldString":"use(limit)","newString":"use(1)","replaceAll":true}`,
			`edit {"filePath":"main.go","oldString":"a","newString":"a"}`,
			`edit {"filePath":"main.go","oldString":"     1| package main","newString":"package x"}`,
			`edit {"filePath":"docs/a.md","oldString":"text here","newString":"x"}`,
			`edit {"filePath":"main.go","oldString":"func main() {\n\tlimit = 3","newString":"x"}`,
			`edit {"filePath":"main.go","oldString":"zzzz qqqq","newString":"x"}`,
			`edit {"filePath":"src/ein Ordner/größe.go","oldString":"func Limit(n int) {}\n","newString":"func Limit() {}\nvar x int\n"}`,
			`edit {"filePath":"none.go","oldString":"a","newString":"b"}`, `edit {"filePath":"bin","oldString":"a","newString":"b"}`,
			`write {"filePath":"new/a.txt","content":"one\ntwo"}`, `write {"filePath":"new/a.txt","content":"one\nthree\n"}`, `write {"filePath":"new/a.txt","content":"one\nthree\n"}`,
			`write {"filePath":"long.txt","content":"x"}`, `write {"filePath":".git/config","content":"x"}`, `write {"filePath":".opencode/plan.md","content":"x"}`,
			`write {"filePath":"../out.txt","content":"x"}`, `write {"filePath":"src","content":"x"}`, `write {"filePath":"empty.txt","content":""}`,
		}},
	}
}

// commandScene runs commands, here and in the background.
func commandScene() scene {
	return scene{"commands", func(b *bench) {
		b.gate.rules = []permission.Rule{{Permission: "bash", Pattern: "*", Action: permission.Allow}}
		b.Runner = &runner{result: centurion.CommandResult{Output: "a\nb\n", ExitCode: 3}}
		b.Background = &backer{all: []BackgroundCommand{{ID: "bg_1", Script: "make serve", Status: BackgroundRunning, PID: 4711}}}
		if err := os.Mkdir(filepath.Join(b.dir, "sub"), 0o755); err != nil {
			b.t.Fatal(err)
		}
	}, []string{
		`bash {"command":"make test\n# and more","description":"run the tests","workdir":"sub","timeout":1500}`, `bash {"command":"make"}`, `bash {"command":" "}`, `bash {"command":"x","timeout":700000}`,
		`bash {"command":"x","workdir":"none"}`, `run_background {"command":"make serve","description":"serve"}`, `check_background {}`, `check_background {"id":"bg_1"}`, `check_background {"id":"bg_2"}`,
		`check_background {"id":"bg_1","action":"kill"}`,
	}}
}
