package tui

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"centurion"
	"centurion/text"
)

// Stat prints one line for each changed file, and a summary.
func Stat(w io.Writer, files []centurion.FileChange, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	widest := 0
	for _, f := range files {
		widest = max(widest, text.Width(changeName(f)))
	}
	widest = min(widest, o.Width-16)
	for _, f := range files {
		mark, c := changeMark(f.Status)
		p.line(" " + p.theme.paint(c, mark) + " " + text.Pad(text.Fit(changeName(f), widest), widest) + "  " + p.changeCount(f))
	}
	p.line(" " + StatWords(files))
	return p.flush(w)
}

// StatWords summarizes changes: "2 files changed, +12 −3".
func StatWords(files []centurion.FileChange) string {
	if len(files) == 0 {
		return "no file changed"
	}
	added, deleted := 0, 0
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
	}
	return fmt.Sprintf("%s changed, +%d −%d", centurion.Count(len(files), "file"), added, deleted)
}

func changeName(f centurion.FileChange) string {
	if f.Old != "" && f.Old != f.Path {
		return text.Escape(f.Old) + " → " + text.Escape(f.Path)
	}
	return text.Escape(f.Path)
}

func changeMark(status string) (string, tone) {
	switch status {
	case "added":
		return "A", good
	case "deleted":
		return "D", bad
	case "renamed":
		return "R", plain
	}
	return "M", plain
}

func (p *page) changeCount(f centurion.FileChange) string {
	if f.Binary {
		return p.theme.paint(dim, "binary")
	}
	var parts []string
	if f.Added > 0 {
		parts = append(parts, p.theme.paint(good, fmt.Sprintf("+%d", f.Added)))
	}
	if f.Deleted > 0 {
		parts = append(parts, p.theme.paint(bad, fmt.Sprintf("−%d", f.Deleted)))
	}
	return cmp.Or(strings.Join(parts, " "), p.theme.paint(dim, "0"))
}

// Patch prints a unified diff for a terminal: coloured, with control characters made visible.
func Patch(w io.Writer, said string, o ShowOptions) error {
	p := page{theme: theme{o.Color}, w: o.Width}
	inHunk := false
	for l := range strings.Lines(said) {
		l = strings.TrimSuffix(l, "\n")
		c := plain
		switch {
		case strings.HasPrefix(l, "diff --git ") || strings.HasPrefix(l, "# "):
			c, inHunk = strong, false
		case strings.HasPrefix(l, "@@ "):
			c, inHunk = planner, true
		case !inHunk:
			c = dim
		case strings.HasPrefix(l, "+"):
			c = good
		case strings.HasPrefix(l, "-"):
			c = bad
		}
		tabs := strings.Split(strings.TrimSuffix(l, "\r"), "\t")
		for i := range tabs {
			tabs[i] = text.Escape(tabs[i])
		}
		p.WriteString(p.theme.paint(c, strings.Join(tabs, "    ")) + "\n")
	}
	return p.flush(w)
}

// isolation describes how the writers of a mission are isolated.
func isolation(m *centurion.Mission) string {
	return map[string]string{
		centurion.IsolationWorktree: "each writer in a checkout of its own",
		centurion.IsolationShared:   "all write in the project itself",
	}[m.Isolation]
}

// baseWords describes the start of a mission's work.
func baseWords(b *centurion.Base) string {
	if b == nil {
		return ""
	}
	return text.Clean(b.Branch + " " + cmp.Or(shortCommit(b.Head), "no commit yet") + b.Uncommitted())
}

// mergedWords describes where the work of a mission was merged, or how to merge it.
func mergedWords(m *centurion.Mission) string {
	switch g := m.Merged; {
	case m.Isolation != "worktree":
		return ""
	case g == nil && m.Status == centurion.MissionCompleted:
		return "not yet: centurion merge " + m.ID
	case g == nil:
		return ""
	case g.Commit == "":
		return "it was about to be"
	default:
		return text.Dots(cmp.Or(text.Clean(g.Branch), "detached HEAD")+" "+shortCommit(g.Before)+" → "+shortCommit(g.Commit),
			text.Clean(strings.Join(g.Only, ", ")), g.Time.Local().Format(time.DateTime))
	}
}

// landedWords lists the commits of a task on its mission's branch.
func landedWords(t *centurion.Task) string {
	var parts []string
	for _, l := range t.Landed {
		s := shortCommit(l.Commit)
		if l.Reverts {
			s += " reverts it"
		} else if len(l.Files) > 0 {
			s += " " + StatWords(l.Files)
		}
		parts = append(parts, s)
	}
	if !t.Undone.IsZero() {
		parts = append(parts, "reverted "+t.Undone.Local().Format(time.DateTime))
	}
	return text.Dots(parts...)
}

func shortCommit(id string) string { return id[:min(len(id), 10)] }
