package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/store"
)

const (
	o4Quick = 3 // missions whose host is killed
	o4Full  = 30
	o4Kills = 4 // of the host of each

	o4AtOnce = 2 // missions
	// o4Together is how long a worker waits until all have written their first file, and so have a checkout that begins at
	// the base: only then their work can be in each other's way.
	o4Together = waitLimit
)

// hands is a squad in a repository. Each worker first writes its own file; when all have, each does its deed, many of which conflict
// with another's, and leaves the line "work of T…" in one place.
type hands struct {
	squad
	p *project

	own   sync.Mutex
	begun map[string]bool // has written its own file
	sent  map[string]int  // conflicts reported to a worker, according to its history

	looking sync.Mutex // protects the fields below
	looked  time.Time
	titles  string // of the commits on the mission's branch
}

// o4Checks are the numbers of checks at once with which the missions run, in turn. Each has one mission that is not killed.
var o4Checks = []int{1, 2, 8}

// deed is what one worker does after its own file.
type deed struct {
	share string // with read and write it adds its line to this file, whatever its content then
	do    string // or it runs this repeatable command
	after string // only when that item's work is on the mission's branch: otherwise the two would wait for each other
	mend  string // the command that joins both sides after a conflict
	red   string // a command run first, whose work comes back: a check is red with it
}

const unmark = `sed -i -e '/^<<<<<<< /d' -e '/^=======/d' -e '/^>>>>>>> /d' -e '/^||||||| /d' `

// once adds a line to a file if it is not there.
func once(line, file string) string {
	return fmt.Sprintf("{ grep -qs '%s' %s || echo '%s' >> %s; }", line, file, line, file)
}

var o4Deeds = map[string]deed{
	"T1": {share: "shared.txt"}, "T2": {share: "shared.txt"}, "T3": {share: "shared.txt"},
	"T4": {share: "shared.txt"}, "T5": {share: "shared.txt"}, "T6": {share: "shared.txt"},
	"T7": {red: "echo half > half7.txt", do: `rm -f half7.txt && mkdir -p 'deep/a b/ü' && echo 'work of T7' > "deep/a b/ü/-x" && printf x > "$(printf 'deep/tab\there')" && ln -sfn ../list.txt deep/link && sed -i 's/^slot 7: .*/slot 7: T7/' list.txt`},
	"T8": {after: "T7", red: "sed -i 's/^slot 2: .*/nothing/' list.txt", do: "sed -i -e 's/^nothing$/slot 2: T8/' -e 's/^slot 2: .*/slot 2: T8/' list.txt && mkdir -p log && echo 'work of T8' > log/T8"},
	// One renames a file, the other changes it: both hold.
	"T9":  {do: "mkdir -p new && { test -e new/a.txt || mv old/a.txt new/a.txt; } && sed -i '1s/.*/work of T9/' new/a.txt"},
	"T10": {after: "T9", do: once("work of T10", "old/a.txt"), mend: "f=old/a.txt; test ! -e new/a.txt || f=new/a.txt; " + unmark + "$f; " + once("work of T10", "$f")},
	// One deletes a file, the other changes it: a conflict; the change wins.
	"T11": {do: "rm -f gone.txt && mkdir -p log && echo 'work of T11' > log/T11"},
	"T12": {after: "T11", do: once("work of T12", "gone.txt"), mend: "echo 'work of T12' > gone.txt"},
	// Both change one binary file: a conflict that cannot be marked.
	"T13": {red: "echo half > half13.txt", do: `rm -f half13.txt && mkdir -p bin && printf 'B\000work of T13\n\000' > bin/shared.bin`},
	"T14": {after: "T13", do: `mkdir -p bin && printf 'B\000work of T14\n\000' > bin/shared.bin`, mend: `printf 'B\000work of T13\n\000work of T14\n\000' > bin/shared.bin`},
	// One makes a file executable, the other changes what it does: both hold.
	"T15": {red: "echo 'echo again' >> run.sh && mkdir -p log && echo 'work of T15' > log/T15", // its own check is green, the mission's is red
		do: "sed -i '/^echo again$/d' run.sh && chmod +x run.sh && mkdir -p log && echo 'work of T15' > log/T15"},
	"T16": {after: "T15", do: once("# work of T16", "run.sh")},
	// Both create the same file: a conflict; both lines stay.
	"T17": {do: "mkdir -p new && echo 'work of T17' > new/same.txt"},
	"T18": {after: "T17", do: "mkdir -p new && echo 'work of T18' > new/same.txt", mend: unmark + "new/same.txt && " + once("work of T18", "new/same.txt")},
	// Both rename one file, to different names: a conflict; both names stay.
	"T19": {do: "{ test -e m1.txt || mv moved.txt m1.txt; } && " + once("work of T19", "m1.txt")},
	"T20": {after: "T19", do: "{ test -e m2.txt || mv moved.txt m2.txt; } && " + once("work of T20", "m2.txt"),
		mend: "rm -f moved.txt; test -e m2.txt || cp m1.txt m2.txt; test -e m1.txt || cp m2.txt m1.txt; " + unmark + "m1.txt m2.txt; sed -i '/work of T20/d' m1.txt; sed -i '/work of T19/d' m2.txt; " +
			once("work of T19", "m1.txt") + "; " + once("work of T20", "m2.txt")},
}

