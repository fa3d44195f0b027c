package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/store"
)

const (
	o8Quick  = 24 // plans
	o8Full   = 200
	o8AtOnce = 2
	o8Limit  = 2 * time.Minute // for each mission; it takes a few seconds
	o8Lines  = 8               // of each file
)

// insertion is a worker's change: its own line below another line of a file. No one removes lines, so that a conflict is resolved by
// keeping the lines of both sides.
type insertion struct {
	how  string // edit, write or bash
	file string
	line int
	text string
}

// plan8 is a random plan whose items name no files: its workers change the same few files.
type plan8 struct {
	squad
	p     *project
	items map[string][]insertion
	delay map[string]time.Duration // of each answer of a worker

	mu    sync.Mutex
	begun map[string]bool // has made its first change
}

func newPlan8(r *rand.Rand) *plan8 {
	n, files := 2+r.IntN(4), 1+r.IntN(3)
	c := &plan8{squad: squad{workers: n}, items: map[string][]insertion{}, delay: map[string]time.Duration{}, begun: map[string]bool{}}
	var b strings.Builder
	b.WriteString("# Overlapping writers\n")
	for i := range n {
		id := item(i)
		for k := range 2 + r.IntN(3) {
			c.items[id] = append(c.items[id], insertion{how: []string{"edit", "write", "bash"}[r.IntN(3)],
				file: fmt.Sprintf("f%d.txt", r.IntN(files)), line: r.IntN(o8Lines), text: fmt.Sprintf("%s-%d was here", id, k)})
		}
		c.delay[id] = time.Duration(r.IntN(40)) * time.Millisecond
		fmt.Fprintf(&b, "- [ ] %s Insert lines %s @worker\n  - verify: `sh has.sh %s %d`\n", id, id, id, len(c.items[id]))
	}
	c.text, c.deed = b.String(), c.worker
	return c
}

func o8Line(file string, n int) string { return fmt.Sprintf("line %d of %s", n, file) }

func o8Files() map[string]string {
	all := map[string]string{personRules: squadRules,
		"has.sh": `n=$(cat f*.txt | grep -c "^$1-[0-9]* was here$"); test "$n" = "$2" || { echo "not ok: $n lines of $1, not $2"; exit 1; }` + "\n"}
	for f := range 3 {
		name := fmt.Sprintf("f%d.txt", f)
		for n := range o8Lines {
			all[name] += o8Line(name, n) + "\n"
		}
	}
	return all
}

var inConflict = regexp.MustCompile(`(?m)^- (f\d\.txt) \(`)

// worker answers based only on the history: first its insertions, one after the other, then whatever was returned.
func (c *plan8) worker(r scripted.Request) scripted.Answer {
	g := ownItem.FindStringSubmatch(r.First())
	if g == nil {
		return scripted.Answer{Say: "I have no item."}
	}
	id := "T" + g[1]
	calls, back, _ := since(r)
	a := scripted.Answer{Say: id + " is done.", Delay: c.delay[id]}
	work := func(name string, args map[string]any) scripted.Answer {
		a.Say, a.Calls = "I work.", []scripted.Call{tool(name, args)}
		return a
	}
	if back != "" {
		files := inConflict.FindAllStringSubmatch(back, -1)
		if n := len(calls) / 2; n < len(files) {
			return c.merge(files[n][1], "", calls, work)
		}
		return a
	}
	done := 0 // insertions
	for i, x := range calls {
		if x.name != "read" {
			done++
		}
		if done == 1 && i == len(calls)-1 {
			c.together(id)
		}
	}
	if done == len(c.items[id]) {
		return a
	}
	switch in := c.items[id][done]; in.how {
	case "edit":
		old := o8Line(in.file, in.line)
		return work("edit", map[string]any{"filePath": in.file, "oldString": old + "\n", "newString": old + "\n" + in.text + "\n"})
	case "bash":
		return work("bash", map[string]any{"command": fmt.Sprintf("sed -i 's/^%s$/&\\n%s/' %s", o8Line(in.file, in.line), in.text, in.file), "description": "Insert"})
	default:
		return c.merge(in.file, o8Line(in.file, in.line)+"\n"+in.text, calls, work)
	}
}

// merge reads a file and rewrites it: each line once, without conflict markers, and with the line at the head of with replaced by all
// of it.
func (c *plan8) merge(file, with string, calls []past, work func(string, map[string]any) scripted.Answer) scripted.Answer {
	if len(calls) == 0 || calls[len(calls)-1].name != "read" {
		return work("read", map[string]any{"filePath": file})
	}
	var lines []string
	for _, m := range numbered.FindAllStringSubmatch(calls[len(calls)-1].result, -1) {
		marker := strings.HasPrefix(m[1], "<<<<<<<") || strings.HasPrefix(m[1], "=======") || strings.HasPrefix(m[1], ">>>>>>>") || strings.HasPrefix(m[1], "|||||||")
		head, _, _ := strings.Cut(with, "\n")
		switch {
		case marker || slices.Contains(lines, m[1]):
		case with != "" && m[1] == head:
			lines = append(lines, strings.Split(with, "\n")...)
		default:
			lines = append(lines, m[1])
		}
	}
	return work("write", map[string]any{"filePath": file, "content": strings.Join(lines, "\n") + "\n"})
}

// together holds a worker back after its first change until all have made theirs, so that each is half done.
func (c *plan8) together(id string) {
	c.mu.Lock()
	c.begun[id] = true
	c.mu.Unlock()
	until(o8Limit/2, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.begun) == c.workers
	})
}

