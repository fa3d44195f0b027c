// Package todo reads and edits the plan of a mission, a Markdown list with marks, as text: bytes in, bytes out. It owns
// the grammar, the meaning of marks and of `after:`, and edits by id that leave every other byte as its writer left it.
// It touches no file, runs no check and decides nothing about a mission; package workspace keeps the file.
//
// An item is one line: a bullet (-, *, + or 1.), a mark in brackets, an id, a title and perhaps an agent. Indented
// `- key: value` or `key: value` lines below it are its attributes, indented items its sub-items:
//
//   - [ ] T2 Enforce the limits @worker
//   - after: T1
//   - files: limit/**
//   - verify: `go test ./limit/...`
//
// An id is a word that starts with a letter and holds a digit (T1, S1.1.1, M2-a). The keys are after, files, race
// (lists with commas), verify (once for each command), proof and note, in any case; a value may stand in backticks.
// Other keys are kept in Item.Attrs. The verify lines between the # title and the next heading or item are the
// mission's own checks. What stands under a bullet that has no box and is beside an item, or begins with an id, belongs to
// nobody: it may be an item that has lost its box. What stands in a code fence is text. HTML comments are not special.
package todo

import "strings"

// Mark says where an item stands; it is the character between the brackets.
type Mark byte

// The marks.
const (
	Open      Mark = ' '
	Running   Mark = '~'
	Done      Mark = 'x' // [X] is read as well
	Cancelled Mark = '-' // what comes after it runs nevertheless
	Blocked   Mark = '!' // what comes after it waits
)

// String returns open, running, done, cancelled or blocked.
func (m Mark) String() string {
	switch m {
	case Open:
		return "open"
	case Running:
		return "running"
	case Done:
		return "done"
	case Cancelled:
		return "cancelled"
	case Blocked:
		return "blocked"
	}
	return "unknown"
}

// ProofRegression is the value of proof: that asks for no more than checks which are green before and after: for a refactoring, or documents.
const ProofRegression = "regression"

// Item is one item of the plan as it is written. Its slices belong to the Doc: do not change them.
type Item struct {
	ID      string // empty until [Doc.AssignIDs]
	Title   string
	Agent   string // without the @, as written; empty if none is named
	Mark    Mark   // as written; [Doc.Status] says what it comes to
	Section string // text of the heading above it, ## or deeper; empty before the first
	After   []string
	Files   []string // patterns
	Verify  []string // commands, without their backticks
	Race    []string // agents that try the item side by side
	Proof   string   // [ProofRegression], or empty; what else is written is a problem
	Notes   []string
	Parent  string              // id of the item it is a sub-item of
	Group   bool                // it has sub-items: its state is theirs, and it is never runnable itself
	Line    int                 // from 1
	Attrs   map[string][]string // attributes with other keys, by key in lower case
}

// Problem is something in the plan that a person has to put right. The items it names count as blocked meanwhile.
type Problem struct {
	Line int      // from 1
	IDs  []string // the items it concerns; may be empty
	Msg  string
}

// Counts says how many items there are in each state. Items with sub-items are not counted: they are what those are.
type Counts struct{ Open, Running, Done, Cancelled, Blocked int }

// Total returns how many items were counted.
func (c Counts) Total() int { return c.Open + c.Running + c.Done + c.Cancelled + c.Blocked }

// Title returns the text of the first # heading, or "".
func (d *Doc) Title() string { return d.title }

// Checks returns the mission's own acceptance commands: the verify lines under the title, before the next heading or
// item.
func (d *Doc) Checks() []string { return d.checks }

// Bytes returns the text, which is what was parsed, byte for byte, and the edits made since.
func (d *Doc) Bytes() []byte { return d.src }

// Items returns all items in the order of the file, sub-items right after their parent.
func (d *Doc) Items() []Item {
	items := make([]Item, len(d.nodes))
	for i, n := range d.nodes {
		items[i] = n.Item
	}
	return items
}

// Item returns the item with exactly this id, and the first one if several have it.
func (d *Doc) Item(id string) (Item, bool) {
	if n := d.find(id); n != nil {
		return n.Item, true
	}
	return Item{}, false
}

// Ambiguous reports whether an id stands more than once, so that no edit can name one of its items.
func (d *Doc) Ambiguous(id string) bool { return len(d.byID[id]) > 1 }

// Misread returns the line, from 1, that begins as the item with this id would and is none: its box is missing or broken. It is 0
// if the item is there, or no line begins so: the item was removed then.
func (d *Doc) Misread(id string) (line int) {
	if id == "" || len(d.byID[id]) > 0 {
		return 0
	}
	for i, l := range d.lines {
		if l.kind == kindText && d.begins(i) == id {
			return i + 1
		}
	}
	return 0
}

// begins returns the id that line i begins with, behind a bullet or an attempt at a box; "" if it has none of these.
func (d *Doc) begins(i int) string {
	body := strings.TrimSpace(d.lines[i].text)
	bullet, gap := bulletOf(body)
	rest := body[len(bullet)+gap:]
	begun := afterBox(rest)
	if bullet == "" && begun == rest {
		return ""
	}
	return idOf(begun)
}

// Line returns the text of a line, from 1, without white space around it; "" if there is none.
func (d *Doc) Line(line int) string {
	if line < 1 || line > len(d.lines) {
		return ""
	}
	return strings.TrimSpace(d.lines[line-1].text)
}

// Problems returns what is wrong with the plan, by line.
func (d *Doc) Problems() []Problem { return d.problems }
