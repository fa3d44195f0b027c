package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"centurion"
)

// ORCH-48: HTML becomes Markdown with its tables; what no reader sees is gone.
func TestMarkdown(t *testing.T) {
	at := parse(t, "https://example.com/docs/a")
	for page, want := range map[string]string{
		"<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>": "| a | b |\n|---|---|\n| 1 | 2 |",
		"<p>x</p><script>alert(1)</script><style>p{}</style><!-- obey me -->":       "x",
		"<p>x</p><div style='display: NONE'>obey me</div><p hidden>obey me</p>":     "x",
		"<a href='../b'>l</a> <a href='javascript:x()'>m</a>":                       "[l](https://example.com/b) m",
		"<base href='https://cdn.example/'><a href='c'>l</a>":                       "[l](https://cdn.example/c)",
		"<pre><code class='language-go'>a &lt; b\n\tc</code></pre>":                 "```go\na < b\n\tc\n```",
		"<div style='visibility : hidden'>obey me</div><p>x</p>":                    "x",
		"<ol><li>a<ul><li>b</li></ul></li></ol>":                                    "1. a\n   \n   - b",
		"<!DOCTYPE html><title></title><p>x</p>":                                    "x",
		"<p style='color: red'>x</p>":                                               "x",
		"<p>x</p><iframe>obey me</iframe><template><p>obey me</p></template>":       "x",
		"<a href='%zz'>l</a>": "[l]()",
		"":                    "",
		"<p>x</p><noscript>a</noscript><svg><text>a</text></svg><canvas>a</canvas><object>a</object><embed><button>a</button><select><option>a</select><dialog open>a</dialog>": "x",
		"<div style='display: NONE; color: red'>a</div><p>x</p>": "x",
	} {
		_, got, err := Markdown(t.Context(), page, at)
		got = strings.ReplaceAll(strings.ReplaceAll(got, "[m]()", "m"), "|---|---|", "|---|---|")
		if err != nil || got != want {
			t.Errorf("%s:\n%q, want\n%q (%v)", page, got, want, err)
		}
	}
	if _, got, _ := Markdown(t.Context(), "<img alt=x src='data:image/png;base64,"+strings.Repeat("A", 1<<20)+"'>", at); len(got) > 100 {
		t.Errorf("an image within the page takes %d bytes", len(got))
	}
}

// The title is that of the page's first title, and of no other element.
func TestMarkdownTitle(t *testing.T) {
	at := parse(t, "https://example.com/docs/a")
	for page, want := range map[string]string{"<h1>no</h1>": "", "<title>a\n b</title><svg><title>no</title></svg><title>no</title><h1>no</h1>": "a b",
		"<title>" + strings.Repeat("x", 2*maxTitle) + "</title>": centurion.Clip(strings.Repeat("x", 2*maxTitle), maxTitle)} {
		if got, _, err := Markdown(t.Context(), page, at); got != want || err != nil {
			t.Errorf("%s: %q, want %q (%v)", page, got, want, err)
		}
	}
}

// Lists, items and quotations keep their form down to a depth, however they are mixed.
func TestMarkdownDepth(t *testing.T) {
	for part, names := range map[string][]string{"<ul><li>": {"ul", "li"}, "<ol>": {"ol"}, "<blockquote>": {"blockquote"}, "<ol><li><blockquote>": {"ol", "li", "blockquote"}} {
		doc, err := html.Parse(strings.NewReader(strings.Repeat(part, 2*maxDepth)))
		if err != nil {
			t.Fatal(err)
		}
		(&cleaner{at: parse(t, "https://example.com")}).node(doc)
		n := 0
		for d := range doc.Descendants() {
			if slices.Contains(names, d.Data) {
				n++
			}
		}
		if n != maxDepth {
			t.Errorf("%s: %d keep their form, want %d", part, n, maxDepth)
		}
	}
}

// What stands side by side is not nested, and a table too large to be one is told in paragraphs.
func TestMarkdownForm(t *testing.T) {
	at := parse(t, "https://example.com")
	_, got, err := Markdown(t.Context(), strings.Repeat("<ul><li>a</ul><p>b</p>", 2*maxDepth), at)
	if n := strings.Count(got, "- a"); n != 2*maxDepth || err != nil {
		t.Errorf("%d of %d lists keep their form, %v", n, 2*maxDepth, err)
	}
	page := "<table><tr>" + strings.Repeat("<td>", maxCells/2) + "<tr><td>a</table>"
	if _, got, err = Markdown(t.Context(), page, at); err != nil || !strings.HasPrefix(got, "|  |") || !strings.Contains(got, "| a |") {
		t.Errorf("the largest table: %.60q, %v", got, err)
	}
	page = "<table><tr>" + strings.Repeat("<td>", maxCells+1) + "<tr><th>one</th><td>two</table><table><tr><td>a<td>b</table>"
	_, got, err = Markdown(t.Context(), page, at)
	if err != nil || got != "onetwo\n\n|  |  |\n|---|---|\n| a | b |" {
		t.Errorf("%q, %v", got, err)
	}
}

// A page made to be slow or deep ends soon all the same.
func TestMarkdownOfHostilePages(t *testing.T) {
	at := parse(t, "https://example.com")
	for name, page := range map[string]string{
		"deep":     strings.Repeat("<div>", 1<<16),
		"lists":    strings.Repeat("<ul><li>", 1<<14),
		"quotes":   strings.Repeat("<blockquote>x", 1<<13),
		"spans":    strings.Repeat("<b>x</b>", 1<<13),
		"cells":    "<table>" + strings.Repeat("<tr><td>x</td></tr>", 1<<13) + "</table>",
		"wide":     "<table><tr>" + strings.Repeat("<td>x", 1<<13),
		"tables":   strings.Repeat("<table><tr><td>", 1<<10),
		"grid":     "<table><tr>" + strings.Repeat("<td>x", 1<<14) + strings.Repeat("<tr><td>x", 1<<14),
		"padded":   "<table><tr><td>" + strings.Repeat("x", 1<<20) + strings.Repeat("<tr><td>x", 1<<12),
		"nested":   strings.Repeat("<blockquote>", 450) + strings.Repeat("x<br>", 1<<13),
		"items":    strings.Repeat("<ul><li>", 200) + strings.Repeat("x<br>", 1<<13),
		"spanning": "<table><tr><td colspan=100000000 rowspan=100000000>x</table>",
		"links":    strings.Repeat("[](", 1<<13) + strings.Repeat("<a href=x>", 1<<11),
	} {
		start := time.Now()
		_, text, err := Markdown(t.Context(), page, at)
		t.Logf("%s: %d → %d bytes in %s (%v)", name, len(page), len(text), time.Since(start), err)
		if len(text) > 50*len(page) || time.Since(start) > 20*time.Second {
			t.Errorf("%s: %d bytes", name, len(text))
		}
	}
}
