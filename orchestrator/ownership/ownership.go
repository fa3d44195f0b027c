// Package ownership tracks which session of a mission works on which files: it claims files before a session writes them, refuses those
// of others, and tells each about its neighbours. When tasks may start is decided above it.
package ownership

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// Files are the files of one mission and their holders. Its methods are safe for concurrent use.
type Files struct {
	claims.Registry
	st    *state.Mission
	iso   *isolation.Checkouts
	plan  *plan.Plan
	slots *slots.Pool
}

// New returns the files of a mission, all of them free.
func New(st *state.Mission, iso *isolation.Checkouts, p *plan.Plan, pool *slots.Pool) *Files {
	return &Files{st: st, iso: iso, plan: p, slots: pool}
}

// Claim claims files for a session and records it with its task. The error has centurion.KindConflict if another session holds a file,
// and names the holder for the model; then nothing is claimed.
func (m *Files) Claim(ctx context.Context, c *isolation.Seat, files []string) error {
	wider, held := m.Settle(c.Holder, files, c.Above...)
	if len(held) > 0 {
		return &centurion.Error{Kind: centurion.KindConflict, Msg: held[0].String() + ", which another agent is working on",
			Hint: "leave it alone; if your work needs a change there, say so in your result. " + tools.Overlaps(false)}
	}
	if len(wider) == 0 {
		return nil
	}
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		t, err := tx.Task(c.HoldsFor)
		if err != nil {
			return err
		}
		t.Claims = append(t.Claims, wider...)
		slices.Sort(t.Claims)
		t.Claims = slices.Compact(t.Claims)
		if err := tx.PutTask(&t); err != nil {
			return err
		}
		_, err = tx.Append(state.TaskFact(t, centurion.EventTaskUpdated))
		return err
	})
}

// ClaimWritten claims what a command has written in its own checkout.
func (m *Files) ClaimWritten(ctx context.Context, c *isolation.Seat) error {
	if c.HoldsFor == "" { // the mission's own agent holds nothing
		return c.Where.Keep(ctx)
	}
	changed, err := c.Where.Save(ctx)
	if err != nil || len(changed) == 0 {
		return err
	}
	return m.Claim(ctx, c, m.iso.InProject(changed))
}

// HoldAgain restores the claims of tasks that had started. After a restart this happens for all before any continues: their work is in
// their checkouts, and the first could otherwise write another's files.
func (m *Files) HoldAgain(tasks ...centurion.Task) {
	tasks = slices.DeleteFunc(slices.Clone(tasks), func(t centurion.Task) bool { return t.Status.Ended() || t.Attempt == 0 })
	for _, t := range tasks {
		m.Restore(t.Holder(), t.Claims)
	}
	p, err := m.plan.Read()
	if err != nil || p.Doc == nil {
		return // nothing is launched without the plan, and they claim again once it is readable
	}
	for _, t := range tasks {
		if it, ok := p.Doc.Item(t.Item); ok && !t.Reviews {
			_, _ = m.Take(t.Item, it.Files) // if a person has made the plan overlap, the other waits for its turn
		}
	}
}

// othersTold is how many others a status lists with their files. Every line costs tokens in each request.
const othersTold = 8

// WhoElse tells the session who else works on which files, one per line; of very many it only names the rest. A holder of files is only
// told about those working next to its own. The session's own tasks are marked as such: what it has delegated is no conflict.
func (m *Files) WhoElse(holder, session string) string {
	titles, does := map[string]string{}, map[string]string{}
	for _, r := range m.st.Runs() {
		t := r.Now.Load()
		name := t.Holder()
		titles[name] = t.Title
		waits, own := t.Attempt == 0 && !r.Working.Load(), t.Parent != "" && t.Parent == session
		switch {
		case own && waits:
			does[name] = fmt.Sprintf("is your own task, which has not begun%s; its files", m.waitsFor(t))
		case own:
			does[name] = "is being worked on by your own task"
		case waits:
			does[name] = "is taken by another agent that has not begun yet"
		}
	}
	held, mine := m.Others(holder), m.Of(holder)
	free := m.unnamed(holder, session, held)
	if len(mine) > 0 {
		maps.DeleteFunc(held, func(_ string, files []string) bool { return beside(files, mine) == 0 })
	}
	names := slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(beside(held[b], mine)-beside(held[a], mine), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, other := range names[:min(len(names), othersTold)] {
		who := other
		if title := titles[other]; title != "" && title != other {
			who += " (" + centurion.Clip(title, 60) + ")"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", who, cmp.Or(does[other], "is being worked on by another agent"), inWords(held[other], m.Wider(other)))
	}
	if rest := names[min(len(names), othersTold):]; len(rest) > 0 {
		fmt.Fprintf(&b, "%d more are being worked on, on other files: %s\n", len(rest), centurion.Clip(strings.Join(rest, ", "), 200))
	}
	if len(free) > 0 {
		for i, name := range free {
			if title := titles[name]; title != "" && title != name {
				free[i] += " (" + centurion.Clip(title, 60) + ")"
			}
		}
		fmt.Fprintf(&b, "%s %s\n", anyFile, centurion.Clip(strings.Join(free, ", "), 300))
	}
	return b.String()
}

// inWords lists a session's files, those given by the plan separately from those it has written in addition.
func inWords(files, wider []string) string {
	planned := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return slices.Contains(wider, f) })
	if len(planned) == 0 || len(planned) == len(files) {
		return centurion.Clip(strings.Join(files, ", "), 200)
	}
	return centurion.Clip(strings.Join(planned, ", "), 200) + "; outside its files: " + centurion.Clip(strings.Join(wider, ", "), 200)
}

