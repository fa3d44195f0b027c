package branches

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/store"
)

// maxMark limits the name of a message, in bytes: people type it.
const maxMark = 64

// checkMark refuses a name that looks like an id or a number, or that is hard to type.
func checkMark(name string) error {
	hint := "choose a word such as before-the-refactoring"
	bad := func(what string) error {
		return &centurion.Error{Op: "rewind", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q cannot be the name of a message: %s", name, what), Hint: hint}
	}
	_, err := strconv.Atoi(name)
	switch {
	case name == "":
		return &centurion.Error{Op: "rewind", Kind: centurion.KindUsage, Msg: "missing --to",
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

// messageOf resolves a reference to a message: an id or a prefix of it, a mark, or -N for N messages back on the current line; empty
// means the newest of that line. The two messages of a compaction count as one place.
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

// maxNamed limits the messages that an error names.
const maxNamed = 6

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
	case len(found) > maxNamed:
		found = append(found[:maxNamed], "…")
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

// nearMessage returns the mark or message most similar to the typed text, or "".
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

func sortedMarks(s centurion.Session) []string { return slices.Sorted(maps.Keys(s.Metadata.Marks)) }
