package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"centurion"
)

const (
	r16Quick = 10 // starts of 2 to 8 simultaneous hosts; each takes one to two seconds
	r16Full  = 200
	// r16Planned is how often the missions also have a plan: all of them need room for it in one project.
	r16Planned = 3
	r16Limit   = time.Second // until the others know
)

// rivals are hosts that start simultaneously in one project.
type rivals struct {
	t      *T
	p      *project
	starts []int       // numbers of hosts
	start  *sync.Mutex // held by the project whose hosts start: only those may get in each other's way

	hosts, owned, clients, refused, killed int
	told                                   []centurion.Event
	known                                  []time.Duration // from the start of those that do not own the project until they said so
}

// r16 repeatedly starts 2 to 8 hosts in one project, and every third time kills the owner.
func r16(ctx context.Context, t *T) {
	r := &rivals{t: t, start: &sync.Mutex{}}
	t.Binary()
	starts := t.Scale(r16Quick, r16Full)
	quick := func() *squad { return &squad{latency: 100 * time.Millisecond} } // long enough that the others find the owner working
	first, second := r.begin(quick(), starts-starts/2), r.begin(quick(), starts/2)
	planned := r.begin(&squad{latency: 20 * time.Millisecond, workers: 1}, r16Planned)
	all := [][]*rivals{{first}, {second, planned}} // one after the other; a host that takes over lets some time pass
	t.InParallel(len(all), len(all), func(i int) {
		for _, one := range all[i] {
			one.rounds(ctx)
		}
	})
	for _, one := range []*rivals{first, second, planned} {
		r.add(one)
	}
	t.Figure("starts", starts+r16Planned)
	t.Figure("hosts", r.hosts)
	t.Figure("owners", r.owned)
	t.Figure("clients", r.clients)
	t.Figure("refused", r.refused)
	t.Figure("owners killed", r.killed)
	t.Figure("others know, p99", quantile(r.known, 0.99))
	if worst := quantile(r.known, 1); worst > r16Limit {
		t.Failf("one of the others needed %s to know that the project is owned", worst)
	}
}

// begin creates a project for the given number of host starts.
func (r *rivals) begin(s *squad, starts int) *rivals {
	one := &rivals{t: r.t, start: r.start, p: r.t.Project(s.files())}
	s.serve(one.p)
	for range starts {
		one.starts = append(one.starts, 2+r.t.Rand.IntN(7))
	}
	return one
}

func (r *rivals) add(o *rivals) {
	r.hosts, r.owned, r.clients, r.refused, r.killed = r.hosts+o.hosts, r.owned+o.owned, r.clients+o.clients, r.refused+o.refused, r.killed+o.killed
	r.known = append(r.known, o.known...)
}

// rounds repeatedly starts hosts in the project, and finally resumes what is left.
func (r *rivals) rounds(ctx context.Context) {
	for n, hosts := range r.starts {
		if ctx.Err() != nil || r.t.Failed() {
			return
		}
		r.round(hosts, n%3 == 2)
	}
	r.settle()
	check(r.t, r.p, r.told)
}

// round starts n hosts at once and watches who has the project's state open until they have ended.
func (r *rivals) round(n int, kill bool) {
	all := make([]*process, n)
	r.start.Lock()
	started := sync.OnceFunc(r.start.Unlock)
	defer started()
	for i := range all {
		all[i] = r.p.Start(runArgs("--ask", "allow")...)
	}
	r.hosts += n
	var victim *process
	owners := map[int]bool{}
	deadline := time.Now().Add(waitLimit)
	for {
		alive := 0
		for _, c := range all {
			if !c.Ended() {
				alive++
			}
		}
		if alive == 0 || time.Now().After(deadline) || r.t.ctx.Err() != nil {
			break
		}
		if !slices.ContainsFunc(all, func(c *process) bool { return !c.Ended() && !c.spoke() }) {
			started()
		}
		holders := r.holders(all)
		if len(holders) > 1 {
			r.t.Failf("%d hosts hold the project at the same moment", len(holders))
		}
		for _, c := range holders {
			owners[c.cmd.Process.Pid] = true
			if kill && victim == nil && r.registered(c) {
				victim = c
				c.Kill()
				r.killed++
			}
		}
		time.Sleep(4 * time.Millisecond) // other processes do the work
	}
	for _, c := range all {
		r.ended(c, victim, owners)
	}
	r.owned += len(owners)
	r.t.Logf("%d hosts, %d owners", n, len(owners))
}