// sum8 is the result of the missions of O8.
type sum8 struct {
	edits, conflicts, told, refused, waited, blocked, lost int
	most                                                   int // times the same work was returned
	took                                                   time.Duration
}

// o8 runs random plans whose items name no files and whose workers change the same files at the same time, each in a worktree of its own.
func o8(ctx context.Context, t *T) {
	t.Binary()
	sums := make([]sum8, t.Scale(o8Quick, o8Full))
	plans := make([]*plan8, len(sums))
	for i := range plans {
		plans[i] = newPlan8(t.Rand)
	}
	t.InParallel(len(sums), o8AtOnce, func(n int) {
		if !t.Failed() {
			t.Part(fmt.Sprintf("plan%d", n), func(part *T) { sums[n].mission(part, plans[n]) })
		}
	})
	if ctx.Err() != nil {
		return
	}
	var all sum8
	var took []time.Duration
	for _, s := range sums {
		all.edits, all.conflicts, all.told, all.refused = all.edits+s.edits, all.conflicts+s.conflicts, all.told+s.told, all.refused+s.refused
		all.waited, all.blocked, all.lost, all.most = all.waited+s.waited, all.blocked+s.blocked, all.lost+s.lost, max(all.most, s.most)
		took = append(took, s.took)
	}
	t.Figure("plans", len(sums))
	t.Figure("changes", all.edits)
	t.Figure("overlaps told", all.told)
	t.Figure("conflicts", all.conflicts)
	t.Figure("returns of one work at most", all.most)
	t.Figure("calls refused", all.refused)
	t.Figure("waits for files", all.waited)
	t.Figure("blocked", all.blocked)
	t.Figure("changes lost", all.lost)
	t.Figure("longest mission", quantile(took, 1))
	if all.conflicts == 0 || all.told == 0 {
		t.Failf("no two workers were in each other's way, so that this proves nothing")
	}
}

// mission runs a plan to its end and checks what is left of each change.
func (s *sum8) mission(t *T, c *plan8) {
	c.p = t.Project(o8Files())
	c.p.gitInit()
	c.serve(c.p)
	proc := c.p.Start(runArgs("--ask", "allow")...)
	code := proc.Wait(t, o8Limit)
	s.took = proc.ended.Sub(proc.start)
	told := c.p.Told(proc)
	if code != 0 {
		t.Failf("the mission ended with %d: %s\n%s\n%s", code, lastLines(proc.Stdout(), 1), lastLines(proc.Stderr(), 3), c.p.undone(t.ctx))
		return
	}
	check(t, c.p, told)
	s.facts(t, c)
	dir := c.p.export(c.p.missionBranch())
	var text strings.Builder
	for f := range 3 {
		text.WriteString("\n" + readAll(filepath.Join(dir, fmt.Sprintf("f%d.txt", f))))
	}
	want := []string{}
	for _, all := range c.items {
		for _, in := range all {
			s.edits++
			want = append(want, in.text)
		}
	}
	for f := range 3 {
		for n := range o8Lines {
			want = append(want, o8Line(fmt.Sprintf("f%d.txt", f), n))
		}
	}
	for _, line := range want {
		if n := strings.Count(text.String(), "\n"+line+"\n"); n != 1 {
			s.lost++
			t.Failf("%q is %d times in the last commit", line, n)
		}
	}
	if got := strings.Count(strings.ReplaceAll(text.String(), "\n\n", "\n"), "\n") - 1; got != len(want) {
		t.Failf("the files have %d lines, not %d", got, len(want))
	}
}

// facts looks for effects of locks: refused calls, tasks that wait for files, blocked work.
func (s *sum8) facts(t *T, c *plan8) {
	db, err := store.Open(t.ctx, c.p.Database())
	t.Must(err)
	defer db.Close()
	facts, err := allEvents(t.ctx, db)
	t.Must(err)
	for _, e := range facts {
		switch e.Type {
		case centurion.EventMergeConflict:
			s.conflicts++
		case centurion.EventTaskBlocked:
			s.blocked++
			t.Failf("a task was blocked: %s", e.Data)
		case centurion.EventTaskWaiting:
			if d, err := event.Decode[event.TaskData](e); err == nil && strings.Contains(d.Reason, "files of") {
				s.waited++
				t.Failf("%s waited for %s", d.Item, d.Reason)
			}
		}
	}
	missions, err := db.Missions(t.ctx)
	t.Must(err)
	tasks, err := db.Tasks(t.ctx, missions[0].ID)
	t.Must(err)
	for _, task := range tasks {
		s.most = max(s.most, task.CameBack)
		msgs, err := db.Messages(t.ctx, task.Session)
		t.Must(err)
		pairs := map[string]bool{} // of another item and a file
		for _, msg := range msgs {
			for _, part := range msg.Parts {
				if part.State != nil && part.State.Error != "" {
					s.refused++
					t.Failf("a call of %s of %s was refused: %s", part.Tool, task.Item, part.State.Error)
				}
			}
			for _, g := range overlapTold.FindAllStringSubmatch(msg.Text(), -1) {
				for file := range strings.SplitSeq(g[2], ", ") {
					if s.told++; pairs[g[1]+file] {
						t.Failf("%s was told twice that %s works on %s", task.Item, g[1], file)
					}
					pairs[g[1]+file] = true
				}
			}
		}
	}
}

var overlapTold = regexp.MustCompile(`(?m)^At work on the same files as you: (T\d+) .*: (f\d.*)\.$`)