// anyFile introduces items whose files are neither named in the plan nor written yet.
const anyFile = "Being worked on by other agents, and may change any file, because the plan names none:"

// unnamed lists the running items, by the names they would hold files under, whose task may write but holds no files, except the
// holder's own and those delegated by the session: an item without named files holds none before something is written for it.
func (m *Files) unnamed(holder, session string, held map[string][]string) (names []string) {
	for _, r := range m.st.Runs() {
		t := r.Now.Load()
		name := t.Holder()
		begun := t.Attempt > 0 || r.Working.Load()
		if r.Item == "" || name == holder || held[name] != nil || !begun || t.Sub != nil || t.Reviews || t.Parent == session {
			continue
		}
		if agent, err := m.st.CarriesOut(*t); err == nil && (agent.Holds("write") || agent.Holds("edit")) {
			names = append(names, name)
		}
	}
	return names
}

// waitsFor says what a task with files waits for before it starts, usually a slot. It is "" if it is about to start.
func (m *Files) waitsFor(run *centurion.Task) string {
	t, err := m.st.Store.Task(m.st.Ctx, run.ID)
	switch {
	case err == nil && t.Reason != "":
		return " and waits for " + t.Reason
	case m.slots.Full(run.Agent):
		return " and waits for a free slot"
	}
	return ""
}

// beside returns 1 if some of the files are, or may be, in a directory of mine, else 0.
func beside(files, mine []string) int {
	for _, f := range files {
		if slices.ContainsFunc(mine, func(x string) bool { return path.Dir(x) == path.Dir(f) }) {
			return 1
		}
	}
	return 0
}

// News tells a task's session about others in its files: who changes the same ones in another checkout, once per holder and file, and,
// if all write in one directory, which files it got or lost.
func (m *Files) News(ctx context.Context, c *agent.Conversation) ([]centurion.Message, error) {
	if c.Task == nil || c.Task.ID != c.HoldsFor { // a sub-agent's parent is told
		return nil, nil
	}
	var lines []string
	shared := map[string][]string{}
	if m.iso.Isolated() {
		shared = m.Shared(c.Holder)
		maps.DeleteFunc(shared, func(other string, _ []string) bool { return slices.Contains(c.Above, other) })
	} else {
		lines = m.Words(c.Holder)
	}
	if len(lines)+len(shared) == 0 {
		return nil, nil
	}
	t, err := m.st.Store.Task(ctx, c.Task.ID)
	if err != nil {
		return nil, err
	}
	told := slices.Clone(t.Overlaps)
	for _, other := range slices.Sorted(maps.Keys(shared)) {
		name := m.atWork(other)
		if name == "" {
			continue
		}
		var files []string
		for _, f := range shared[other] {
			if pair := other + " " + f; !slices.Contains(told, pair) {
				told, files = append(told, pair), append(files, f)
			}
		}
		if len(files) > 0 {
			lines = append(lines, fmt.Sprintf("At work on the same files as you: %s: %s.", name, brief.Some(files)))
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	if m.iso.Isolated() {
		lines = append(lines, tools.Overlaps(true))
	}
	var msg centurion.Message
	err = m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.Current(); err != nil {
			return err
		}
		t, err := tx.Task(c.Task.ID)
		if err != nil {
			return err
		}
		t.Overlaps = told
		if err := tx.PutTask(&t); err != nil {
			return err
		}
		rec := c.Sess.Record()
		msg, err = session.Say(tx, &rec, centurion.OriginHost, strings.Join(lines, "\n"))
		return err
	})
	return []centurion.Message{msg}, err
}

// atWork describes the holder of files by its task's title, or returns "" if it has not started.
func (m *Files) atWork(holder string) string {
	for _, r := range m.st.Runs() {
		t := r.Now.Load()
		if t.Holder() != holder || t.Attempt == 0 && !r.Working.Load() {
			continue
		}
		if t.Title == "" {
			return holder
		}
		return holder + " (" + centurion.Clip(t.Title, 60) + ")"
	}
	return ""
}