// o4Check is the mission's own check. It is green on the base.
const o4Check = `fail() { echo "not ok: $1"; exit 1; }
if grep -rIn --exclude-dir=.git --exclude=check.sh -e '^<<<<<<< ' -e '^>>>>>>> ' .; then fail "conflict markers"; fi
test -z "$(sort shared.txt | uniq -d)" || fail "a line of shared.txt stands twice"
if grep -v -e '^# Shared$' -e '^work of T[0-9]*$' shared.txt; then fail "shared.txt"; fi
if grep -v '^slot [0-9]: [a-zT0-9]*$' list.txt; then fail "list.txt"; fi
test "$(wc -l < list.txt)" -eq 9 || fail "the length of list.txt"
n=0; for f in old/a.txt new/a.txt; do test ! -e $f || n=$((n+1)); done
test $n -eq 1 || fail "a.txt stands in $n places"
test "$(sh run.sh)" = "it runs" || fail "run.sh"
echo ok
`

func o4Files() map[string]string {
	var list, lines strings.Builder
	for i := range 9 {
		fmt.Fprintf(&list, "slot %d: free\n", i+1)
	}
	for i := range 40 {
		fmt.Fprintf(&lines, "line %d\n", i+1)
	}
	return map[string]string{
		personRules: squadRules, "check.sh": o4Check, "shared.txt": "# Shared\n", "list.txt": list.String(), "old/a.txt": lines.String(),
		"gone.txt": "to be deleted\n", "moved.txt": lines.String() + "moved\n", "run.sh": "echo it runs\n", "bin/shared.bin": "B\x00old\x00",
		"has.sh": "grep -qs \"file of $1\" out/$1.txt || { echo \"not ok: no file of $1\"; exit 1; }\ngrep -rqaw --exclude-dir=.git \"work of $1\" . || { echo \"not ok: no work of $1\"; exit 1; }\necho ok\n",
	}
}

func (c *hands) plan() string {
	var b strings.Builder
	b.WriteString("# Many hands\n- verify: `sh check.sh`\n")
	for i := range c.workers {
		id := item(i)
		fmt.Fprintf(&b, "- [ ] %s Do the deed %s @worker\n  - verify: `sh has.sh %s`\n", id, id, id)
	}
	return b.String()
}

// newHands makes a project with worktrees of a kind, whose host runs so many checks at once.
func newHands(t *T, kind string, checks int) *hands {
	c := &hands{squad: squad{workers: len(o4Deeds), latency: 5 * time.Millisecond}, begun: map[string]bool{}, sent: map[string]int{}}
	c.text, c.deed = c.plan(), c.worker
	c.p = t.Project(o4Files())
	c.p.gitInitWith(kind, fmt.Sprintf(`, "max_checks": %d`, checks))
	c.serve(c.p)
	return c
}

// o4Look is how often all waiters together check the mission's branch: it takes a git process, and the machine is there for the
// mission.
const o4Look = 150 * time.Millisecond

// onBranch reports whether an item's work is on the mission's branch.
func (c *hands) onBranch(id string) bool {
	c.looking.Lock()
	defer c.looking.Unlock()
	if time.Since(c.looked) > o4Look {
		c.titles, _ = c.p.tryGit("log", "--format=%s", "--branches=centurion/*/mission") // there are none without a branch
		c.looked = time.Now()
	}
	return strings.Contains("\n"+c.titles, "\n"+id+" ")
}

