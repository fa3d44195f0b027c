package orchestrator

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"centurion"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// OPAL-29, OPAL-30, OPAL-35, C-17: whatever is said, answered, compacted, taken back and copied in whatever order: each message is
// reached from its session's first one, every line is a history that a provider takes, and nothing that was stored is
// changed by what happens on another line or in a copy.
func TestAnyTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n)))
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		w := &grove{t: rt, tb: t, store: s, host: New(Config{Store: s, Workspace: ws}), stored: map[string]string{}}
		w.plant()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			w.step()
			w.check()
		}
	})
}

// OPAL-30, C-17: the copy of a conversation that was compacted is told the summary and what was kept, with its results cut as they
// were, and not what they stand for.
func TestForkOfASummary(t *testing.T) {
	s := storetest.Open(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	w := &grove{tb: t, store: s, host: New(Config{Store: s, Workspace: ws})}
	w.plant()
	id := w.sessions[0]
	w.answer(w.tree(id), 1)
	w.answer(w.tree(id), 2)
	w.compact(w.tree(id))
	w.answer(w.tree(id), 1)
	all := w.tree(id)
	whole := session.History(all.Line(all.Leaf))
	if n := len(whole); n != 6 { // the goal with the summary, an answer with two results, one with one
		t.Fatalf("the original is told %d messages: %+v", n, whole)
	}
	w.fork(all, "")
	w.fork(all, "-1")
	w.fork(all, "-2")
}

// grove is sessions that grow into trees.
type grove struct {
	t        *rapid.T // nil where nothing is left to chance
	tb       testing.TB
	store    *store.Store
	host     *Host
	sessions []string
	stored   map[string]string // what was stored, by message
	calls    int
}

func (w *grove) must(err error) {
	if err != nil {
		w.fatalf("%v (%s)", err, centurion.HintOf(err))
	}
}

func (w *grove) fatalf(format string, args ...any) {
	if w.t == nil {
		w.tb.Fatalf(format, args...)
	}
	w.t.Fatalf(format, args...)
}

func (w *grove) update(f func(tx *store.Tx) error) { w.must(w.store.Update(w.tb.Context(), f)) }

// plant begins a mission with a session.
func (w *grove) plant() {
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: "grow", Status: centurion.MissionPaused}
	rec := session.New(centurion.Session{Agent: "commander", Model: &centurion.SessionModel{},
		Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}, centurion.Now())
	m.Session = rec.ID
	w.update(func(tx *store.Tx) error {
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		return session.Create(tx, &rec, centurion.OriginPerson, "grow")
	})
	w.sessions = append(w.sessions, rec.ID)
}

func (w *grove) tree(id string) store.Tree {
	t, err := w.store.Tree(w.tb.Context(), id)
	w.must(err)
	return t
}

func (w *grove) step() {
	id := rapid.SampledFrom(w.sessions).Draw(w.t, "session")
	t := w.tree(id)
	target := rapid.SampledFrom(t.Messages).Draw(w.t, "message").ID
	switch rapid.SampledFrom([]string{"say", "answer", "answer", "compact", "rewind", "rewind", "back", "fork"}).Draw(w.t, "step") {
	case "say":
		w.update(func(tx *store.Tx) error {
			_, err := session.Say(tx, &t.Session, centurion.OriginPerson, "and on")
			return err
		})
	case "answer":
		w.answer(t, rapid.IntRange(0, 2).Draw(w.t, "calls"))
	case "compact":
		w.compact(t)
	case "rewind":
		got, err := w.host.Branches.Rewind(w.tb.Context(), id, target, "")
		w.must(err)
		if pointsBack(t.Messages, got.Leaf) {
			w.t.Fatalf("a compaction was left without its summary: %s", got.Leaf)
		}
	case "back":
		line := t.Line(t.Leaf)
		_, err := w.host.Branches.Rewind(w.tb.Context(), id, fmt.Sprintf("-%d", rapid.IntRange(0, len(line)-1).Draw(w.t, "n")), "")
		w.must(err)
	case "fork":
		w.fork(t, target)
	}
}

// fork copies a session up to a message; the copy is told what the original was.
func (w *grove) fork(t store.Tree, target string) {
	f, err := w.host.Branches.Fork(w.tb.Context(), t.Session.ID, target)
	w.must(err)
	copied := w.tree(f.Session)
	if a, b := fmt.Sprint(session.History(t.Line(f.From.Message))), fmt.Sprint(session.History(copied.Line(copied.Leaf))); a != b {
		w.fatalf("a copy is told\n%s\nand the original\n%s", b, a)
	}
	w.sessions = append(w.sessions, f.Session)
}

