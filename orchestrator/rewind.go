package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Rewound is what [Host.Rewind] has done.
type Rewound struct {
	Mission string                  `json:"mission"`
	Status  centurion.MissionStatus `json:"status"` // of the mission, after it
	Session string                  `json:"session"`
	Address string                  `json:"address"`
	From    string                  `json:"from"`           // the newest message of the line that was left
	Leaf    string                  `json:"leaf"`           // the newest message of the line that it goes on with
	Undone  int                     `json:"undone"`         // messages that are not on that line any more
	Mark    string                  `json:"mark,omitempty"` // the name of From, with which this is undone; empty if nothing was left behind
}

// Rewind takes a conversation back to an older message, or to one of another branch, and with mark gives the message that
// it stands at a name first. To is the id of a message, the beginning of one, a mark, or -N for N messages back; empty
// leaves the conversation where it is. Nothing is deleted: what is not on the line any more stays as a branch, under the
// mark that the result names. Files, plan and tasks stay as they are. A mission that had ended is paused and can be
// resumed when its first session is taken back.
//
// The error has centurion.KindUsage for a bad mark or an id that is not whole enough, KindNotFound for what is not there,
// and KindConflict while the session's mission is being worked on and for the session of a task that has ended.
func (h *Host) Rewind(ctx context.Context, session, to, mark string) (Rewound, error) {
	if mark != "" || to == "" {
		if err := checkMark(mark); err != nil {
			return Rewound{}, err
		}
	}
	h.starting.Lock() // nobody begins to work on the mission meanwhile
	defer h.starting.Unlock()
	rec, err := h.cfg.Store.Session(ctx, session)
	if err != nil {
		return Rewound{}, err
	}
	if to != "" && h.running(rec.Metadata.Mission) != nil {
		return Rewound{}, &centurion.Error{Op: "rewind", Kind: centurion.KindConflict,
			Msg:  fmt.Sprintf("mission %s is being worked on", rec.Metadata.Mission),
			Hint: fmt.Sprintf("stop it first: centurion pause %s; or copy the conversation: centurion fork %s", rec.Metadata.Mission, session)}
	}
	m, err := h.cfg.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return Rewound{}, err
	}
	plan, err := plan.OwnPath(ctx, h.cfg.Workspace, m)
	if err != nil {
		return Rewound{}, err
	}
	var r Rewound
	err = h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		r, err = rewind(tx, session, to, mark, plan)
		return err
	})
	if err == nil && r.Leaf != r.From {
		err = h.reverts.MarkRewound(ctx, session)
	}
	return r, err
}

// rewind moves the leaf, inside tx. Plan is where the plan of a mission is that comes back to life.
func rewind(tx *store.Tx, session, to, mark, plan string) (Rewound, error) {
	t, err := tx.Tree(session)
	if err != nil {
		return Rewound{}, err
	}
	rec := &t.Session
	m, err := tx.Mission(rec.Metadata.Mission)
	if err != nil {
		return Rewound{}, err
	}
	if t.Leaf == "" {
		return Rewound{}, noMessages("rewind", session)
	}
	r := Rewound{Mission: m.ID, Status: m.Status, Session: session, Address: rec.Metadata.Address, From: t.Leaf, Leaf: t.Leaf, Mark: mark}
	if to != "" {
		if err := rewindable(tx, rec); err != nil {
			return r, err
		}
		if r.Leaf, err = messageOf(t, to); err != nil {
			return r, err
		}
	}
	rec.Metadata.Marks = maps.Clone(rec.Metadata.Marks)
	if rec.Metadata.Marks == nil {
		rec.Metadata.Marks = map[string]string{}
	}
	if mark != "" {
		rec.Metadata.Marks[mark] = t.Leaf
	}
	if r.Leaf == t.Leaf {
		return r, tx.PutSession(rec)
	}
	r.Undone = undone(t, r.Leaf)
	if r.Undone > 0 && r.Mark == "" {
		r.Mark = nameOf(rec.Metadata.Marks, t.Leaf)
	}
	rec.Metadata.Rewound = &centurion.Rewound{Leaf: r.Leaf, Last: t.Messages[len(t.Messages)-1].ID}
	rec.Metadata.Retry, rec.Metadata.Compact = nil, false // they were of the line that is left
	if err := tx.PutSession(rec); err != nil {
		return r, err
	}
	_, err = tx.Append(centurion.Event{Type: centurion.EventRewound, Mission: m.ID, Session: session, Task: rec.Metadata.Task,
		Data: event.Data(event.RewoundData{From: r.From, To: r.Leaf, Mark: r.Mark, Undone: r.Undone})})
	if err != nil || session != m.Session || !m.Status.Ended() && m.Status != centurion.MissionFailed {
		return r, err
	}
	m, err = state.MoveMission(tx, m.ID, centurion.MissionPaused, state.Rewound, func(m *centurion.Mission) {
		m.Stands(centurion.Mission{Status: m.Status, Reason: m.Reason})
		m.Todo = plan
	})
	r.Status = m.Status
	return r, err
}

