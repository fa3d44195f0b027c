// Package todo reads and edits the plan of a mission, a Markdown list with marks, as text: bytes in, bytes out. It owns the grammar,
// the meaning of marks and of `after:`, and edits by id that leave every other byte unchanged. It touches no file, runs no check and
// decides nothing about a mission; package workspace owns the file.
//
// An item is one line: a bullet (-, *, + or 1.), a mark in brackets, an id, a title and perhaps an agent. Indented
// `- key: value` or `key: value` lines below it are its attributes, indented items its sub-items:
//
//   - [ ] T2 Enforce the limits @worker
//   - after: T1
//   - files: limit/**
//   - verify: `go test ./limit/...`
//
// An id is a word that starts with a letter and contains a digit (T1, S1.1.1, M2-a). The keys are after, files, race (comma-separated
// lists), verify (once for each command), proof and note, in any case; a value may be in backticks. Other keys are kept in Item.Attrs.
// The verify lines between the # title and the next heading or item are the mission's own checks. Lines under a bullet without a box
// that is beside an item, or begins with an id, belong to no item: it may be an item without its box. Code fences are text. HTML
// comments are not special.
package todo

import (
	"cmp"
	"fmt"
	"strings"

	"centurion"
)

// Mark is the status of an item: the character between the brackets.
type Mark byte

// The marks.
const (
	Open      Mark = ' '
	Running   Mark = '~'
	Done      Mark = 'x' // [X] is accepted, too
	Cancelled Mark = '-' // its successors run nevertheless
	Blocked   Mark = '!' // its successors wait
)

var marks = map[Mark]string{Open: "open", Running: "running", Done: "done", Cancelled: "cancelled", Blocked: "blocked"}

// String returns open, running, done, cancelled, blocked or unknown.
func (m Mark) String() string { return cmp.Or(marks[m], "unknown") }

// ProofRegression is the value of proof: for refactorings or documents, whose checks only need to pass before and after.
const ProofRegression = "regression"

// Item is one item of the plan as written. Its slices belong to the Doc and must not be modified.
type Item struct {
	ID      string // empty until [Doc.AssignIDs]
	Title   string
	Agent   string // as written, without the @; empty if none is named
	Mark    Mark   // as written; [Doc.Status] is the effective one
	Section string // text of the nearest heading above it, ## or deeper; empty before the first
	After   []string
	Files   []string // patterns
	Verify  []string // commands, without their backticks
	Race    []string // agents that try the item in parallel, 2 to [MaxRace], the same one perhaps twice; the first proven work is merged
	Proof   string   // [ProofRegression], or empty; other values are a problem
	Notes   []string
	Parent  string              // id of its parent item
	Group   bool                // it has sub-items: its status depends on them, and it is never runnable itself
	Line    int                 // from 1
	Attrs   map[string][]string // attributes with other keys, by key in lower case
}

// Shown is the title as people and models see it: of an item with a race, with who tries it and what that costs.
func (it Item) Shown() string {
	if len(it.Race) == 0 {
		return it.Title
	}
	return fmt.Sprintf("%s (race of %s: about %s the cost)", it.Title, strings.Join(it.Race, ", "), centurion.Count(len(it.Race), "time"))
}

// Problem is an error in the plan that a person has to correct. The items it names count as blocked until then.
type Problem struct {
	Line int      // from 1
	IDs  []string // the affected items; may be empty
	Msg  string
}

// Counts counts items by status, without groups, whose sub-items are counted.
type Counts struct{ Open, Running, Done, Cancelled, Blocked int }

// Total returns the number of counted items.
func (c Counts) Total() int { return c.Open + c.Running + c.Done + c.Cancelled + c.Blocked }

// Title returns the text of the first # heading, or "".
func (d *Doc) Title() string { return d.title }

// Checks returns the mission's own acceptance commands: the verify lines under the title, before the next heading or item.
func (d *Doc) Checks() []string { return d.checks }

// Bytes returns the parsed text, byte for byte, with the edits since.
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

// Ambiguous reports whether several items have the id, so that no edit can refer to one of them.
func (d *Doc) Ambiguous(id string) bool { return len(d.byID[id]) > 1 }

// Misread returns the line, from 1, that begins like the item with this id but is not an item: its box is missing or broken. It is 0 if
// the item exists, or if there is no such line: then the item was removed.
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

// begins returns the id at the start of line i, after a bullet or an attempt at a box; "" if it has neither.
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

// Line returns the trimmed text of a line, from 1; "" if there is none.
func (d *Doc) Line(line int) string {
	if line < 1 || line > len(d.lines) {
		return ""
	}
	return strings.TrimSpace(d.lines[line-1].text)
}

// Problems returns the problems of the plan, by line.
func (d *Doc) Problems() []Problem { return d.problems }
