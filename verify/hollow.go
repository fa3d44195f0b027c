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
	from, to    int    // its body, with what encloses it, as bytes
	first, last int    // its lines, from 1, with its signature
	head        string // its signature, to tell whether an old body fits
	nothing     []edit // what makes it do nothing
}

// edit replaces the bytes from from to to.
type edit struct {
	from, to int
	text     string
}

// language is how functions of one language are found. finish, which may be nil, makes a file whole that lost bodies: what it was, what it was before the work,
// and what became of it. ok is false if it cannot be read.
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

// hollow takes out what the touched functions do and keeps their signatures. With before, functions that were there with the same signature get their old
// bodies back instead. idle are the functions that do nothing then, old those that do what they did before.
func hollow(l language, after, before []byte, t touched) (out []byte, idle, old []string) {
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
	inOrder(fs)
	for _, f := range fs {
		if f.from < end || !t.in(f.first, f.last) { // what stands in a hollowed function is gone with it
			continue
		}
		end = f.to
		if body, ok := bodies[f.key()]; ok {
			edits, old = append(edits, edit{f.from, f.to, body}), append(old, f.name)
		} else {
			edits, idle = append(edits, f.nothing...), append(idle, f.name)
		}
	}
	out = apply(after, edits)
	if l.finish != nil && len(edits) > 0 {
		out = l.finish(after, before, out)
	}
	return out, idle, old
}

// key tells functions of a file apart, as far as names and signatures do.
func (f function) key() string { return f.name + "\x00" + f.head }

// inOrder sorts functions as they stand in the file, the outer ones first.
func inOrder(fs []function) {
	slices.SortStableFunc(fs, func(a, b function) int { return cmp.Or(a.from-b.from, b.to-a.to) })
}

// oldBodies returns the bodies of was, by key, without those that several functions of either file share: which of them is meant is not known.
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

// undo gives functions that were changed their old bodies and lets new ones do nothing. Where all are new it is no other tree than that of hollow.
func (p *proving) undo(ctx context.Context) error { return p.hollowed(ctx, undone) }

// hollow lets every changed function do nothing.
func (p *proving) hollow(ctx context.Context) error { return p.hollowed(ctx, hollowed) }

func (p *proving) hollowed(ctx context.Context, way how) error {
	files := map[string][]byte{}
	var what lacking
	for _, f := range p.changes.diff {
		if f.Status == "deleted" || f.Binary || len(f.Hunks) == 0 || !slices.ContainsFunc(f.Hunks, func(h centurion.Hunk) bool { return p.changes.role(f, &h) == work }) {
			continue
		}
		after, err := p.trees.Read(ctx, p.work.After, f.Path)
		if err != nil {
			return err
		}
		l, ok := languageOf(f.Path)
		if !ok {
			if f.Status == "added" && len(after) > 0 { // a script or a text that is there and says nothing
				files[f.Path], what.empty = []byte{}, append(what.empty, f.Path)
			}
			continue
		}
		var before []byte
		if way == undone {
			if before, err = p.old(ctx, f); err != nil {
				return err
			}
		}
		if out, idle, old := hollow(l, after, before, touchedBy(f.Hunks...)); len(idle)+len(old) > 0 {
			files[f.Path] = out
			what.idle, what.old = what.idle.with(f.Path, idle), what.old.with(f.Path, old)
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
