package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"centurion"
)

// resolves reports ids that are not unique, labels that nothing has, and links that lead out of the page or nowhere.
func resolves(t *testing.T, root *html.Node) {
	t.Helper()
	ids := map[string]int{}
	var named, linked []string
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				ids[a.Val]++
			case "aria-labelledby":
				named = append(named, strings.Fields(a.Val)...)
			case "href":
				to, ok := strings.CutPrefix(a.Val, "#")
				if !ok {
					t.Errorf("a link leads to %q", a.Val)
				}
				linked = append(linked, to)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if ids[id] != 1 || id == "" || strings.ContainsAny(id, " \t\n") {
			t.Errorf("the id %q is there %d times", id, ids[id])
		}
	}
	for _, id := range slices.Concat(named, linked) {
		if ids[id] == 0 {
			t.Errorf("nothing has the id %q", id)
		}
	}
	if len(linked) == 0 || len(named) == 0 {
		t.Error("there are no links, or no labels")
	}
}

// pageOf renders and parses a page, and reports what must not be in it.
func pageOf(t *testing.T, d Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := New(d).HTML(&b); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for tag := range strings.FieldsSeq("html head body meta title style header main section div p h1 h2 h3 h4 pre code span strong em br ul li " +
		"table caption thead tbody tfoot tr th td details summary nav a svg g rect line path text desc") {
		allowed[tag] = true
	}
	attrs := map[string]bool{}
	for a := range strings.FieldsSeq("href data-label lang charset name content http-equiv class id dir scope aria-labelledby aria-label aria-hidden role tabindex " +
		"viewBox x y x1 y1 x2 y2 width height rx d transform text-anchor font-size") {
		attrs[a] = true
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !allowed[n.Data] {
			t.Errorf("the page has an element <%s>", n.Data)
		}
		for _, a := range n.Attr {
			if !attrs[a.Key] {
				t.Errorf("the page has an attribute %s=%q on <%s>", a.Key, a.Val, n.Data)
			}
		}
	}
	resolves(t, root)
	return b.String()
}

// The page needs nothing else: it references no other resource and no address.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Mission.Goal = "plain" // the sample's goal has an address in its text
	page := pageOf(t, d)
	rest := strings.NewReplacer("// &lt;script&gt;", "", ` href="#`, " ").Replace(policyOf.ReplaceAllString(page, ""))
	for _, no := range []string{"http:", "https:", "@import", "src=", "href=", "url(", "<script", "<link", "<iframe", "javascript:", "//", "style="} {
		if strings.Contains(rest, no) {
			t.Errorf("the page has %q", no)
		}
	}
	if got, want := policyOf.FindString(page), `content="default-src &#39;none&#39;; style-src &#39;sha256-`; !strings.HasPrefix(got, want) {
		t.Errorf("the policy is %s", got)
	}
	sum := sha256.Sum256([]byte(between(page, "<style>", "</style>")))
	if digest := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(html.UnescapeString(page), "'sha256-"+digest+"'") {
		t.Error("the policy has another digest than the style: a browser would show the page without it")
	}
}

// policyOf finds the content of the page's policy; a digest in it may look like an address.
var policyOf = regexp.MustCompile(`content="default-src[^"]*"`)

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// FuzzHostile: whatever a model or a command wrote, the page has no element and no attribute that it did not have, and Markdown no
// markup of theirs.
func FuzzHostile(f *testing.F) {
	for _, s := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "</title></svg><b onload=x>", "```\n# no\n<i>", "[a](javascript:x)",
		"\x1b]8;;http://x\x07y", "\u202eevil", "</pre></style><style>*{}", "{{.Mission}}", "a|b\n---|---", "]]><!--", "\xff\xfe", "<http://x> www.x.org a@b.c", "===\n---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := sample()
		m := &d.Mission
		m.Goal, m.Reason, m.Summary, m.Branch, m.ID, m.Directory, m.Options.Model = s, s, s, s, s, s, s
		m.Status = centurion.MissionStatus(s)
		for i := range d.Items {
			it := &d.Items[i]
			it.ID, it.Title, it.Agent, it.Status, it.Files, it.After, it.Verify = s, s, s, s, []string{s}, []string{s}, []string{s}
		}
		for i := range d.Tasks {
			d.Tasks[i].Title, d.Tasks[i].Item, d.Tasks[i].Agent = s, s, s
		}
		for i := range d.Receipts {
			r := &d.Receipts[i]
			r.Item, r.Command, r.Why, r.FailureLine, r.Removed, r.Output, r.Error, r.Tree, r.Weakened = s, s, s, s, s, s, s, s, []string{s}
			for j := range r.Runs {
				r.Runs[j].Output, r.Runs[j].Kind, r.Runs[j].Broken = s, centurion.RunKind(s), s
			}
		}
		d.Files[0].Path, d.Files[0].Old, d.Files[0].Status, d.Files[0].Hunks[0].Text = s, s, s, s
		for _, typ := range []centurion.EventType{centurion.EventTaskQueued, centurion.EventTaskRetrying, centurion.EventSessionError, centurion.EventQuestionAsked,
			centurion.EventMergeConflict, centurion.EventMissionResumed, centurion.EventSessionModel} {
			d.Events = append(d.Events, fact(5500, typ, s, s, map[string]any{"agent": s, "title": s, "reason": s, "error": s, "text": s, "answer": s, "by": s,
				"type": s, "files": []string{s}, "to": s, "from": s}))
		}
		pageOf(t, d)
		var b bytes.Buffer
		if err := New(d).Markdown(&b); err != nil {
			t.Fatal(err)
		}
		checkMarkdown(t, b.String())
	})
}

