package trial

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"centurion"
)

const (
	r1Workers = 50
	r1Quick   = 100
	r1Full    = 2000
	// r1GitQuick are the kills of a mission in a repository, whose work goes through checkouts and merges.
	r1GitQuick = 12
	r1GitFull  = 400
	r1Each     = 34                     // kills per mission before it may end
	r1Latency  = 40 * time.Millisecond  // of every answer of the model
	r1Goal     = 500 * time.Millisecond // the 99th percentile of the recovery
	r1AtOnce   = 2                      // missions that continue to their end when all kills are done and nothing is measured any more
)

// killer kills the hosts of missions.
type killer struct {
	t     *T
	quota int // remaining kills

	left []*killed

	mu              sync.Mutex // protects the fields below
	kills, missions int
	inGit           int // missions in a repository
	sum             damage
	maybe           int             // calls answered as interrupted
	recovery        []time.Duration // from the start of a resume to its first fact
	inGitRecovery   []time.Duration
	request         []time.Duration // and to its first request at the model
}

// killed is a mission whose hosts were killed.
type killed struct {
	s    *squad
	p    *project
	told []centurion.Event
	c    *process // the last one; it may have been killed too
}

// r1 kills a host of 50 workers repeatedly at random moments, and then lets the mission end.
func r1(ctx context.Context, t *T) {
	k := &killer{t: t, quota: t.Scale(r1Quick, r1Full)}
	t.Binary()
	for k.quota > 0 && ctx.Err() == nil && !t.Failed() {
		k.mission(min(r1Each, k.quota), "")
	}
	for _, kind := range workspaces {
		k.quota = t.Scale(r1GitQuick, r1GitFull) / len(workspaces)
		for k.quota > 0 && ctx.Err() == nil && !t.Failed() {
			k.mission(min(r1Each, k.quota), kind)
		}
	}
	t.Measured()
	t.InParallel(len(k.left), r1AtOnce, func(i int) { k.end(k.left[i]) })
	t.Figure("kills", k.kills)
	t.Figure("missions", k.missions)
	t.Figure("of them in a repository", k.inGit)
	t.Figure("lost", k.sum.lost)
	t.Figure("twice", k.sum.twice)
	t.Figure("marked as maybe ran", k.maybe)
	t.Figure("recovery p50", quantile(k.recovery, 0.5))
	t.Figure("recovery p99", quantile(k.recovery, 0.99))
	t.Figure("first request p99", quantile(k.request, 0.99))
	t.Figure("recovery in a repository p50", quantile(k.inGitRecovery, 0.5))
	t.Figure("recovery in a repository, the longest", quantile(k.inGitRecovery, 1))
	if p50 := quantile(k.inGitRecovery, 0.5); p50 >= r1Goal { // too few for a 99th percentile
		t.Failf("half of the recoveries in a repository take %s and more, not below %s", p50, r1Goal)
	}
	if p99 := quantile(k.recovery, 0.99); p99 >= r1Goal {
		t.Failf("the recovery's 99th percentile is %s of %d, not below %s", p99, len(k.recovery), r1Goal)
	}
	if len(k.recovery)+len(k.inGitRecovery) < k.kills/4 {
		t.Failf("only %d recoveries of %d were measured", len(k.recovery), k.kills)
	}
}

// runArgs start the squad's mission. Repeated requests after many kills exceed the default token limit.
func runArgs(more ...string) []string {
	return slices.Concat([]string{"run", "--format", "json", "--model", "custom/m", "--max-per-agent", "50", "--max-tokens", "1000000000"}, more, []string{squadGoal})
}

