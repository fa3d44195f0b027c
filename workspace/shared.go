package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"centurion"
)

const (
	opShared = "edit shared text"

	// maxShared is the largest shared text that is read, in bytes; a person may have written more than its budget.
	maxShared = 1 << 20

	// notesHeading is the heading of the notes.
	notesHeading = "## Notes"
)

// SharedFile is a text in .opencode/ that the sessions of a project share: context.md or summary.md. Its methods are safe for
// concurrent use in several goroutines and processes. A person's editor takes no lock, but its changes are noticed before they are
// replaced, as for [TodoFile].
type SharedFile struct {
	w    *Workspace
	path string
}

// Context returns the project's context.md.
func (w *Workspace) Context() SharedFile { return SharedFile{w, ContextPath} }

// Summary returns the project's summary.md.
func (w *Workspace) Summary() SharedFile { return SharedFile{w, SummaryPath} }

// Path returns the file's path relative to the project.
func (f SharedFile) Path() string { return f.path }

// Load reads the text and returns its version as [VersionOf] does. For a missing file it returns "", "", nil. Errors are those of
// [Workspace.ReadFile]; KindUsage for a text above one MiB.
func (f SharedFile) Load() (text, version string, err error) {
	b, err := f.w.readOr(f.path, maxShared)
	return string(b), versionOf(b), err
}

// Replace replaces the text atomically, surviving a power cut, after archiving the old one; it returns the archive's path. It calls
// check with the current version ("" without a file) and returns its error without writing. If the file changes in between, it starts
// over, including check. Nothing is written if the file already has this text. Other errors: KindPermission, KindDisk, KindConflict
// (the file keeps changing), and the end of ctx.
func (f SharedFile) Replace(ctx context.Context, text string, check func(version string) error) (archived string, err error) {
	text = strings.TrimRight(text, "\n") + "\n"
	unkeep := func() (err error) { // removes the archived copy of an attempt that did not replace the text
		if archived != "" {
			err = f.w.root.Remove(archived)
		}
		archived = ""
		return err
	}
	_, err = f.change(ctx, func(old []byte) ([]byte, error) {
		if err := unkeep(); err != nil {
			return nil, f.w.fail(opShared, ArchivePath, err)
		}
		if old != nil && string(old) == text { // also a repeated call after a crash
			return old, nil
		}
		if check != nil {
			if err := check(versionOf(old)); err != nil {
				return nil, err
			}
		}
		if len(bytes.TrimSpace(old)) > 0 {
			if archived, err = f.archive(old); err != nil {
				return nil, err
			}
		}
		return []byte(text), nil
	})
	if err != nil {
		_ = unkeep() // a surplus copy does no harm
	}
	return archived, err
}

// Note adds a line at the end of the section "## Notes", which it creates if needed, and returns the versions before and after. An
// existing line is not added again. It calls check with the new text and returns its error without writing. Other errors are those of
// Replace.
func (f SharedFile) Note(ctx context.Context, line string, check func(text string) error) (before, after string, err error) {
	line = noteLine(line)
	text, err := f.change(ctx, func(old []byte) ([]byte, error) {
		before = versionOf(old)
		next := withNote(string(old), line)
		if next == string(old) {
			return old, nil
		}
		if check != nil {
			if err := check(next); err != nil {
				return nil, err
			}
		}
		return []byte(next), nil
	})
	return before, versionOf(text), err
}

// noteLine is a note as a line of the text.
func noteLine(note string) string { return "- " + strings.Join(strings.Fields(note), " ") }

// change replaces the text by the result of next, starting over if the file was changed meanwhile.
func (f SharedFile) change(ctx context.Context, next func(old []byte) ([]byte, error)) ([]byte, error) {
	unlock, err := f.w.lock(ctx, f.w.shared, opShared)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range maxRestarts {
		old, err := f.w.readOr(f.path, maxShared)
		if err != nil {
			return nil, err
		}
		text, err := next(old)
		if err != nil {
			return nil, err
		}
		if old != nil && bytes.Equal(old, text) {
			return text, nil
		}
		done, thrown, err := f.w.replaceIf(opShared, f.path, versionOf(old), text)
		if thrown != nil {
			thrown.f.Close()
		}
		switch {
		case err != nil:
			return nil, err
		case done:
			return text, nil
		}
	}
	return nil, &centurion.Error{Op: opShared, Kind: centurion.KindConflict, Msg: f.path + " is being changed all the time",
		Hint: "find out what writes to it, and stop it"}
}