// until waits for something that other workers do, and reports whether it happened.
func until(limit time.Duration, f func() bool) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(30 * time.Millisecond) { // other processes do it
		if f() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

var numbered = regexp.MustCompile(`(?m)^\s*\d+\| ?(.*)$`)

// worker answers based only on the history, like a squad's.
func (c *hands) worker(r scripted.Request) scripted.Answer {
	g := ownItem.FindStringSubmatch(r.First())
	if g == nil {
		return scripted.Answer{Say: "I have no item."}
	}
	id := "T" + g[1]
	d := o4Deeds[id]
	calls, back, told := since(r)
	c.own.Lock()
	c.sent[id] = max(c.sent[id], told)
	c.own.Unlock()
	done := func(id string) scripted.Answer { return scripted.Answer{Say: id + " is done."} }
	call := func(name string, args map[string]any) scripted.Answer {
		return scripted.Answer{Say: "I work.", Calls: []scripted.Call{tool(name, args)}}
	}
	last := past{}
	if len(calls) > 0 {
		last = calls[len(calls)-1]
	}
	if own := "out/" + id + ".txt"; !c.wroteOwn(r, own) {
		return call("write", map[string]any{"filePath": own, "content": "file of " + id + "\n"})
	}
	c.together(id)
	if d.share != "" {
		return c.share(d, id, last, call, done)
	}
	command := d.do
	switch {
	case d.red != "" && back == "":
		command = d.red
	case strings.Contains(back, "does not fit") && d.mend != "":
		command = d.mend
	}
	if d.after != "" && back == "" && last.name != "bash" {
		until(waitLimit, func() bool { return c.onBranch(d.after) })
	}
	if last.name == "bash" && !last.cut() && strings.Contains(last.result, "did it") {
		return done(id)
	}
	a := call("bash", map[string]any{"command": "{ " + command + "; } && echo did it", "description": "Work"})
	a.Delay = time.Duration(len(calls)) * 20 * time.Millisecond
	return a
}

// share adds a line to a file shared with others: it reads it, with any conflict markers, and writes the union of both sides.
func (c *hands) share(d deed, id string, last past, call func(string, map[string]any) scripted.Answer, done func(string) scripted.Answer) scripted.Answer {
	read := call("read", map[string]any{"filePath": d.share})
	switch {
	case last.name == "write" && strings.Contains(last.args, d.share) && !last.cut() && !strings.Contains(strings.ToLower(last.result), "error"):
		return done(id)
	case last.name == "read" && !last.cut() && numbered.MatchString(last.result):
	default:
		return read
	}
	var lines []string
	seen := map[string]bool{}
	marked := false
	for _, m := range numbered.FindAllStringSubmatch(last.result, -1) {
		switch l := strings.TrimRight(m[1], "\r"); {
		case strings.HasPrefix(l, "<<<<<<<"), strings.HasPrefix(l, "======="), strings.HasPrefix(l, ">>>>>>>"), strings.HasPrefix(l, "|||||||"):
			marked = true
		case !seen[l]:
			seen[l] = true
			lines = append(lines, l)
		}
	}
	if own := "work of " + id; !seen[own] {
		lines = append(lines, own)
	} else if !marked {
		return done(id)
	}
	return call("write", map[string]any{"filePath": d.share, "content": strings.Join(lines, "\n") + "\n"})
}

// since returns the calls since the work was last returned, the message then, and the total number of reported conflicts.
func since(r scripted.Request) (calls []past, back string, conflicts int) {
	results := map[string]string{}
	for _, m := range r.Messages() {
		if m.Role == "tool" {
			results[m.CallID] = m.Text
		}
	}
	for i, m := range r.Messages() {
		switch {
		case m.Role == "user" && i > 1 && (strings.Contains(m.Text, "does not fit") || strings.Contains(m.Text, "breaks a check") ||
			strings.Contains(m.Text, "acceptance command") || strings.Contains(m.Text, "conflict markers")):
			calls, back = nil, m.Text
			conflicts += strings.Count(m.Text, "Your work does not fit")
		case m.Role == "assistant":
			for _, x := range m.Calls {
				calls = append(calls, past{x.Name, x.Arguments, results[x.ID]})
			}
		}
	}
	return calls, back, conflicts
}

func (c *hands) wroteOwn(r scripted.Request, own string) bool {
	for _, x := range history(r) {
		if x.name == "write" && strings.Contains(x.args, own) && !x.cut() && x.result != "" {
			return true
		}
	}
	return false
}

// together waits until every worker has written its own file.
func (c *hands) together(id string) {
	c.own.Lock()
	c.begun[id] = true
	c.own.Unlock()
	until(o4Together, func() bool {
		c.own.Lock()
		defer c.own.Unlock()
		return len(c.begun) == c.workers
	})
}

// tally is the result of the missions of O4.
type tally struct {
	merges, conflicts, returns, lost, red, commits, kills int
	took                                                  time.Duration // from the first merge to the last one
}

// o4 lets twenty workers write in conflict with each other, and counts the losses.
func o4(ctx context.Context, t *T) {
	var sum tally
	t.Binary()
	sums := make([]tally, len(o4Checks)+t.Scale(o4Quick, o4Full))
	lives := make([][]time.Duration, len(sums)) // of the hosts of each mission; those of the first ones are not killed
	for n := len(o4Checks); n < len(sums); n++ {
		for range o4Kills {
			lives[n] = append(lives[n], 300*time.Millisecond+time.Duration(t.Rand.Int64N(int64(4*time.Second))))
		}
	}
	t.InParallel(len(sums), o4AtOnce, func(n int) {
		if !t.Failed() {
			t.Part(fmt.Sprintf("mission%d", n), func(part *T) {
				sums[n].mission(part, workspaces[(n%len(o4Checks)+n/len(o4Checks))%len(workspaces)], o4Checks[n%len(o4Checks)], lives[n])
			})
		}
	})
	if ctx.Err() != nil {
		return
	}
	for _, s := range sums {
		sum.add(s)
	}
	t.Figure("merges", sum.merges)
	t.Figure("conflicts", sum.conflicts)
	t.Figure("returns", sum.returns)
	t.Figure("kills", sum.kills)
	t.Figure("commits", sum.commits)
	t.Figure("commits lost", sum.lost)
	t.Figure("red commits", sum.red)
	for i, checks := range o4Checks {
		if s := sums[i]; s.merges > 0 {
			t.Figure(fmt.Sprintf("a merge with its checks, %d at once", checks), s.took/time.Duration(s.merges))
		}
	}
	if sum.conflicts == 0 {
		t.Failf("no two workers were in each other's way, so that this proves nothing")
	}
}

func (s *tally) add(o tally) {
	s.merges, s.conflicts, s.returns, s.lost = s.merges+o.merges, s.conflicts+o.conflicts, s.returns+o.returns, s.lost+o.lost
	s.red, s.commits, s.kills, s.took = s.red+o.red, s.commits+o.commits, s.kills+o.kills, s.took+o.took
}

// mission runs a mission with so many checks at once, kills all of its hosts but the last after a time each, and checks the result.
func (s *tally) mission(t *T, kind string, checks int, lives []time.Duration) {
	c := newHands(t, kind, checks)
	p := c.p
	before := p.git("rev-parse", "HEAD")
	var told []centurion.Event
	proc := p.Start(runArgs("--ask", "allow")...)
	for _, life := range lives {
		timer := time.NewTimer(life)
		select {
		case <-timer.C:
		case <-proc.done:
		case <-t.ctx.Done():
		}
		timer.Stop()
		if proc.Ended() || t.ctx.Err() != nil {
			break
		}
		proc.Kill()
		s.kills++
		told = append(told, p.Told(proc)...)
		if len(told) == 0 && nothingStarted(p) {
			proc = p.Start(runArgs("--ask", "allow")...)
			continue
		}
		proc = p.Start("resume", "--format", "json")
	}
	code := proc.Wait(t, waitLimit)
	told = append(told, p.Told(proc)...)
	if code != 0 {
		t.Failf("the mission ended with %d: %s\n%s\n%s", code, lastLines(proc.Stdout(), 1), lastLines(proc.Stderr(), 3), p.undone(t.ctx))
		return
	}
	check(t, p, told)
	if now := p.git("rev-parse", "HEAD"); now != before || p.git("status", "--porcelain") != "" {
		t.Failf("the person's branch stands at %s, not %s; status: %q", now, before, p.git("status", "--porcelain"))
	}
	s.facts(t, c, len(lives))
	s.branch(t, c, before)
	s.merged(t, c)
}

// facts compares the journal's merges and conflicts with the tasks and with what the sessions were told.
func (s *tally) facts(t *T, c *hands, kills int) {
	db, err := store.Open(t.ctx, c.p.Database())
	t.Must(err)
	defer db.Close()
	facts, err := allEvents(t.ctx, db)
	t.Must(err)
	missions, err := db.Missions(t.ctx)
	t.Must(err)
	tasks, err := db.Tasks(t.ctx, missions[0].ID)
	t.Must(err)
	conflicts, merged := map[string]int{}, map[string]int{}
	var first, last time.Time
	branch := "\n" + c.p.git("rev-list", c.p.missionBranch()) + "\n"
	for _, e := range facts {
		switch e.Type {
		case centurion.EventMergeConflict:
			conflicts[e.Task]++
			s.conflicts++
		case centurion.EventMergeDone:
			d, err := event.Decode[event.MergeData](e)
			t.Must(err)
			if s.merges++; !strings.Contains(branch, "\n"+d.Commit+"\n") {
				s.lost++
				t.Failf("merge.done %d tells of %s, which is not on the mission's branch", e.Seq, d.Commit)
			}
			merged[d.Commit]++
			if last = e.Time.Time; first.IsZero() {
				first = last
			}
		}
	}
	s.took += last.Sub(first)
	for commit, n := range merged {
		if n > 1 {
			t.Failf("I2 the merge of %s was told %d times", commit, n)
		}
	}
	for _, task := range tasks {
		s.returns += task.Returns
		for _, l := range task.Landed {
			if merged[l.Commit] == 0 {
				t.Failf("I1 the merge of %s of %s was never told", l.Commit, task.Item)
			}
		}
		if len(task.Landed) != 1 {
			t.Failf("%s landed %d times: %+v", task.Item, len(task.Landed), task.Landed)
		}
		// A host that dies between the fact and the message finds the same conflict again.
		if n, told := conflicts[task.ID], c.sent[task.Item]; told > n || n > 0 && told == 0 || kills == 0 && told != n {
			t.Failf("%s had %d conflicts and its session was told of %d", task.Item, n, told)
		}
		if task.Checkout != nil {
			t.Failf("%s has ended and still has a checkout: %s", task.Item, task.Checkout.Dir)
		}
	}
}

// branch checks out every commit of the mission's branch, runs the check, and counts the lines of the workers in the last one.
func (s *tally) branch(t *T, c *hands, base string) {
	p := c.p
	tip := p.missionBranch()
	for commit := range strings.FieldsSeq(p.git("rev-list", "--reverse", base+".."+tip)) {
		s.commits++
		dir := p.export(commit)
		cmd := exec.Command("sh", "check.sh")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			s.red++
			t.Failf("the check is red at %s (%s): %s", commit, p.git("log", "-1", "--format=%s", commit), lastLines(string(out), 3))
		}
	}
	dir := p.export(tip)
	for i := range c.workers {
		id := item(i)
		out, _ := exec.Command("grep", "-rhaow", "--exclude-dir=.git", "work of "+id, dir).Output() // it fails without matches
		if n := strings.Count(string(out), "\n"); n != 1 {
			if n == 0 {
				s.lost++
			}
			t.Failf("the work of %s stands %d times in the last commit", id, n)
		}
		if got := readAll(filepath.Join(dir, "out", id+".txt")); got != "file of "+id+"\n" {
			t.Failf("out/%s.txt holds %q", id, got)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Failf("run.sh is not executable: %v", err)
	}
	if link, err := os.Readlink(filepath.Join(dir, "deep", "link")); link != "../list.txt" {
		t.Failf("deep/link leads to %q: %v", link, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".opencode")); err == nil {
		t.Failf(".opencode/ was committed")
	}
}

// merged merges the work into the person's branch and collects the rest.
func (s *tally) merged(t *T, c *hands) {
	p := c.p
	want := p.git("rev-parse", p.missionBranch()+"^{tree}")
	if code, out := p.Run("merge"); code != 0 {
		t.Failf("centurion merge ended with %d: %s", code, lastLines(out+p.children[len(p.children)-1].Stderr(), 4))
		return
	}
	if got := p.git("rev-parse", "HEAD^{tree}"); got != want || p.git("status", "--porcelain") != "" {
		t.Failf("after centurion merge the tree is %s, not %s, and git status says %q", got, want, p.git("status", "--porcelain"))
	}
	for _, what := range p.leftInGit(true) {
		t.Failf("after centurion gc: %s", what)
	}
}
