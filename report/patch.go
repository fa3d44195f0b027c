package report

import (
	"cmp"
	"fmt"
	"strings"

	"centurion/text"
)

// diffLine is a line of a patch and its class: file, hunk, plus, minus, same or note.
type diffLine struct{ Class, Text string }

// maxDiff limits the shown lines of a patch.
const maxDiff = 400

// diffLines are the lines of a patch for a reader: git's header of a file becomes one line with its name and change. A patch without
// such a header begins with its first hunk.
func diffLines(patch string) []diffLine {
	d := differ{}
	for l := range strings.SplitSeq(strings.TrimRight(text.CleanText(patch), "\n"), "\n") {
		if len(d.out) >= maxDiff {
			d.out = append(d.out, diffLine{"note", "… the rest is left out"})
			break
		}
		d.line(l)
	}
	d.named()
	return d.out
}

// differ reads a patch line by line.
type differ struct {
	out       []diffLine
	old, new  int    // remaining lines of the hunk, in the old and the new file
	path, was string // of the current header
	state     string
	heading   bool // the current header was not written yet
}

func (d *differ) line(l string) {
	if d.old > 0 || d.new > 0 {
		d.content(l)
		return
	}
	word, rest, _ := strings.Cut(l, " ")
	switch {
	case strings.HasPrefix(l, "@@"):
		d.named()
		d.old, d.new = hunkSize(l)
		d.out = append(d.out, diffLine{"hunk", l})
	case strings.HasPrefix(l, "diff --git "):
		d.named()
		d.heading = true
		if _, after, ok := strings.Cut(l, " b/"); ok {
			d.path = after
		}
	case word == "---" && strings.HasPrefix(rest, "a/") || l == "--- /dev/null":
		d.heading = true
		d.was = strings.TrimPrefix(rest, "a/")
	case word == "+++" && strings.HasPrefix(rest, "b/") || l == "+++ /dev/null":
		d.side(strings.TrimPrefix(rest, "b/"))
	case d.heading && d.header(l):
	default:
		d.content(l)
	}
}

// side sets the new name of a file, or the old one of a deleted file.
func (d *differ) side(path string) {
	d.heading = true
	switch {
	case path == "/dev/null":
		d.path, d.state = d.was, "deleted"
	case d.was == "/dev/null":
		d.path, d.state = path, "new"
	default:
		d.path = path
	}
}

// header reports whether a line belongs to a file's header, and processes it.
func (d *differ) header(l string) bool {
	for _, h := range []struct{ prefix, state string }{{"new file mode", "new"}, {"deleted file mode", "deleted"}, {"rename from ", "renamed"}, {"rename to ", "renamed"},
		{"copy from ", "copied"}, {"copy to ", "copied"}, {"old mode", "mode changed"}, {"new mode", "mode changed"}, {"Binary files ", "binary"}, {"GIT binary patch", "binary"},
		{"index ", ""}, {"similarity index", ""}, {"dissimilarity index", ""}} {
		if strings.HasPrefix(l, h.prefix) {
			if h.state != "" {
				d.state = h.state
			}
			return true
		}
	}
	return false
}

// named writes the current header.
func (d *differ) named() {
	if d.heading {
		l := diffLine{"file", cmp.Or(d.path, d.was)}
		l.Text += text.When(d.state != "", " ("+d.state+")")
		d.out = append(d.out, l)
	}
	d.path, d.was, d.state, d.heading = "", "", "", false
}

// content processes a line of a hunk.
func (d *differ) content(l string) {
	d.named()
	class := "same"
	switch {
	case strings.HasPrefix(l, "+"):
		class = "plus"
		d.new--
	case strings.HasPrefix(l, "-"):
		class = "minus"
		d.old--
	case strings.HasPrefix(l, `\`): // no newline at the end of the file
		class = "note"
	default:
		d.old, d.new = d.old-1, d.new-1
	}
	d.out = append(d.out, diffLine{class, l})
}

// hunkSize returns the numbers of lines in the old and the new file from a hunk's header "@@ -1,2 +1,4 @@"; zero without such a header.
func hunkSize(header string) (was, became int) {
	size := func(s string) int {
		_, count, ok := strings.Cut(s, ",")
		if n := 0; ok {
			if _, err := fmt.Sscanf(count, "%d", &n); err != nil || n < 0 {
				return 0
			}
			return n
		}
		return 1
	}
	f := strings.Fields(header)
	if len(f) < 3 || !strings.HasPrefix(f[1], "-") || !strings.HasPrefix(f[2], "+") {
		return 0, 0
	}
	return size(f[1]), size(f[2])
}