// archive stores a text that is about to be replaced: .opencode/archive/context-20260102-150405.md, with the time in UTC, and -2, -3 …
// after it within one second.
func (f SharedFile) archive(text []byte) (string, error) {
	if err := f.w.root.MkdirAll(ArchivePath, dirPerm); err != nil {
		return "", f.w.fail(opShared, ArchivePath, err)
	}
	d, err := f.w.root.OpenRoot(ArchivePath)
	if err != nil {
		return "", f.w.fail(opShared, ArchivePath, err)
	}
	defer d.Close()
	stem := strings.TrimSuffix(path.Base(f.path), ".md") + time.Now().UTC().Format("-20060102-150405")
	for n := 1; ; n++ {
		name := stem + ".md"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.md", stem, n)
		}
		err := writeNew(d, name, text, filePerm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = syncDir(d)
		}
		if err != nil {
			return "", f.w.fail(opShared, ArchivePath+"/"+name, err)
		}
		return ArchivePath + "/" + name, nil
	}
}

// lock takes the lock within this process, in the order of the calls, and then the lock between processes.
func (w *Workspace) lock(ctx context.Context, turn chan struct{}, op string) (unlock func(), err error) {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	l, err := w.lockDirectory(ctx, op)
	if err != nil {
		<-turn
		return nil, err
	}
	return func() {
		_ = l.Close() // closing a lock's file always releases it
		<-turn
	}, nil
}

// lockDirectory takes the lock between processes for .opencode/: one for all files, which share the name of the temporary file.
func (w *Workspace) lockDirectory(ctx context.Context, op string) (*flock.Flock, error) {
	// The lock is opened by its path, so first ensure that the directory is inside the project.
	if err := w.makeDirectory(op); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(w.dir, Directory, lockName), flock.SetFlag(os.O_CREATE|os.O_RDWR|openNofollow))
	switch ok, err := l.TryLockContext(ctx, lockPoll); {
	case ctx.Err() != nil && !ok:
		return nil, ended(ctx)
	case err != nil:
		return nil, w.fail(op, Directory+"/"+lockName, err)
	}
	return l, nil
}

// withNote returns the text with a line added to its notes.
func withNote(text, line string) string {
	lines := strings.SplitAfter(text, "\n")
	from, to := notesIn(lines)
	if from < 0 {
		if text = strings.TrimRight(text, "\n"); text != "" {
			text += "\n\n"
		}
		return text + notesHeading + "\n\n" + line + "\n"
	}
	for _, l := range lines[from:to] {
		if strings.TrimRight(l, "\r\n") == line {
			return text
		}
	}
	last := to
	for last > from+1 && strings.TrimSpace(lines[last-1]) == "" {
		last--
	}
	head, tail := strings.Join(lines[:last], ""), strings.Join(lines[last:], "")
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	if last == from+1 {
		head += "\n"
	}
	if strings.TrimSpace(tail) == "" {
		tail = ""
	}
	return head + line + "\n" + tail
}

// notesIn returns the lines of the notes' section, heading included; from is negative if there is none.
func notesIn(lines []string) (from, to int) {
	from = -1
	for i, l := range lines {
		l = strings.TrimRight(l, " \t\r\n")
		switch {
		case from < 0 && l == notesHeading:
			from = i
		case from >= 0 && (strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "## ")):
			return from, i
		}
	}
	return from, len(lines)
}