// What models wrote is shown as they wrote it.
func TestHostileTextIsShown(t *testing.T) {
	t.Parallel()
	const script, img = "</script></pre><script>alert(1)</script>", "<img src=x onerror=alert(2)>"
	d := sample()
	d.Mission.Goal = script + img
	d.Items[0].Title, d.Tasks[0].Title = img, img
	d.Files[0].Path = "a/" + img + ".go"
	d.Files[0].Hunks[0].Text = "+" + script + "\n"
	d.Receipts[0].Removed = "diff --git a/" + img + " b/" + img + "\n--- a/" + img + "\n+++ b/" + img + "\n@@ -0,0 +1 @@\n+" + script + "\n"
	root, err := html.Parse(strings.NewReader(pageOf(t, d)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"h1": script + img, "title": short(script+img, 80) + " · report", "code": "a/" + img + ".go", "h3": "T1 " + img}
	classes := map[string]string{"file": img, "plus": "+" + script, "minus": "-" + script}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "img" || n.Data == "script" {
			t.Errorf("the page has an element <%s>", n.Data)
		}
		if want[n.Data] == textOf(n) {
			delete(want, n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "class" && n.Data == "span" && classes[a.Val] == textOf(n) {
				delete(classes, a.Val)
			}
		}
	}
	if len(want)+len(classes) > 0 {
		t.Errorf("not shown: %q %q", want, classes)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// The contrasts that WCAG 2.2 asks for at level AA: of text, and of what a picture is read from.
const (
	textContrast    = 4.5
	graphicContrast = 3.0
)

// Every text that the style colours can be read on everything that it may stand on, by light and in the dark.
func TestContrast(t *testing.T) {
	t.Parallel()
	css := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(style, "")
	roots := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(css, -1)
	if len(roots) != 2 {
		t.Fatalf("there are %d sets of colours", len(roots))
	}
	for i, name := range []string{"light", "dark"} {
		vars := map[string]string{}
		for _, r := range roots[:i+1] {
			for _, v := range regexp.MustCompile(`--(\w+):(#\w+)`).FindAllStringSubmatch(r[1], -1) {
				vars[v[1]] = v[2]
			}
		}
		check := func(ink, ground string, least float64, where string) {
			t.Helper()
			if got := contrast(t, vars[ink], vars[ground]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, less than %.1f (%s)", name, ink, ground, got, least, where)
			}
		}
		rules := regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`).FindAllStringSubmatch(css, -1)
		texts := 0
		for _, r := range rules {
			ink := regexp.MustCompile(`(?:^|;)color:var\(--(\w+)\)`).FindStringSubmatch(r[2])
			ground := regexp.MustCompile(`(?:^|;)background:var\(--(\w+)\)`).FindStringSubmatch(r[2])
			mark := regexp.MustCompile(`(?:^|;)fill:var\(--(\w+)\)`).FindStringSubmatch(r[2])
			switch {
			case ink != nil && ground != nil:
				check(ink[1], ground[1], textContrast, r[1])
				texts++
			case ink != nil:
				check(ink[1], "bg", textContrast, r[1])
				check(ink[1], "soft", textContrast, r[1])
				texts++
			case ground != nil:
				check("ink", ground[1], textContrast, r[1])
			case mark != nil && mark[1] != "soft":
				check(mark[1], "bg", graphicContrast, r[1])
				check(mark[1], "soft", graphicContrast, r[1])
			}
		}
		check("bad", "badbg", textContrast, "the heading of the doubts")
		if texts < 10 {
			t.Errorf("%s: the style colours only %d texts: the test does not read it any more", name, texts)
		}
	}
}

// contrast is the contrast of two colours #rgb or #rrggbb as WCAG 2.2 reckons it, from 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	light := func(s string) float64 {
		s = strings.TrimPrefix(s, "#")
		if len(s) == 3 {
			s = fmt.Sprintf("%c%c%c%c%c%c", s[0], s[0], s[1], s[1], s[2], s[2])
		}
		n, err := strconv.ParseUint(s, 16, 32)
		if err != nil || len(s) != 6 {
			t.Fatalf("%q is no colour", s)
		}
		part := func(v uint64) float64 {
			c := float64(v&0xff) / 255
			if c <= 0.04045 {
				return c / 12.92
			}
			return math.Pow((c+0.055)/1.055, 2.4)
		}
		return 0.2126*part(n>>16) + 0.7152*part(n>>8) + 0.0722*part(n)
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// A patch is read as its hunks say: a line that begins like a header and stands in a hunk is a line.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		patch string
		want  []string
	}{
		"two files": {"diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,2 @@ func f\n a\n--- a/old\n+++ b/new\n" +
			"diff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n",
			[]string{"file x.go", "hunk @@ -1,2 +1,2 @@ func f", "same  a", "minus --- a/old", "plus +++ b/new", "file y (new)", "hunk @@ -0,0 +1 @@", "plus +b", `note \ No newline at end of file`}},
		"gone, renamed, binary": {"diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
			"diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\ndiff --git a/l b/l\nBinary files a/l and b/l differ\n",
			[]string{"file x (deleted)", "hunk @@ -1 +0,0 @@", "minus -a", "file q (renamed)", "file l (binary)"}},
		"hunks only":     {"@@ -1 +1 @@\n-a\n+b\n", []string{"hunk @@ -1 +1 @@", "minus -a", "plus +b"}},
		"nothing of git": {"rename from\n@@ x\n+y", []string{"same rename from", "hunk @@ x", "plus +y"}},
	} {
		var got []string
		for _, l := range diffLines(x.patch) {
			got = append(got, l.Class+" "+l.Text)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
	if got := diffLines(strings.Repeat("+a\n", 2*maxDiff)); len(got) != maxDiff+1 || got[maxDiff].Class != "note" {
		t.Errorf("a long patch has %d lines", len(got))
	}
}

// The first lines say what failed on the way and who worked.
func TestGlance(t *testing.T) {
	t.Parallel()
	r := New(sample())
	if got, want := r.way(), "On the way: 1 red check, 1 conflict, 1 time sent back, 1 time cut off, 1 restart of its host."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := r.who(), "Who worked: commander, worker (2 tasks)."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.tone() != "doubted" || New(Data{Mission: centurion.Mission{Status: centurion.MissionCompleted}}).tone() != "completed" {
		t.Errorf("the tone is %q", r.tone())
	}
	if got, want := New(Data{}).way(), "Nothing failed on the way, and nothing was sent back."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What happened is told once: neither a kind whose words say it already nor one that comes again is written twice.
func TestHappenings(t *testing.T) {
	t.Parallel()
	r := &Report{Timeline: Timeline{From: at(0), To: at(600)}}
	l := Lane{Marks: []Mark{{MarkRetry, at(10), "429"}, {MarkRetry, at(70), "429"}, {MarkRetry, at(130), "500"}, {MarkFail, at(140), "failed: it broke"},
		{MarkConflict, at(150), "conflict in a.go"}, {MarkDone, at(160), "completed"}, {MarkRed, at(5), "go test"}}}
	var got []string
	for _, h := range happenings(l) {
		got = append(got, r.when(h)+suffix(h.Sep, h.Text))
	}
	want := []string{"5s red check: go test", "10s–1m10s tried again ×2: 429", "2m10s tried again: 500", "2m20s failed or blocked: failed: it broke",
		"2m30s conflict in a.go", "2m40s completed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