// rewindable refuses to take back the conversation of a task whose result was told already.
func rewindable(tx *store.Tx, rec *centurion.Session) error {
	if rec.Metadata.Task == "" {
		return nil
	}
	t, err := tx.Task(rec.Metadata.Task)
	if err != nil || !t.Status.Ended() {
		return err
	}
	return &centurion.Error{Op: "rewind", Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("%s is the conversation of a task that is %s: its result was told, and nobody would read another one", rec.Metadata.Address, t.Status),
		Hint: fmt.Sprintf("copy it into a mission of its own: centurion fork %s --at MESSAGE", rec.ID)}
}

func noMessages(op, session string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "session " + session + " has no messages yet",
		Hint: "see: centurion show " + session}
}

// undone counts the messages of the current line that are not on the line to a leaf.
func undone(t store.Tree, leaf string) int {
	stays := map[string]bool{}
	for _, m := range t.Line(leaf) {
		stays[m.ID] = true
	}
	n := 0
	for _, m := range t.Line(t.Leaf) {
		if !stays[m.ID] {
			n++
		}
	}
	return n
}

// nameOf returns a mark of a message, a new one if it has none.
func nameOf(marks map[string]string, message string) string {
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		if marks[name] == message {
			return name
		}
	}
	for n := 1; ; n++ {
		name := "before-rewind-" + strconv.Itoa(n)
		if _, taken := marks[name]; !taken {
			marks[name] = message
			return name
		}
	}
}

// maxMark bounds the name of a message, in bytes: it is a word to be typed.
const maxMark = 64

// checkMark refuses a name that could not be told from an id or a number, or not be typed.
func checkMark(name string) error {
	hint := "choose a word such as before-the-refactoring"
	bad := func(what string) error {
		return &centurion.Error{Op: "rewind", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q cannot be the name of a message: %s", name, what), Hint: hint}
	}
	_, err := strconv.Atoi(name)
	switch {
	case name == "":
		return &centurion.Error{Op: "rewind", Kind: centurion.KindUsage, Msg: "it is not said what to go back to",
			Hint: "name a message, a mark or -N with --to, or give the place where it stands a name with --mark; see: centurion show --tree ID"}
	case len(name) > maxMark:
		return bad(fmt.Sprintf("it is longer than %d bytes", maxMark))
	case strings.HasPrefix(name, "-") || err == nil:
		return bad("it looks like a number of messages")
	case strings.HasPrefix(name, string(centurion.PrefixMessage)+"_"):
		return bad("it looks like an id")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r > '~' || strings.ContainsRune(`"'\/`, r) }):
		return bad("it may have letters, digits and signs such as - and .")
	}
	return nil
}

// messageOf returns the id of the message that a person means: its id or the beginning of it, a mark, or -N for N
// messages back on the current line; empty means the newest of that line. The two messages of a compaction are one place.
func messageOf(t store.Tree, typed string) (string, error) {
	id, err := lookUp(t, typed)
	if err != nil {
		return "", err
	}
	for i, m := range t.Messages {
		if m.Prev == id && m.Summary && t.Messages[i].Prev != "" && isPointer(t.Messages, id) {
			return m.ID, nil
		}
	}
	return id, nil
}

func isPointer(all []centurion.Message, id string) bool {
	return slices.ContainsFunc(all, func(m centurion.Message) bool {
		return m.ID == id && slices.ContainsFunc(m.Parts, func(p centurion.Part) bool { return p.Type == centurion.PartCompaction })
	})
}