// WithoutNotes returns a shared text without the section "## Notes", and whether it had one.
func WithoutNotes(text string) (rest string, had bool) {
	lines := strings.SplitAfter(text, "\n")
	from, to := notesIn(lines)
	if from < 0 {
		return text, false
	}
	return strings.Join(lines[:from], "") + strings.Join(lines[to:], ""), true
}

// Mark replaces the text by the result of change, without archiving. Errors are those of Replace.
func (f SharedFile) Mark(ctx context.Context, change func(text string) string) error {
	_, err := f.change(ctx, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, errNoShared
		}
		return []byte(change(string(old))), nil
	})
	if errors.Is(err, errNoShared) {
		return nil
	}
	return err
}

// errNoShared means that there is no text to mark.
var errNoShared = errors.New("no such text")

// noteReverted is appended to a note from reverted work.
const noteReverted = " (reverted)"

// RevertNotes marks notes as reverted, or with on false removes the marks. notes are the lines as passed to [SharedFile.Note].
func RevertNotes(text string, notes []string, on bool) string {
	marked := map[string]bool{}
	for _, n := range notes {
		marked[noteLine(n)] = true
	}
	lines := strings.SplitAfter(text, "\n")
	from, to := notesIn(lines)
	for i := max(from, 0); i < to && from >= 0; i++ {
		line := strings.TrimRight(lines[i], "\r\n")
		end := lines[i][len(line):]
		plain, was := strings.CutSuffix(line, noteReverted)
		switch {
		case on && marked[line]:
			lines[i] = line + noteReverted + end
		case !on && was && marked[plain]:
			lines[i] = plain + end
		}
	}
	return strings.Join(lines, "")
}

// revertHead begins the line above a text from reverted work.
const revertHead = "> Reverted: "

// RevertText writes above a text why it is no longer valid, or with on false removes that. why is one line.
func RevertText(text, why string, on bool) string {
	head := revertHead + why + "\n\n"
	heads, rest := CutReverted(text)
	switch has := strings.Contains(heads, head); {
	case on && !has:
		return head + text
	case !on && has:
		return strings.Replace(heads, head, "", 1) + rest
	}
	return text
}

// CutReverted separates a text from the lines added by [RevertText].
func CutReverted(text string) (heads, rest string) {
	for rest = text; strings.HasPrefix(rest, revertHead); {
		_, after, ok := strings.Cut(rest, "\n\n")
		if !ok {
			break
		}
		rest = after
	}
	return text[:len(text)-len(rest)], rest
}

// Detail is the permitted extent of the project's shared texts. It decreases as work proceeds, because every session that gets them
// pays for them.
type Detail int

// The levels of detail.
const (
	Early     Detail = iota // less than 30 % of the items are done
	Building                // from 30 %
	Finishing               // from 70 %
)

// The percentages of done items at which the detail changes.
const (
	buildingFrom  = 30
	finishingFrom = 70
)

// Level returns the detail for a plan with done of total items done. A plan without items has not begun. Neither number includes
// cancelled items.
func Level(done, total int) Detail {
	switch {
	case total <= 0 || done*100 < total*buildingFrom:
		return Early
	case done*100 < total*finishingFrom:
		return Building
	}
	return Finishing
}

func (d Detail) String() string {
	return [...]string{"early", "building", "finishing"}[min(max(d, Early), Finishing)]
}

// Wants describes the content of the shared texts at this level.
func (d Detail) Wants() string {
	return [...]string{"detailed explanations and research", "key decisions and references to files",
		"a brief status and what blocks, nothing else"}[min(max(d, Early), Finishing)]
}

// Budget returns the maximum bytes of the shared file with that path, 0 for a file without a limit. The context starts with 16 KiB,
// some 4,000 tokens, so that it does not outweigh a session's own task, and ends with 3 KiB; the summary precedes every mission and has
// an eighth of that.
func (d Detail) Budget(path string) int {
	i := min(max(d, Early), Finishing)
	switch path {
	case ContextPath:
		return [...]int{16 << 10, 8 << 10, 3 << 10}[i]
	case SummaryPath:
		return [...]int{2 << 10, 1 << 10, 500}[i]
	}
	return 0
}
