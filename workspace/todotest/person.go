package todotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"centurion/workspace/todo"
)

// person is what a person has saved.
type person struct {
	lines  []string // of text
	items  []string // ids
	ticked []string // ids
	notes  [][2]string
	titles [][2]string // the latest title of each item
}

// edit reads the file, thinks, and saves it with one more change, repeatedly until ctx ends. A started save is always finished.
func (r *round) edit(ctx context.Context, rnd *rand.Rand) error {
	ways := []struct {
		name string
		save func(old, text []byte, p pauses) error
	}{
		{"renamed over", r.renameOver}, {"in place", r.inPlace}, {"appended", nil}, {"moved away", r.moveAway}, {"deleted", r.remove},
	}
	p := pauses{rnd, r.Pause}
	for n := 0; ctx.Err() == nil; n++ {
		if !r.letThemWork(ctx, 1+rnd.IntN(12)) {
			return nil
		}
		way := ways[rnd.IntN(len(ways))]
		e := r.begin()
		old, err := os.ReadFile(r.file)
		if err != nil {
			return err
		}
		text, saved := r.person.change(old, n, r.Agents, rnd)
		time.Sleep(time.Duration(rnd.Int64N(int64(r.Think) + 1)))
		if rnd.IntN(4) > 0 { // most saves are to be stale, even on a slow machine
			late, stop := context.WithTimeout(ctx, 250*time.Millisecond)
			r.letThemWork(late, 1)
			stop()
		}
		now, _ := os.ReadFile(r.file)
		r.save(1)
		if way.save == nil {
			line := fmt.Sprintf("<!-- appended %d -->", n)
			saved = func() { r.person.lines = append(r.person.lines, line) }
			err = r.append(line + "\n")
		} else {
			err = way.save(old, text, p)
		}
		r.save(-1)
		if err != nil {
			r.end(e, nil)
			return err
		}
		r.end(e, func() {
			r.report.PersonEdits++
			r.report.Saves[way.name]++
			if way.save != nil && !bytes.Equal(old, now) {
				r.report.Stale++
			}
			saved()
		})
	}
	return nil
}

// letThemWork waits for this many more edits of the agents: a person who saves all the time would have the file to themselves. It
// reports whether there is still something to do.
func (r *round) letThemWork(ctx context.Context, edits int) bool {
	have := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.report.AgentEdits
	}
	for until := have() + edits; have() < until; {
		if !wait(ctx, time.Millisecond) {
			return false
		}
	}
	return true
}

// stall is the minimum duration of a save that stalls because the machine is busy. An edit waits for the rest of a plan only until 200
// ms after the last piece; then it takes what is there, and merges the rest later. Until then the plan is in halves, which is no fault.
// Other saves take a few milliseconds.
const stall = 150 * time.Millisecond

// save records that a save starts (1) or has ended (-1).
func (r *round) save(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saving += n
	r.epoch++
	if n > 0 {
		r.since = time.Now()
	} else if time.Since(r.since) > stall {
		r.halves = true
		r.report.Stalled++
	}
}

// stalls reports whether the plan may be in halves because a save has stalled.
func (r *round) stalls() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halves || r.saving > 0 && time.Since(r.since) > stall
}

// change makes one of the person's changes in a text, and returns what to note when it is saved.
func (p *person) change(old []byte, n, agents int, rnd *rand.Rand) ([]byte, func()) {
	text := string(old)
	target := itemID(rnd.IntN(agents))
	head, end := itemLine(text, target)
	switch k := rnd.IntN(5); {
	case k == 0 && head >= 0: // a note below an item
		note := fmt.Sprintf("person %d.", n)
		return []byte(text[:end] + "  - note: " + note + "\n" + text[end:]),
			func() { p.notes = append(p.notes, [2]string{target, note}) }
	case k == 1 && head >= 0 && p.sees(target, text[head:end]): // a word more in its title
		word := fmt.Sprintf("p%d.", n)
		line := strings.Replace(text[head:end], " @worker", " "+word+" @worker", 1)
		return []byte(text[:head] + line + text[end:]), func() { p.titles = append(p.titles, [2]string{target, word}) }
	case k == 2 && head >= 0: // an item above it
		id := fmt.Sprintf("P%d", n)
		return []byte(text[:head] + "- [ ] " + id + " by hand\n" + text[head:]), func() { p.items = append(p.items, id) }
	case k == 3 && len(p.items) > 0: // a tick
		id := p.items[rnd.IntN(len(p.items))]
		if strings.Contains(text, "- [ ] "+id+" ") {
			return []byte(strings.Replace(text, "- [ ] "+id+" ", "- [x] "+id+" ", 1)), func() { p.ticked = append(p.ticked, id) }
		}
	}
	line := fmt.Sprintf("<!-- person %d -->", n)
	return []byte(text + line + "\n"), func() { p.lines = append(p.lines, line) }
}