func lookUp(t store.Tree, typed string) (string, error) {
	if typed == "" {
		return t.Leaf, nil
	}
	if id, ok := t.Session.Metadata.Marks[typed]; ok {
		return id, nil
	}
	if n, err := strconv.Atoi(typed); err == nil && strings.HasPrefix(typed, "-") && n <= 0 {
		line := t.Line(t.Leaf)
		if -n >= len(line) {
			return "", &centurion.Error{Op: "find message", Kind: centurion.KindUsage,
				Msg:  fmt.Sprintf("%s goes back before the first message: the line has %s", typed, centurion.Count(len(line), "message")),
				Hint: fmt.Sprintf("the first message is %s, which is %d", line[0].ID, 1-len(line))}
		}
		return line[len(line)-1+n].ID, nil
	}
	return byPrefix(t, typed)
}

func byPrefix(t store.Tree, typed string) (string, error) {
	full := typed
	if !strings.Contains(full, "_") {
		full = string(centurion.PrefixMessage) + "_" + typed
	}
	var found []string
	for _, m := range t.Messages {
		if m.ID == full {
			return m.ID, nil
		}
		if strings.HasPrefix(m.ID, full) {
			found = append(found, m.ID)
		}
		for _, p := range m.Parts {
			if p.ID == full {
				return "", &centurion.Error{Op: "find message", Kind: centurion.KindUsage, Msg: full + " is a part of message " + m.ID + ": an answer is not cut",
					Hint: "name the whole message: " + m.ID}
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > named:
		found = append(found[:named], "…")
		fallthrough
	case len(found) > 1:
		return "", &centurion.Error{Op: "find message", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q could be %s", typed, strings.Join(found, ", ")),
			Hint: "type more of the id"}
	}
	e := &centurion.Error{Op: "find message", Kind: centurion.KindNotFound,
		Msg:  fmt.Sprintf("session %s has no message and no mark %q", t.Session.ID, typed),
		Hint: "see: centurion show --tree " + t.Session.ID}
	if near := nearMessage(t, typed, full); near != "" {
		e.Msg += "; the nearest is " + near
	}
	return "", e
}

// nearMessage returns the mark or the message that is most like what was typed, or "".
func nearMessage(t store.Tree, typed, full string) string {
	if near := centurion.Nearest(typed, sortedMarks(t.Session)); near != "" {
		return near
	}
	best, alike := "", len(string(centurion.PrefixMessage))+2 // at least a digit of the time
	for _, m := range t.Messages {
		n := 0
		for n < min(len(full), len(m.ID)) && full[n] == m.ID[n] {
			n++
		}
		if n >= alike {
			best, alike = m.ID, n+1
		}
	}
	return best
}

// afterRewind is what a conversation is told that goes on from an older message.
const afterRewind = "The person goes on from this point of the conversation; what came after it before does not count. Files, the todo list " +
	"and tasks were not taken back: look at how they are now before you go on."

// afterFork is what a conversation is told that goes on as a copy, with the mission that it was copied from.
const afterFork = "This conversation is a copy and goes on in a mission of its own. Tasks and background commands that were started " +
	"above belong to mission %s; what you find in the project may have changed since."

// sayBranch tells the Commander, once, that its line has branched off another one.
func (m *mission) sayBranch(ctx context.Context) error {
	rec := m.root.Sess.Record()
	if rec.Metadata.Rewound == nil && rec.Metadata.ForkedFrom == nil {
		return nil
	}
	t, err := m.h.cfg.Store.Tree(ctx, rec.ID)
	if err != nil {
		return err
	}
	mission, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	switch {
	case err != nil:
		return err
	case t.Session.Metadata.Rewound != nil && t.Leaf == t.Session.Metadata.Rewound.Leaf:
		if err := m.h.reverts.MarkRewound(ctx, rec.ID); err != nil { // a crash may have come first
			return err
		}
		return m.root.Say(ctx, centurion.OriginHost, afterRewind)
	case rec.Metadata.ForkedFrom != nil && mission.Runs == 1:
		return m.root.Say(ctx, centurion.OriginHost, fmt.Sprintf(afterFork, rec.Metadata.ForkedFrom.Mission))
	}
	return nil
}

// pausable refuses to pause a mission that is over: only a rewind or a message brings it back.
func pausable(tx *store.Tx, id string, to centurion.MissionStatus) error {
	m, err := tx.Mission(id)
	if err != nil || to != centurion.MissionPaused || !m.Status.Ended() && m.Status != centurion.MissionFailed {
		return err
	}
	return &centurion.Error{Op: "change mission " + id, Kind: centurion.KindConflict, Msg: fmt.Sprintf("it is %s and cannot become %s", m.Status, to)}
}

func sortedMarks(s centurion.Session) []string { return slices.Sorted(maps.Keys(s.Metadata.Marks)) }