// spoke reports whether a process has printed anything yet.
func (c *process) spoke() bool {
	info, err := os.Stat(c.out)
	return err == nil && info.Size() > 0
}

// holders lists the processes that hold the project's lock, according to the kernel.
func (r *rivals) holders(all []*process) []*process {
	db := r.p.Database()
	if db == "" {
		return nil
	}
	inode := inodeOf(filepath.Join(filepath.Dir(db), "lock"))
	var holders []*process
	for line := range strings.Lines(readAll("/proc/locks")) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF; with -> one that waits
		if len(f) < 6 || f[1] != "FLOCK" || f[3] != "WRITE" || !strings.HasSuffix(f[5], ":"+inode) {
			continue
		}
		for _, c := range all {
			// The list is no snapshot: while it changes a line may be read twice.
			if strconv.Itoa(c.cmd.Process.Pid) == f[4] && !slices.Contains(holders, c) {
				holders = append(holders, c)
			}
		}
	}
	return holders
}

// registered reports whether the file next to the lock names this process.
func (r *rivals) registered(c *process) bool {
	var o struct{ PID int }
	text := readAll(filepath.Join(filepath.Dir(r.p.Database()), "owner.json"))
	return json.Unmarshal([]byte(text), &o) == nil && o.PID == c.cmd.Process.Pid
}

// ended checks how one host ended: it owned the project, was a client of the owner, or named it.
func (r *rivals) ended(c, victim *process, owners map[int]bool) {
	code := c.Wait(r.t, waitLimit)
	told := r.p.Told(c)
	r.told = append(r.told, told...)
	owned := owners[c.cmd.Process.Pid]
	switch {
	case c == victim:
	case code == 0 && owned:
	case code == 0:
		r.clients++
		if len(told) > 0 {
			r.known = append(r.known, told[0].Time.Sub(c.start))
		}
	case code == 2:
		r.refused++
		r.known = append(r.known, c.ended.Sub(c.start))
		if said := c.Stderr(); !strings.Contains(said, "another centurion works in") || !namesProcess(said) {
			r.t.Failf("a host exited with 2 and does not say that another owns the project: %s", said)
		}
	default:
		r.t.Failf("a host ended with %d (owner: %t): %s", code, owned, lastLines(c.Stderr(), 3))
	}
}

// namesProcess reports whether a message names the process that owns a project.
func namesProcess(said string) bool {
	_, rest, found := strings.Cut(said, "(process ")
	var pid int
	n, err := fmt.Sscan(rest, &pid)
	return found && n == 1 && err == nil && pid > 0
}

// settle resumes what the killed owners have left.
func (r *rivals) settle() {
	for range 4 * r16Full {
		_, out := r.p.Run("ps", "--format", "json")
		var all []struct {
			ID     string
			Status centurion.MissionStatus
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			r.t.Failf("ps says %q: %v", out, err)
			return
		}
		id := ""
		for _, m := range all {
			if m.Status.Alive() {
				id = m.ID
			}
		}
		if id == "" || r.t.ctx.Err() != nil {
			return
		}
		c := r.p.Start("resume", "--format", "json", "--ask", "allow", id)
		if code := c.Wait(r.t, waitLimit); code != 0 {
			r.t.Failf("what a killed owner left cannot be resumed: %d: %s", code, lastLines(c.Stderr(), 3))
			return
		}
		r.told = append(r.told, r.p.Told(c)...)
	}
}
