package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"centurion"
)

//go:embed page.html
var page string

// HTML writes the report as one page that needs nothing else: no script, no image, no font and no style from anywhere. An
// error is that of w.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"line": oneLine, "text": Clean, "short": short, "span": span, "clock": clock, "hash": hash, "money": money, "tokens": tokens,
		"runs": runs, "runWord": runWord, "ended": ended, "died": died, "worth": r.worth, "tail": tail, "diff": diffLines,
		"join": strings.Join, "badge": badge, "doubted": doubted, "ranInto": ranInto, "plain": plainPatch,
		"add": func(a, b float64) float64 { return a + b }, "count": centurion.Count, "axis": func(t centurion.Time) string { return axis(r.Timeline.at(t)) },
		"sections": r.sections, "undone": func() []string { return r.Undone }, "summed": summed,
		"decided":  func(all []Decision) []Decision { return all[:min(len(all), pageRows)] },
		"troubled": func(all []Trouble) []Trouble { return all[:min(len(all), pageRows)] },
		"more":     more,
		"costs":    func(name string, rows []Spent) costs { return costs{name, rows} },
		"last":     func(s []Span) centurion.Time { return s[len(s)-1].To },
		"between":  func(a, b centurion.Time) string { return cmp.Or(span(b.Sub(a.Time).Milliseconds()), "no time") },
	}).Parse(page)
	if err != nil {
		return &centurion.Error{Op: "write report", Kind: centurion.KindInternal, Err: err}
	}
	return t.Execute(w, struct {
		*Report
		Headline, Proofs, Where, Base string
		Picture                       *picture
	}{r, r.headline(), r.proofs(), r.where(), r.base(), draw(r.Timeline)})
}

// pageRows is how many rows of a table the page has; the data has all of them.
const pageRows = 500

// more says how many rows a table of n leaves out.
func more(n int) string {
	if n <= pageRows {
		return ""
	}
	return fmt.Sprintf("%d more are left out; --format json has them.", n-pageRows)
}

// costs is a table of costs, named by what its rows are.
type costs struct {
	Name string
	Rows []Spent
}

// section is an item, or the mission itself, with its checks.
type section struct {
	Title  string
	Checks []Check
}

// sections are the items that have checks, and the mission's own checks.
func (r *Report) sections() []section {
	var out []section
	for _, it := range r.Items {
		if len(it.Checks) > 0 {
			out = append(out, section{oneLine(it.ID + " " + it.Title), it.Checks})
		}
	}
	if len(r.Checks) > 0 {
		out = append(out, section{"The mission's own checks", r.Checks})
	}
	return out
}

// badge is the class of a standing: good, fair, none or bad.
func badge(s Standing) string {
	switch s {
	case Proven:
		return "good"
	case Regression, Passed, Reviewed:
		return "fair"
	case Unchecked, NotRun:
		return "none"
	}
	return "bad"
}

// diffLine is one line of a patch.
type diffLine struct{ Class, Text string }

// maxDiff is how many lines of a patch are shown.
const maxDiff = 400

// diffLines are the lines of a patch, each with what it is.
func diffLines(patch string) []diffLine {
	var out []diffLine
	for l := range strings.SplitSeq(strings.TrimRight(Clean(patch), "\n"), "\n") {
		if len(out) == maxDiff {
			return append(out, diffLine{"note", "… the rest is left out"})
		}
		d := diffLine{"same", l}
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"), strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "index "):
			d.Class = "note"
		case strings.HasPrefix(l, "@@"):
			d.Class = "hunk"
		case strings.HasPrefix(l, "+"):
			d.Class = "plus"
		case strings.HasPrefix(l, "-"):
			d.Class = "minus"
		}
		out = append(out, d)
	}
	return out
}

// summed is the sum of several rows of costs.
func summed(rows []Spent) Spent {
	s := Spent{Name: "Together"}
	for _, r := range rows {
		s.Requests += r.Requests
		s.Usage = s.Usage.Plus(r.Usage)
	}
	return s
}