// sees reports whether an item's line has everything the person put into its title. A recent save may have gone to an unlinked file and
// not be back yet. Setting another title without having seen the first makes the two conflict: one must give way, and no program can
// tell which.
func (p *person) sees(id, line string) bool {
	for _, n := range p.titles {
		if n[0] == id && !slices.Contains(strings.Fields(line), n[1]) {
			return false
		}
	}
	return true
}

// itemLine returns where the line of an item begins and ends, -1 if there is none.
func itemLine(text, id string) (from, to int) {
	at := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "- [") && strings.Contains(line, "] "+id+" ") {
			return at, at + len(line)
		}
		at += len(line)
	}
	return -1, -1
}

// lost returns saved changes that are missing from the plan.
func (p *person) lost(doc *todo.Doc) []string {
	var out []string
	text := string(doc.Bytes())
	for _, line := range p.lines {
		if !strings.Contains(text, line+"\n") {
			out = append(out, "line of the person: "+line)
		}
	}
	for _, id := range p.items {
		if _, ok := doc.Item(id); !ok {
			out = append(out, "item of the person: "+id)
		}
	}
	for _, id := range p.ticked {
		if it, _ := doc.Item(id); it.Mark != todo.Done {
			out = append(out, "tick of the person: "+id)
		}
	}
	for _, n := range p.notes {
		if it, _ := doc.Item(n[0]); !slices.Contains(it.Notes, n[1]) {
			out = append(out, "note of the person: "+n[1])
		}
	}
	for _, n := range p.titles {
		if it, _ := doc.Item(n[0]); !slices.Contains(strings.Fields(it.Title), n[1]) {
			out = append(out, "title by the person: "+n[1])
		}
	}
	return out
}

// pauses are the pauses between the pieces of a save.
type pauses struct {
	rnd *rand.Rand
	max time.Duration
}

// hitch is the longest pause of an editor whom a busy machine keeps waiting, which it does one time in ten. It is below stall.
const hitch = 120 * time.Millisecond

func (p pauses) pause() {
	longest := p.max
	if p.rnd.IntN(10) == 0 {
		longest = hitch
	}
	time.Sleep(time.Duration(p.rnd.Int64N(int64(longest) + 1)))
}

// renameOver saves as vim does: a new file, renamed.
func (r *round) renameOver(_, text []byte, p pauses) error {
	next := r.file + ".swp"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return err
	}
	p.pause()
	return os.Rename(next, r.file)
}

// inPlace saves as nano and VS Code do: the file is emptied and written in two or three pieces.
func (r *round) inPlace(_, text []byte, p pauses) error {
	f, err := os.OpenFile(r.file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if p.rnd.IntN(3) == 0 {
		p.pause()
	}
	if err := f.Truncate(0); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(pieces(f, text, p), f.Close())
}

// pieces writes a text in two or three pieces.
func pieces(f *os.File, text []byte, p pauses) error {
	for n := 1 + p.rnd.IntN(2); n > 0 && len(text) > 1; n-- {
		p.pause()
		at := 1 + p.rnd.IntN(len(text)-1)
		if _, err := f.Write(text[:at]); err != nil {
			return err
		}
		text = text[at:]
	}
	p.pause()
	_, err := f.Write(text)
	return err
}

// append adds a line as a shell does.
func (r *round) append(line string) error {
	f, err := os.OpenFile(r.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// moveAway saves as emacs does: the old file becomes the backup and a new one is written.
func (r *round) moveAway(_, text []byte, p pauses) error {
	if err := os.Rename(r.file, r.file+"~"); err != nil {
		return err
	}
	return r.rewrite(text, p)
}

// remove deletes the file and writes a new one.
func (r *round) remove(_, text []byte, p pauses) error {
	if err := os.Remove(r.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.rewrite(text, p)
}

func (r *round) rewrite(text []byte, p pauses) error {
	p.pause()
	f, err := os.OpenFile(r.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(pieces(f, text, p), f.Close())
}
