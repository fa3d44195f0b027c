package trial

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// noSpace matches what tools say about a full or failing disk.
var noSpace = regexp.MustCompile(`(?i)disk is full|no space left|input/output error`)

// crew is a scripted mission of several workers. Each writes a file, appends a line to a ledger through the shell, reads its file and
// is done; its item's check proves the file.
type crew struct {
	workers int
	pause   time.Duration // before every answer
	filler  int           // minimum bytes of each file
	slow    string        // a command that every worker runs first, such as sleep 1
}

func (c crew) args() []string {
	return []string{"--format", "json", "--model", "custom/m", "--ask", "allow", "--max-per-agent", "50", "--max-tokens", "1000000000"}
}

// config returns the crew's model; it outlives its hosts.
func (c crew) config() scripted.Config {
	return scripted.Config{Func: c.answer, Latency: c.pause, Pace: -1, Chunk: -1}
}

// plan returns the Commander's todo.md.
func (c crew) plan() string {
	var b strings.Builder
	b.WriteString("# The crew at work\n")
	for i := range c.workers {
		fmt.Fprintf(&b, "- [ ] T%[1]d Write file %[1]d @worker\n  - files: out/T%[1]d.txt\n  - verify: `test -s out/T%[1]d.txt`\n", i+1)
	}
	return b.String()
}

// content returns what the worker of an item writes.
func (c crew) content(item string) string {
	return "written by " + item + "\n" + strings.Repeat("x", c.filler) + "\n"
}

func (c crew) answer(r scripted.Request) scripted.Answer {
	if r.Agent() == "commander" {
		return c.commander(r)
	}
	item := "T0"
	if _, rest, ok := strings.Cut(r.First(), "item T"); ok {
		digits, _, _ := strings.Cut(rest, " ")
		item = "T" + strings.Trim(digits, ".,:;\n")
	}
	var did []string
	for _, m := range r.Messages() {
		for _, call := range m.Calls {
			did = append(did, call.Name)
		}
	}
	steps := []scripted.Call{
		toolCall("bash", map[string]any{"command": strings.TrimPrefix(c.slow+"; ", "; ") + "echo " + item + " >> ledger", "description": "Note it"}),
		toolCall("write", map[string]any{"filePath": "out/" + item + ".txt", "content": c.content(item)}),
		toolCall("read", map[string]any{"filePath": "out/" + item + ".txt"}),
	}
	if noSpace.MatchString(strings.Join(r.Results(), "\n")) {
		return scripted.Answer{Say: "It may be better in a second.", Calls: steps[1:2], Delay: time.Second}
	}
	if len(did) < len(steps) {
		return scripted.Answer{Say: "Next.", Calls: steps[len(did) : len(did)+1]}
	}
	if strings.Contains(r.Last(), "out/"+item+".txt") && r.Step() < 12 { // its check was red: the file is not there
		return scripted.Answer{Say: "Once more.", Calls: steps[1:2]}
	}
	return scripted.Answer{Say: "Done with " + item + "."}
}

// crewTries is how often an item is delegated at most: each time the power may be cut before that is recorded.
const crewTries = 60