// answer stores an answer with so many calls and their results.
func (w *grove) answer(t store.Tree, calls int) {
	m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: t.Session.ID, Role: centurion.RoleAssistant,
		Finish: centurion.FinishStop}
	part := func(p centurion.Part) {
		p.ID, p.SessionID, p.MessageID = centurion.NewID(centurion.PrefixPart), m.SessionID, m.ID
		m.Parts = append(m.Parts, p)
	}
	part(centurion.Part{Type: centurion.PartText, Text: "so it is"})
	for range calls {
		w.calls++
		m.Finish = centurion.FinishToolCalls
		part(centurion.Part{Type: centurion.PartTool, CallID: fmt.Sprintf("call_%d", w.calls), Tool: "ls",
			State: &centurion.ToolState{Status: centurion.ToolCompleted, Input: []byte(`{}`), Output: "a file"}})
	}
	w.update(func(tx *store.Tx) error { return putWhole(tx, &m) })
}

// compact stores a pointer to the newest message of the line, and the summary of what is before.
func (w *grove) compact(t store.Tree) {
	c := &centurion.Compaction{Auto: true, Tail: t.Leaf, Clips: map[string]int{}}
	for _, m := range t.Line(t.Leaf) {
		for _, p := range m.Parts {
			if m.ID == t.Leaf && p.State != nil {
				c.Clips[p.ID] = 2 // «a file» is longer
			}
		}
	}
	u := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: t.Session.ID, Role: centurion.RoleUser, Origin: centurion.OriginHost}
	u.Parts = []centurion.Part{{ID: centurion.NewID(centurion.PrefixPart), SessionID: u.SessionID, MessageID: u.ID, Type: centurion.PartCompaction, Compaction: c}}
	a := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: t.Session.ID, Role: centurion.RoleAssistant, Summary: true,
		ParentID: u.ID, Finish: centurion.FinishStop}
	a.Parts = []centurion.Part{{ID: centurion.NewID(centurion.PrefixPart), SessionID: a.SessionID, MessageID: a.ID, Type: centurion.PartText, Text: "in short"}}
	w.update(func(tx *store.Tx) error {
		if err := putWhole(tx, &u); err != nil {
			return err
		}
		return putWhole(tx, &a)
	})
}

func (w *grove) check() {
	for _, id := range w.sessions {
		t := w.tree(id)
		known := map[string]bool{"": true}
		for i, m := range t.Messages {
			if !known[m.Prev] || (m.Prev == "") != (i == 0) {
				w.t.Fatalf("message %d of %s stands under %q", i, id, m.Prev)
			}
			known[m.ID] = true
			now := bytesOf(w.tb, t.Messages[i:i+1])
			if was, ok := w.stored[m.ID]; ok && was != now {
				w.t.Fatalf("a message was changed:\n%s\n%s", was, now)
			}
			w.stored[m.ID] = now
			line := t.Line(m.ID)
			if line[0].ID != t.Messages[0].ID || line[len(line)-1].ID != m.ID {
				w.t.Fatalf("the line to %s goes from %s to %s", m.ID, line[0].ID, line[len(line)-1].ID)
			}
			if bad := invalid(session.History(line)); bad != "" {
				w.t.Fatalf("the line to %s: %s", m.ID, bad)
			}
		}
		current, err := w.store.Messages(w.tb.Context(), id)
		w.must(err)
		if a, b := bytesOf(w.tb, current), bytesOf(w.tb, t.Line(t.Leaf)); a != b {
			w.t.Fatalf("what is loaded is not the current line:\n%s\n%s", a, b)
		}
	}
}

// invalid says why a provider would refuse a history.
func invalid(all []provider.Message) string {
	open := map[string]bool{}
	for i, m := range all {
		switch {
		case i == 0 && m.Role != provider.User:
			return "it does not begin with the user"
		case m.Role == provider.Tool && !open[m.CallID]:
			return "a result without a call"
		case m.Role == provider.Tool:
			delete(open, m.CallID)
		case len(open) > 0:
			return "a call without a result"
		case m.Role == provider.User && i > 0 && all[i-1].Role == provider.User:
			return "two messages of the user in a row"
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "a call without a result at the end"
	}
	if len(all) == 0 || !strings.Contains(all[0].Text, "grow") {
		return "it does not begin with the first message"
	}
	return ""
}

// pointsBack reports whether a message is the one of a compaction that its summary follows.
func pointsBack(all []centurion.Message, id string) bool {
	return slices.ContainsFunc(all, func(m centurion.Message) bool {
		return m.ID == id && slices.ContainsFunc(m.Parts, func(p centurion.Part) bool { return p.Type == centurion.PartCompaction })
	})
}

// putWhole stores a message with its parts.
func putWhole(tx *store.Tx, m *centurion.Message) error {
	err := tx.PutMessage(m)
	for i := range m.Parts {
		err = errors.Join(err, tx.PutPart(&m.Parts[i]))
	}
	return err
}
