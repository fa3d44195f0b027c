package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"centurion"
)

// function is one function of a source file.
type function struct {
	name        string // Type.Method, Class.method
	from, to    int    // its body with the braces, in bytes
	first, last int    // its lines with the signature, from 1
	head        string // its signature, which tells whether an old body fits
	stub        []edit // what makes it do nothing
}

// edit replaces the bytes from from to to.
type edit struct {
	from, to int
	text     string
}

// language finds the functions of a source file. ok is false if the file cannot be read. finish, which may be nil, completes a file
// that lost bodies; before is the file before the work.
type language struct {
	functions func(src []byte) (fs []function, ok bool)
	finish    func(after, before, out []byte) []byte
}

func languageOf(file string) (language, bool) {
	switch path.Ext(file) {
	case ".go":
		return language{goFunctions, finishGo}, true
	case ".py":
		return language{pythonFunctions, nil}, true
	case ".js", ".mjs", ".cjs", ".jsx":
		return language{jsFunctions(false, true), nil}, true
	case ".ts", ".mts", ".cts":
		return language{jsFunctions(true, false), nil}, true
	case ".tsx":
		return language{jsFunctions(true, true), nil}, true
	}
	return language{}, false
}

// emptyBodies lets the touched functions do nothing and keeps their signatures. With before, a function that had the same signature there
// gets its old body back instead. It returns the names of the functions of each kind.
func emptyBodies(l language, after, before []byte, t touched) (out []byte, stubbed, reverted []string) {
	fs, ok := l.functions(after)
	if !ok {
		return after, nil, nil
	}
	var bodies map[string]string
	if before != nil {
		if was, ok := l.functions(before); ok {
			bodies = oldBodies(before, was, fs)
		}
	}
	var edits []edit
	end := 0
	slices.SortStableFunc(fs, func(a, b function) int { return cmp.Or(a.from-b.from, b.to-a.to) }) // the outer one first
	for _, f := range fs {
		if f.from < end || !t.in(f.first, f.last) { // the outer function's edit removes an inner one
			continue
		}
		end = f.to
		if body, ok := bodies[f.key()]; ok {
			edits, reverted = append(edits, edit{f.from, f.to, body}), append(reverted, f.name)
		} else {
			edits, stubbed = append(edits, f.stub...), append(stubbed, f.name)
		}
	}
	out = apply(after, edits)
	if l.finish != nil && len(edits) > 0 {
		out = l.finish(after, before, out)
	}
	return out, stubbed, reverted
}

// key identifies a function within its file by name and signature.
func (f function) key() string { return f.name + "\x00" + f.head }

// oldBodies returns the bodies of was by key. It leaves out a key that two functions of one file share: which one is meant is unknown.
func oldBodies(before []byte, was, now []function) map[string]string {
	bodies, seen := map[string]string{}, map[string]int{}
	for _, f := range was {
		bodies[f.key()] = string(before[f.from:f.to])
		seen[f.key()] += 2
	}
	for _, f := range now {
		seen[f.key()]++
	}
	maps.DeleteFunc(bodies, func(key, _ string) bool { return seen[key] > 3 })
	return bodies
}

// apply makes edits that do not overlap.
func apply(src []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, src[at:]...)
}

// revertBodies runs the check with the old bodies of changed functions; new functions do nothing.
func (p *proving) revertBodies(ctx context.Context) error { return p.tryBodies(ctx, reverted) }

// stubBodies runs the check on changed functions that do nothing.
func (p *proving) stubBodies(ctx context.Context) error { return p.tryBodies(ctx, stubbed) }

func (p *proving) tryBodies(ctx context.Context, way how) error {
	files := map[string][]byte{}
	var what lacking
	for _, f := range p.changes.diff {
		if f.Status == "deleted" || f.Binary || !slices.ContainsFunc(f.Hunks, func(h centurion.Hunk) bool { return p.changes.role(f, &h) == work }) {
			continue
		}
		after, err := p.trees.Read(ctx, p.work.After, f.Path)
		if err != nil {
			return err
		}
		l, ok := languageOf(f.Path)
		if !ok {
			if f.Status == "added" && len(after) > 0 { // a new script or text is there, but empty
				files[f.Path], what.empty = []byte{}, append(what.empty, f.Path)
			}
			continue
		}
		var before []byte
		if way == reverted {
			if before, err = p.old(ctx, f); err != nil {
				return err
			}
		}
		if out, stubbed, reverted := emptyBodies(l, after, before, touchedBy(f.Hunks...)); len(stubbed)+len(reverted) > 0 {
			files[f.Path] = out
			what.stubbed, what.reverted = what.stubbed.with(f.Path, stubbed), what.reverted.with(f.Path, reverted)
		}
	}
	if len(files) == 0 {
		return nil
	}
	tree, err := p.trees.With(ctx, p.work.After, files)
	if err != nil {
		return err
	}
	diff, err := p.trees.Diff(ctx, tree, p.work.After)
	if err != nil {
		return err
	}
	_, err = p.try(ctx, attempt{how: way, tree: tree, removed: what.heading() + patch(diff), what: what})
	return err
}

// patch prints a diff for people.
func patch(diff []centurion.FileDiff) string {
	var b strings.Builder
	for _, f := range diff {
		if len(f.Hunks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", cmp.Or(f.Old, f.Path), f.Path)
		for _, h := range f.Hunks {
			b.WriteString(strings.TrimRight(h.Header, "\n") + "\n" + h.Text)
		}
	}
	return b.String()
}