func (c crew) commander(r scripted.Request) scripted.Answer {
	asked, tries := map[string]string{}, map[string]int{} // the item of a delegation, by its call; and how often each was delegated
	planned, given := false, map[string]bool{}
	for _, m := range r.Messages() {
		for _, call := range m.Calls {
			asked[call.ID] = call.Name
			if g := delegatedItem.FindStringSubmatch(call.Arguments); g != nil && call.Name == "delegate_task" {
				asked[call.ID] = g[1]
				tries[g[1]]++
			}
		}
		if m.Role == "tool" {
			planned = planned || asked[m.CallID] == "update_todo" && strings.Contains(m.Text, "T1")
			given[asked[m.CallID]] = given[asked[m.CallID]] || strings.Contains(m.Text, " is queued") || strings.Contains(m.Text, "being worked on") || strings.Contains(m.Text, " is done.")
		}
	}
	if !planned && r.Step() < crewTries {
		return scripted.Answer{Calls: []scripted.Call{toolCall("update_todo", map[string]any{"level": 3, "content": c.plan()})}}
	}
	var calls []scripted.Call
	for i := range c.workers {
		if item := fmt.Sprintf("T%d", i+1); !given[item] && tries[item] < crewTries {
			calls = append(calls, toolCall("delegate_task", map[string]any{"agent": "worker", "description": "File " + item, "item": item, "prompt": "Do item " + item + " now."}))
		}
	}
	if last := r.Last(); len(calls) == 0 && strings.Contains(last, "is not finished") { // like a model, whatever it has delegated before
		for _, g := range leftOpen.FindAllStringSubmatch(last, -1) {
			calls = append(calls, toolCall("delegate_task", map[string]any{"agent": "worker", "description": "File " + g[1], "item": g[1], "prompt": "Do item " + g[1] + " now."}))
		}
	}
	if len(calls) > 0 {
		return scripted.Answer{Calls: calls}
	}
	if len(r.Results()) > 0 { // the tasks were just delegated, or the end was refused
		return scripted.Answer{Say: "I wait."}
	}
	return scripted.Answer{Calls: []scripted.Call{toolCall("mission_complete", map[string]any{"summary": "All files are there."})}}
}

func toolCall(name string, args map[string]any) scripted.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return scripted.Call{Name: name, Arguments: string(b)}
}

// readJournal opens a state file, which replays its log, and returns the whole journal.
func readJournal(ctx context.Context, path string) (map[int64]centurion.Event, error) {
	s, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	found, err := journalOf(ctx, s)
	return found, errors.Join(err, s.Close())
}

func journalOf(ctx context.Context, s *store.Store) (map[int64]centurion.Event, error) {
	all, err := journalInOrder(ctx, s)
	found := make(map[int64]centurion.Event, len(all))
	for _, e := range all {
		found[e.Seq] = e
	}
	return found, err
}

func journalInOrder(ctx context.Context, s *store.Store) ([]centurion.Event, error) {
	var all []centurion.Event
	last := int64(0)
	for {
		page, err := s.Events(ctx, store.EventQuery{After: last})
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, e := range page {
			if e.Seq <= last {
				return nil, fmt.Errorf("journal row %d comes after row %d", e.Seq, last)
			}
			last = e.Seq
		}
		all = append(all, page...)
	}
}

// told returns the facts acknowledged by a process: the complete JSON lines with a number that it printed.
func told(c *process) ([]centurion.Event, error) {
	all, err := c.Events()
	return slices.DeleteFunc(all, func(e centurion.Event) bool { return e.Seq == 0 }), err
}

// missing returns the acknowledged events that are not in a journal, or differ there.
func missing(told []centurion.Event, journal map[int64]centurion.Event) []centurion.Event {
	var lost []centurion.Event
	for _, e := range told {
		j, ok := journal[e.Seq]
		if !ok || j.Type != e.Type || j.Mission != e.Mission || j.Session != e.Session || j.Task != e.Task || !sameJSON(j.Data, e.Data) {
			lost = append(lost, e)
		}
	}
	return lost
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// readPlan reads a project's todo.md; a project without one has an empty plan.
func readPlan(p *project) (*todo.Doc, error) {
	b, err := os.ReadFile(filepath.Join(p.Dir, workspace.Directory, "todo.md"))
	if errors.Is(err, os.ErrNotExist) {
		return todo.Parse(nil)
	}
	if err != nil {
		return nil, err
	}
	return todo.Parse(b)
}

// finished reports what is wrong at the end of a crew's mission: marks, files, tasks that ended twice.
func (c crew) finished(p *project, journal map[int64]centurion.Event) []string {
	var wrong []string
	doc, err := readPlan(p)
	if err != nil {
		return []string{"todo.md: " + err.Error()}
	}
	if n := len(doc.Items()); n != c.workers {
		wrong = append(wrong, fmt.Sprintf("todo.md has %d items of %d", n, c.workers))
	}
	for _, it := range doc.Items() {
		if it.Mark != todo.Done {
			wrong = append(wrong, it.ID+" is "+it.Mark.String())
		}
		b, err := os.ReadFile(filepath.Join(p.Dir, "out", it.ID+".txt"))
		if err != nil || string(b) != c.content(it.ID) {
			wrong = append(wrong, fmt.Sprintf("the file of %s holds %d bytes of %d (%v)", it.ID, len(b), len(c.content(it.ID)), err))
		}
	}
	done := map[string]int{}
	for _, e := range journal {
		if e.Type == centurion.EventTaskCompleted {
			done[e.Task]++
		}
	}
	for id, n := range done {
		if n != 1 {
			wrong = append(wrong, fmt.Sprintf("task %s was completed %d times", id, n))
		}
	}
	if len(done) != c.workers {
		wrong = append(wrong, fmt.Sprintf("%d tasks were completed, not %d", len(done), c.workers))
	}
	return wrong
}

// hashes returns the hashed contents of a state file and of all files that share its name as a prefix.
func hashes(path string) map[string][32]byte {
	files, _ := filepath.Glob(path + "*") // the pattern is a good one
	all := map[string][32]byte{}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			all[filepath.Base(file)] = sha256.Sum256(b)
		}
	}
	return all
}