// mission runs one mission, in a repository if workspaces names the kind of its worktrees, and kills its host the given number of times.
// [killer.end] ends it.
func (k *killer) mission(kills int, workspaces string) {
	t, git := k.t, workspaces != ""
	s := &squad{workers: r1Workers, latency: r1Latency, git: git}
	p := t.Project(s.files())
	if git {
		p.gitInitWith(workspaces, "")
		k.inGit++
	}
	s.serve(p)
	k.missions++
	begun := time.Now()
	var told []centurion.Event
	c := p.Start(runArgs("--ask", "allow")...)
	for n := range kills {
		if k.pause(c, git); c.Ended() || t.ctx.Err() != nil {
			break
		}
		c.Kill()
		told = append(told, k.afterKill(s, c, p)...)
		k.quota--
		if k.kills++; n == kills-1 {
			break
		}
		c = goOn(p, told)
	}
	t.Logf("%d kills, the last after %s", k.kills, time.Since(begun).Round(time.Millisecond))
	k.left = append(k.left, &killed{s, p, told, c})
}

// goOn resumes a mission after a kill, or starts it again if the killed host had not.
func goOn(p *project, told []centurion.Event) *process {
	if len(told) == 0 && nothingStarted(p) {
		return p.Start(runArgs("--ask", "allow")...)
	}
	return p.Start("resume", "--format", "json")
}

// end lets a mission end and checks it.
func (k *killer) end(m *killed) {
	t, s, p, c := k.t, m.s, m.p, m.c
	if c.Ended() && c.Code() == -int(syscall.SIGKILL) {
		c = goOn(p, m.told)
	}
	code := c.Wait(t, waitLimit)
	told := append(m.told, p.Told(c)...)
	if code != 0 {
		t.Failf("after the kills the mission ended with %d: %s\n%s\n%s", code, lastLines(c.Stdout(), 1), c.Stderr(), p.undone(t.ctx))
	}
	d := check(t, p, told)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sum.lost += d.lost
	k.sum.twice += d.twice
	for _, word := range s.twice(p) {
		k.sum.twice++
		t.Failf("I2 the ledger has %s", word)
	}
	if missing := s.unwritten(p); len(missing) > 0 {
		t.Failf("the mission is complete and %q", missing)
	}
	for _, e := range told {
		if e.Type == centurion.EventToolCompleted && strings.Contains(string(e.Data), "interrupted by a restart") {
			k.maybe++
		}
	}
	if s.git {
		for _, what := range p.leftInGit(false) {
			t.Failf("after centurion gc: %s", what)
		}
	}
	t.Logf("%d facts told; it ended after %s", len(told), c.ended.Sub(c.start).Round(time.Millisecond))
}

// pause waits for a random moment: for half of the hosts counted from the process start, for the others from its first fact, because
// otherwise a slow recovery would never be measured.
func (k *killer) pause(c *process, git bool) {
	if k.t.Rand.IntN(2) == 0 {
		c.Until(k.t, "\n", waitLimit)
	}
	life := moment(k.t.Rand)
	if git { // a merge takes longer than a transaction
		life *= time.Duration(1 + k.t.Rand.IntN(12))
	}
	k.sleep(c, life)
}

// moment returns how long a host lives.
func moment(r *rand.Rand) time.Duration {
	return 20*time.Millisecond + time.Duration(r.Int64N(int64(380*time.Millisecond)))
}

func (k *killer) sleep(c *process, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	case <-k.t.ctx.Done():
	}
}

// afterKill collects what a process has reported and how long it took to continue.
func (k *killer) afterKill(s *squad, c *process, p *project) []centurion.Event {
	told := p.Told(c)
	if c.cmd.Args[1] != "resume" {
		return told
	}
	if len(told) > 0 && !told[0].Type.EndsMission() {
		if s.git {
			k.inGitRecovery = append(k.inGitRecovery, told[0].Time.Sub(c.start))
		} else {
			k.recovery = append(k.recovery, told[0].Time.Sub(c.start))
		}
	}
	if at := s.firstRequest(c.start); !at.IsZero() {
		k.request = append(k.request, at.Sub(c.start))
	}
	return told
}

// nothingStarted reports whether the project has no mission: its host was killed before it had recorded one.
func nothingStarted(p *project) bool {
	code, out := p.Run("ps", "--format", "json")
	if code != 0 {
		p.t.Failf("I6 ps exited with %d after a kill at the start: %s", code, p.children[len(p.children)-1].Stderr())
	}
	return strings.TrimSpace(out) == "[]"
}
