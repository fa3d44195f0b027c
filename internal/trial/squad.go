package trial

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"centurion/provider/scripted"
)

// squad is a mission of several workers, each with an item of the plan. Its model answers based only on the history, so that it
// continues after any crash, and never requests an effect twice under the same word: a word that is in the ledger twice was written by
// a call that ran twice.
type squad struct {
	workers int           // 0: the Commander answers at once and that is all
	latency time.Duration // of every answer
	asks    int           // number of workers whose command asks a person
	long    bool          // the first worker reads so much that its provider demands a shorter conversation, once

	git  bool                                   // in a repository: each worker has its own checkout and ledger, and its work is merged
	text string                                 // the plan, if not the default
	deed func(scripted.Request) scripted.Answer // a worker's answer, for other work

	mu       sync.Mutex
	nap      string      // a command that every worker runs instead of writing to the ledger, such as sleep 300; empty: none
	requests []time.Time // times of the model's requests
}

// napping changes the command that every worker runs instead of writing its word to the ledger.
func (s *squad) napping(command string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nap = command
}

func (s *squad) naps() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nap
}

// napped waits until such a command runs. Shell commands of one project may have to wait for each other.
func (s *squad) napped(c *process, t *T) bool {
	deadline := time.Now().Add(waitLimit)
	for !c.Ended() && time.Now().Before(deadline) {
		if s.firstRequest(c.start).IsZero() { // a host tries at its start how it can confine a command
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for _, pid := range commandsOf(c.cmd.Process.Pid) {
			switch strings.TrimSpace(readAll(filepath.Join("/proc", pid, "comm"))) { // the host itself runs git
			case "bash", "sh":
				return true
			}
		}
		time.Sleep(5 * time.Millisecond) // the host starts them
	}
	return false
}

const (
	// personRules is the path of the person's rules, seen from the project: the project's own rules can only restrict.
	personRules = "../home/.config/opencode/opencode.json"

	squadGoal   = "Fill the ledger."
	squadLedger = "ledger.txt"
	// squadRules allow every command except those that ask a person.
	squadRules = `{"permission": {"bash": {"*": "allow", "touch asked-*": "ask"}}}`
)

// files are the project's files at the start.
func (s *squad) files() map[string]string {
	all := map[string]string{personRules: squadRules}
	for i := range s.workers {
		all["in/"+item(i)+".txt"] = "input of " + item(i) + "\n"
	}
	if s.long {
		all["in/"+item(0)+".txt"] = strings.Repeat("input of "+item(0)+"\n", 1500)
	}
	return all
}

func item(i int) string { return fmt.Sprintf("T%d", i+1) }

// output is what a worker has written at the end.
func (s *squad) output(id string) string { return strings.Repeat("work of "+id+"\n", 20) }

func (s *squad) plan() string {
	if s.text != "" {
		return s.text
	}
	var b strings.Builder
	b.WriteString("# Ledger\n")
	for i := range s.workers {
		id := item(i)
		fmt.Fprintf(&b, "- [ ] %s Write %s @worker\n  - files: out/%s.txt\n  - verify: `test -s out/%s.txt`\n", id, id, id, id)
	}
	return b.String()
}

// serve lets the squad's model answer in a project.
func (s *squad) serve(p *project) *scripted.Model {
	return p.Serve(scripted.Config{Func: s.answer, Latency: s.latency, Pace: -1, Chunk: -1})
}

// firstRequest returns the time of the model's first request after a moment; zero without one.
func (s *squad) firstRequest(after time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.requests {
		if at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// past is a call in the history.
type past struct {
	name, args, result string
}

func (c past) cut() bool { return strings.HasPrefix(c.result, "interrupted by a restart") }

// history lists the calls in a request's history with their results.
func history(r scripted.Request) []past {
	results := map[string]string{}
	for _, m := range r.Messages() {
		if m.Role == "tool" {
			results[m.CallID] = m.Text
		}
	}
	var all []past
	for _, m := range r.Messages() {
		for _, c := range m.Calls {
			all = append(all, past{c.Name, c.Arguments, results[c.ID]})
		}
	}
	return all
}

func tool(name string, args map[string]any) scripted.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return scripted.Call{Name: name, Arguments: string(b)}
}

func (s *squad) answer(r scripted.Request) scripted.Answer {
	s.mu.Lock()
	s.requests = append(s.requests, time.Now())
	s.mu.Unlock()
	if len(r.Tools()) == 0 { // a summary is requested
		return scripted.Answer{Say: "The input was read."}
	}
	if r.Agent() == "commander" {
		return s.commander(r)
	}
	if s.deed != nil {
		return s.deed(r)
	}
	return s.worker(r)
}

var nextItem = regexp.MustCompile(`Next: (T\d+)\.`)

func (s *squad) commander(r scripted.Request) scripted.Answer {
	if s.workers == 0 {
		return scripted.Answer{Say: "Nothing is left to do."}
	}
	planned := false
	given := map[string]bool{}
	for _, c := range history(r) {
		switch c.name {
		case "update_todo":
			planned = planned || !c.cut()
		case "delegate_task":
			var in struct{ Item string }
			if json.Unmarshal([]byte(c.args), &in) == nil && !c.cut() {
				given[in.Item] = true
			}
		}
	}
	if !planned {
		return scripted.Answer{Say: "I plan.", Calls: []scripted.Call{tool("update_todo", map[string]any{"level": 2, "content": s.plan()})}}
	}
	var calls []scripted.Call
	for i := range s.workers {
		if id := item(i); !given[id] {
			calls = append(calls, delegate(id))
		}
	}
	if g := nextItem.FindStringSubmatch(r.Last()); len(calls) == 0 && g != nil { // the host misses an item: this should not happen, and is counted
		calls = append(calls, delegate(g[1]))
	}
	if len(calls) > 0 {
		return scripted.Answer{Say: "I delegate.", Calls: calls}
	}
	return scripted.Answer{Say: "I wait."}
}

func delegate(id string) scripted.Call {
	return tool("delegate_task", map[string]any{"agent": "worker", "description": "Write " + id, "item": id, "prompt": "You are on item " + id + "; write out/" + id + ".txt."})
}

var ownItem = regexp.MustCompile(`You are on item T(\d+);`)

func (s *squad) worker(r scripted.Request) scripted.Answer {
	g := ownItem.FindStringSubmatch(r.First())
	if g == nil {
		return scripted.Answer{Say: "I have no item."}
	}
	id := "T" + g[1]
	var number int
	fmt.Sscan(g[1], &number) // digits
	nap := s.naps()
	tries := map[string]int{}
	done := map[string]bool{}
	for _, c := range history(r) {
		kind := c.name
		if strings.Contains(c.args, "asked-") {
			kind = "asked"
		}
		tries[kind]++
		done[kind] = done[kind] || !c.cut() && c.result != ""
	}
	bash := func(command string) scripted.Answer {
		return scripted.Answer{Say: "I run it.", Calls: []scripted.Call{tool("bash", map[string]any{"command": command, "description": "Work"})}}
	}
	long := s.long && number == 1 && !strings.Contains(r.First(), "<summary>")
	switch {
	case long && tries["read"] > 1:
		return scripted.Answer{Error: &scripted.Error{Status: 400, Code: "context_length_exceeded", Message: "maximum context length"}}
	case !done["read"] || long:
		return scripted.Answer{Say: "I look.", Calls: []scripted.Call{tool("read", map[string]any{"filePath": "in/" + id + ".txt"})}}
	case number <= s.asks && !done["asked"]:
		return bash("touch asked-" + id)
	case !done["bash"] && nap != "":
		return bash(nap)
	case !done["bash"]:
		return bash(fmt.Sprintf("echo %s-%d >> %s", id, tries["bash"]+1, s.ledger(id)))
	case !done["write"]:
		return scripted.Answer{Say: "I write.", Calls: []scripted.Call{tool("write", map[string]any{"filePath": "out/" + id + ".txt", "content": s.output(id)})}}
	}
	return scripted.Answer{Say: id + " is written."}
}

// ledger returns the file for a worker's words.
func (s *squad) ledger(id string) string {
	if s.git { // a single file would always conflict
		return "in/" + id + ".words"
	}
	return squadLedger
}

// place returns the directory with the work of an ended mission.
func (s *squad) place(p *project) string {
	if s.git {
		return p.export(p.missionBranch())
	}
	return p.Dir
}

// words returns the content of the ledger, or of all of them.
func (s *squad) words(p *project) string {
	if !s.git {
		return readAll(filepath.Join(p.Dir, squadLedger))
	}
	dir := s.place(p)
	var all strings.Builder
	for i := range s.workers {
		all.WriteString(readAll(filepath.Join(dir, filepath.FromSlash(s.ledger(item(i))))))
	}
	return all.String()
}

// twice lists the words that are in the ledger more than once.
func (s *squad) twice(p *project) []string {
	seen := map[string]int{}
	for word := range strings.FieldsSeq(s.words(p)) {
		seen[word]++
	}
	var all []string
	for word, n := range seen {
		if n > 1 {
			all = append(all, fmt.Sprintf("%s %d times", word, n))
		}
	}
	return all
}

// unwritten lists the items whose file is missing or torn, and those without a word in the ledger.
func (s *squad) unwritten(p *project) []string {
	ledger := s.words(p)
	dir := s.place(p)
	var all []string
	for i := range s.workers {
		id := item(i)
		if b, err := os.ReadFile(filepath.Join(dir, "out", id+".txt")); err != nil || string(b) != s.output(id) {
			all = append(all, fmt.Sprintf("out/%s.txt holds %d bytes of %d (%v)", id, len(b), len(s.output(id)), err))
		}
		if s.naps() == "" && !strings.Contains("\n"+ledger, "\n"+id+"-") {
			all = append(all, "the ledger has no word of "+id)
		}
	}
	return all
}