// finisher is a model that ends any mission without knowing it: workers say that they are done, and the Commander rewrites a plan that
// has vanished, without checks, and cancels the remaining items.
func finisher(r scripted.Request) scripted.Answer {
	switch {
	case r.Agent() == "reviewer" && len(history(r)) == 0: // a PASS without a look does not count
		return scripted.Answer{Calls: []scripted.Call{toolCall("ls", map[string]any{})}}
	case r.Agent() != "commander":
		return scripted.Answer{Say: "PASS: it is done."}
	}
	reviewed := false
	for _, c := range history(r) {
		reviewed = reviewed || c.name == "delegate_task" && strings.Contains(c.args, "Look at all of it.")
	}
	results := strings.Join(r.Results(), "\n")
	open := openItem.FindAllStringSubmatch(results, -1)
	switch {
	case strings.Contains(results, `"agent":"reviewer"`) && !reviewed:
		return scripted.Answer{Calls: []scripted.Call{toolCall("delegate_task", map[string]any{"agent": "reviewer", "description": "review", "prompt": "Look at all of it."})}}
	case strings.Contains(results, "the todo list had items and has none any more"):
		var plan strings.Builder
		plan.WriteString("# What is left\n")
		for _, id := range delegatedItems(r) {
			plan.WriteString("- [ ] " + id + " Go on with " + id + "\n")
		}
		return scripted.Answer{Calls: []scripted.Call{toolCall("update_todo", map[string]any{"content": plan.String()})}}
	case strings.Contains(results, " is still "), strings.Contains(results, "# What is left"):
		return scripted.Answer{Say: "I wait."}
	case len(open) > 0:
		var items []map[string]any
		for _, g := range open {
			items = append(items, map[string]any{"id": g[1], "status": "cancelled", "note": "no longer wanted"})
		}
		return scripted.Answer{Calls: []scripted.Call{toolCall("update_todo", map[string]any{"items": items})}}
	}
	return scripted.Answer{Calls: []scripted.Call{toolCall("mission_complete", map[string]any{"summary": "What was left is done."})}}
}

var (
	openItem      = regexp.MustCompile(`(?m)^- item (\S+) \(.*\) is `)
	delegatedItem = regexp.MustCompile(`"item": ?"([^"]+)"`)
	leftOpen      = regexp.MustCompile(`(?m)^- (T\d+) `)
)

// delegatedItems lists the items delegated in the history, each once.
func delegatedItems(r scripted.Request) []string {
	var all []string
	for _, m := range r.Messages() {
		for _, call := range m.Calls {
			if g := delegatedItem.FindStringSubmatch(call.Arguments); g != nil && !slices.Contains(all, g[1]) {
				all = append(all, g[1])
			}
		}
	}
	return all
}
