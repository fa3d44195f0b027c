//go:build browser

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/internal/browser"
)

const (
	// overlaid are words of the picture that lie on others.
	overlaid = `(() => {
		const out = [];
		for (const svg of document.querySelectorAll('.time svg')) {
			const all = [...svg.querySelectorAll('text')].filter(t => !t.hasAttribute('font-size')).map(t => [t.childNodes[0].data, t.getBBox()]);
			all.forEach(([a, p], i) => all.slice(i + 1).forEach(([b, q]) => {
				if (p.x < q.x + q.width && q.x < p.x + p.width && p.y + 2 < q.y + q.height && q.y + 2 < p.y + p.height) out.push(a + ' / ' + b);
			}));
		}
		return out;
	})()`
	// tiny are words of the picture that are drawn smaller than 10 pixels.
	tiny = `[...document.querySelectorAll('.time svg')].filter(s => 12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width < 10).map(s => s.getBoundingClientRect().width)`
	// folded are parts that stay folded.
	folded = `[...document.querySelectorAll('details')].filter(d => d.getBoundingClientRect().height < d.querySelector('summary').getBoundingClientRect().height + 5).map(d => d.textContent.slice(0, 60))`
)

// odd is a mission with all that is hard to lay out: names and paths without end, other scripts and directions, markup.
func odd() Data {
	d := sample()
	long := strings.Repeat("very/long/directory_name_without_a_break/", 9) + "file.go"
	d.Mission.Goal = "اكتب وحدة لتحديد المعدل مع اختبارات كاملة\nand <img src=x onerror=alert(1)> </script><script>alert(2)</script>"
	d.Mission.Branch, d.Mission.Directory = "centurion/"+strings.Repeat("x", 150), "/home/me/"+long
	d.Mission.Reason = strings.Repeat("w", 300)
	d.Items[0].Title, d.Items[0].Agent = "הוסף בדיקות למגביל הקצב "+strings.Repeat("Langwortohnepause", 14), strings.Repeat("agent", 20)
	d.Items[1].Files, d.Items[1].Verify = []string{long}, []string{"go test -run 'TestOne|TestOther' ./" + long + " && echo " + strings.Repeat("y", 200)}
	d.Receipts[1].Command, d.Receipts[1].Output = d.Items[1].Verify[0], ""
	d.Tasks[0].Title, d.Tasks[1].Title = d.Items[0].Title, "限制请求速率并为每个用户编写完整的测试用例，包括边界情况和并发访问的场景"
	d.Files[0].Path = long
	d.Receipts[0].Removed = "diff --git a/" + long + " b/" + long + "\n@@ -1,30 +0,0 @@\n" + strings.Repeat("-"+strings.Repeat("\tif tokens.Available(ctx) > limits.Of(user) {", 3)+"\n", 30)
	d.Reviews = map[string]Review{"T4": {Item: "T4", Name: "T4"}}
	d.Receipts[0].FailureLine = strings.Repeat("limit_test.go:31: want ErrFull, got <nil> "+long+"\n", 12)
	for i := range 30 {
		d.Events = append(d.Events, moved(5500+i, centurion.EventTaskRetrying, "tsk_2", centurion.TaskRunning, i, fmt.Sprint(i, " times 429 from ", long)))
	}
	return d
}

// A real browser shows the page without a complaint, with nothing cut off, broken or faint, wide and narrow, by light and in the dark,
// with the keyboard and on paper.
func TestBrowser(t *testing.T) {
	b := browser.Open(t)
	dir := t.TempDir()
	for name, d := range map[string]Data{"sample": sample(), "many": big(50), "dense": dense(), "odd": odd(), "empty": {}} {
		file := filepath.Join(dir, name+".html")
		var page bytes.Buffer
		if err := New(d).HTML(&page); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{1280, 420, 320} {
				where := fmt.Sprintf("%s, %s, %d px", name, scheme, width)
				b.Window(width, scheme)
				for _, wrong := range b.Load("file://"+file, "file://"+file) {
					t.Errorf("%s: %s", where, wrong)
				}
				if got := b.Eval(`getComputedStyle(document.body).backgroundColor`); (got == "rgb(255, 255, 255)") != (scheme == "light") {
					t.Errorf("%s: the ground is %v: the style was not taken", where, got)
				}
				b.Fits(where)
				b.None(where, "lie on each other", overlaid)
				b.None(where, "words are too small", tiny)
			}
		}
	}
	b.Load("file://"+filepath.Join(dir, "sample.html"), "")
	b.Press("Tab")
	if got := b.Eval(`document.activeElement.tagName + ' ' + getComputedStyle(document.activeElement).outlineStyle`); got != "A solid" {
		t.Errorf("after a tab key %v has the focus", got)
	}
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}})
	b.None("on paper", "is folded", folded)
	b.None("on paper", "is too faint", browser.Faint)
	if got := b.Eval(`getComputedStyle(document.body).color`); got != "rgb(27, 31, 39)" {
		t.Errorf("on paper the ink is %v", got)
	}
	var pdf struct{ Data []byte }
	if b.Result(&pdf, "Page.printToPDF", map[string]any{"printBackground": true}); !bytes.HasPrefix(pdf.Data, []byte("%PDF")) {
		t.Error("it cannot be printed")
	}
}
