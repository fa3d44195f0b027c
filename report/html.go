package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"centurion"
	"centurion/text"
)

//go:embed page.html
var page string

//go:embed page.css
var style string

// HTML writes the report as one self-contained page: without scripts, images, fonts and external styles, and with a policy that keeps a
// browser from loading any. An error is that of w.
func (r *Report) HTML(w io.Writer) error {
	t, v, err := r.view()
	if err != nil {
		return err
	}
	return t.Execute(w, v)
}

// Part is a part of the page, for a page that shows more than the report.
type Part struct {
	ID   string // of its heading
	Name string // in a list of contents
	HTML template.HTML
}

// Parts are the parts of the page in their order: first the verdict, which has no heading and no name. They need [Style].
func (r *Report) Parts() ([]Part, error) {
	t, v, err := r.view()
	if err != nil {
		return nil, err
	}
	parts := []Part{{ID: "verdict"}, {ID: "goal", Name: "Goal"}}
	for _, c := range contents() {
		parts = append(parts, Part{ID: c.ID, Name: c.Name})
	}
	for i := range parts {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, parts[i].ID, v); err != nil {
			return nil, &centurion.Error{Op: "write report", Kind: centurion.KindInternal, Err: err}
		}
		parts[i].HTML = template.HTML(b.String())
	}
	return parts, nil
}

// contents are the parts that the page lists at its top.
func contents() []Part {
	return []Part{{ID: "plan", Name: "Plan"}, {ID: "time", Name: "Timeline"}, {ID: "troubles", Name: "What went wrong"}, {ID: "receipts", Name: "Receipts"},
		{ID: "decisions", Name: "Questions"}, {ID: "files", Name: "Files"}, {ID: "cost", Name: "Cost"}, {ID: "next", Name: "What you can do now"}}
}

// Style is the style sheet of the page.
func Style() string { return style }

// view is the template of the page with what it shows.
func (r *Report) view() (*template.Template, any, error) {
	anchors := r.anchors()
	t, err := template.New("page").Funcs(template.FuncMap{
		"line": text.Clean, "text": text.CleanText, "short": short, "span": span, "clock": clock, "hash": hash, "money": money, "tokens": text.Tokens,
		"runs": runs, "runWord": runWord, "runBadge": runBadge, "reversed": reversed, "ended": ended, "died": died, "without": without, "early": early, "worth": r.worth, "tail": tail, "diff": diffLines,
		"join": strings.Join, "lower": strings.ToLower, "badge": badge, "doubted": doubted, "ranInto": ranInto, "named": Mark.name, "moment": r.Timeline.moment, "happened": happenings, "when": r.when, "gap": gapWord,
		"add": func(a, b float64) float64 { return a + b }, "count": centurion.Count, "axis": func(t centurion.Time) string { return axis(r.Timeline.at(t)) },
		"sections": r.sections, "undone": func() []string { return r.Undone }, "summed": summed, "contents": contents,
		"decided":  func(all []Decision) []Decision { return all[:min(len(all), pageRows)] },
		"troubled": func(all []Trouble) []Trouble { return all[:min(len(all), pageRows)] },
		"written":  func(all []Said) []Said { return all[:min(len(all), pageRows)] },
		"askedBy":  Decision.of,
		"sentTo":   Said.to,
		"read":     r.read,
		"more":     more,
		"costs":    func(name string, rows []Spent) costs { return costs{name, rows} },
		"last":     func(s []Span) centurion.Time { return s[len(s)-1].To },
		"between":  func(a, b centurion.Time) string { return cmp.Or(span(b.Sub(a.Time).Milliseconds()), "no time") },
		"anchor":   func(item string) string { return anchors[item] },
	}).Parse(page)
	if err != nil {
		return nil, nil, &centurion.Error{Op: "write report", Kind: centurion.KindInternal, Err: err}
	}
	return t, struct {
		*Report
		Headline, Proofs, Way, Who, Tone, Where, Base, Confined, Policy string
		GoalTold                                                        bool
		Style                                                           template.CSS
		Tally                                                           []tally
		Picture                                                         *picture
	}{r, r.headline(), r.proofs(), r.way(), r.who(), r.tone(), r.where(), r.base(), r.confinement(), policy(style), r.goalTold(), template.CSS(style), r.tallies(), draw(r.Timeline)}, nil
}

// policy lets a browser load only the page's own style, identified by its digest. Anything smuggled in by a text, such as a style, a
// form or a base address, is refused.
func policy(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// pageRows limits the rows of a table on the page; the data has all of them.
const pageRows = 500

// more describes how many of n rows a table omits.
func more(n int) string {
	return text.When(n > pageRows, fmt.Sprintf("%d more are left out; --format json has them.", n-pageRows))
}

// costs is a table of costs, named after its rows.
type costs struct {
	Name string
	Rows []Spent
}

// section is an item, or the mission itself, with its checks.
type section struct {
	ID     string // of its heading in the page
	Item   string // empty for the mission itself
	Title  string
	Checks []Check
}

// sections are the items with checks, and the mission's own checks.
func (r *Report) sections() []section {
	var out []section
	add := func(item, title string, checks []Check) {
		if len(checks) > 0 {
			out = append(out, section{fmt.Sprintf("receipts-%d", len(out)+1), item, title, checks})
		}
	}
	for _, it := range r.Items {
		add(it.ID, short(it.ID+" "+it.Title, maxHeading), it.Checks)
	}
	add("", "The mission's own checks", r.Checks)
	return out
}

// anchors are the ids of the sections by item id.
func (r *Report) anchors() map[string]string {
	out := map[string]string{}
	for _, s := range r.sections() {
		if s.Item != "" {
			out[s.Item] = s.ID
		}
	}
	return out
}

// badge is the class of a standing: good, fair, none or bad.
func badge(s Standing) string {
	classes := map[Standing]string{Proven: "good", Regression: "fair", Passed: "fair", Reviewed: "fair",
		Unchecked: "none", NotRun: "none", Reverted: "none"}
	return cmp.Or(classes[s], "bad")
}

// summed is the sum of rows of costs.
func summed(rows []Spent) Spent {
	s := Spent{Name: "Together"}
	for _, r := range rows {
		s.Requests += r.Requests
		s.Usage = s.Usage.Plus(r.Usage)
	}
	return s
}
