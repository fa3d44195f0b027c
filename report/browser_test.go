//go:build browser

package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
)

// browser is a browser that is driven over two pipes, as its --remote-debugging-pipe does it: JSON, each message ended by a zero byte.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string // of the page
	last    int
	events  []message
	stderr  *bytes.Buffer
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// open starts the browser that is installed; scripts/browser.sh installs one. It never skips: a test that nobody can run shows
// nothing.
func open(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if at, err := exec.LookPath(name); err == nil {
			program = at
			break
		}
	}
	if program == "" {
		t.Fatal("no browser is installed; scripts/browser.sh installs one")
	}
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	args := []string{"--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-pipe",
		"--user-data-dir=" + home}
	if os.Geteuid() == 0 { // its sandbox refuses to work for root
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, program, append(args, "about:blank")...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = home, append(os.Environ(), "HOME="+home), 5*time.Second
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, in: in, out: bufio.NewReader(out), stderr: new(bytes.Buffer)}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirIn, theirOut}, b.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		_ = cmd.Wait() // how a browser that was told to close ends is its own affair
		cancel()
		in.Close()
		out.Close()
	})
	var target struct{ TargetID string }
	b.result(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	b.result(&attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime", "Network"} {
		b.call(domain+".enable", nil)
	}
	return b
}

// call calls a method and returns its result. What the browser tells meanwhile is kept.
func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	m := map[string]any{"id": b.last, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", method, err, b.stderr)
	}
	for {
		m := b.next(method)
		if m.ID != b.last {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		return m.Result
	}
}

// next takes the browser's next message.
func (b *browser) next(why string) message {
	b.t.Helper()
	text, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("%s: the browser is gone: %v\n%s", why, err, b.stderr)
	}
	var m message
	if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
		b.t.Fatal(err)
	}
	if m.Method != "" {
		b.events = append(b.events, m)
	}
	return m
}

func (b *browser) result(into any, method string, params any) {
	b.t.Helper()
	if err := json.Unmarshal(b.call(method, params), into); err != nil {
		b.t.Fatal(err)
	}
}

// load opens a file and waits until it has been loaded. It returns what was complained of, and what was asked for beyond the file.
func (b *browser) load(file string) (wrong []string) {
	b.t.Helper()
	address := (&url.URL{Scheme: "file", Path: file}).String()
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": address})
	loaded := func(m message) bool { return m.Method == "Page.loadEventFired" }
	for !slices.ContainsFunc(b.events, loaded) {
		b.next("load")
	}
	b.eval("1") // what is told until here belongs to the page
	for _, m := range b.events {
		switch m.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			wrong = append(wrong, string(m.Params))
		case "Network.requestWillBeSent":
			if !strings.Contains(string(m.Params), `"url":"`+address+`"`) {
				wrong = append(wrong, "it asks for "+string(m.Params))
			}
		}
	}
	return wrong
}

// eval is the value of an expression in the page.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.result(&r, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s\n%s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// none fails for each line that an expression, which makes a list of texts, finds.
func (b *browser) none(where, what, expression string) {
	b.t.Helper()
	found, ok := b.eval(expression).([]any)
	if !ok {
		b.t.Fatalf("%s: the expression for %q makes no list", where, what)
	}
	for i, f := range found {
		if i == 5 {
			b.t.Errorf("%s: %s: and %d more", where, what, len(found)-i)
			break
		}
		b.t.Errorf("%s: %s: %v", where, what, f)
	}
}

const (
	// wide are elements that reach out of the window although nothing there can be scrolled.
	wide = `[...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll, pre, svg') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
		.map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60))`
	// broken are headings of columns that are broken into pieces.
	broken = `[...document.querySelectorAll('th[scope=col]')].filter(e => e.offsetParent && getComputedStyle(e.closest('thead')).position != 'absolute' && e.clientHeight > 60).map(e => e.textContent)`
	// faint are texts that stand out too little from what is behind them, as they are really drawn.
	faint = `(() => {
		const rgb = s => (s.match(/[\d.]+/g) || []).map(Number);
		const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 }); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
		const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length == 3) return c } return [255, 255, 255] };
		const out = new Set();
		const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let n = all.nextNode(); n; n = all.nextNode()) {
			const e = n.parentElement;
			if (!n.data.trim() || ['title', 'desc'].includes(e.tagName.toLowerCase())) continue;
			const style = getComputedStyle(e);
			const a = light(rgb(e.closest('svg') ? style.fill : style.color)), b = light(ground(e));
			const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			if (!(contrast >= 4.5)) out.add(contrast.toFixed(2) + ': ' + e.tagName + '.' + (e.className.baseVal ?? e.className) + ' ' + n.data.trim().slice(0, 40));
		}
		return [...out];
	})()`
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
	b := open(t)
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
				b.call("Emulation.setEmulatedMedia", map[string]any{"media": "screen", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
				b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
				for _, wrong := range b.load(file) {
					t.Errorf("%s: %s", where, wrong)
				}
				if got := b.eval(`getComputedStyle(document.body).backgroundColor`); (got == "rgb(255, 255, 255)") != (scheme == "light") {
					t.Errorf("%s: the ground is %v: the style was not taken", where, got)
				}
				if got := b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); got != 0.0 {
					t.Errorf("%s: the page is %v px wider than the window", where, got)
				}
				b.none(where, "reaches out of the window", wide)
				b.none(where, "is broken", broken)
				b.none(where, "is too faint", faint)
				b.none(where, "lie on each other", overlaid)
				b.none(where, "words are too small", tiny)
			}
		}
	}
	b.load(filepath.Join(dir, "sample.html"))
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9})
	}
	if got := b.eval(`document.activeElement.tagName + ' ' + getComputedStyle(document.activeElement).outlineStyle`); got != "A solid" {
		t.Errorf("after a tab key %v has the focus", got)
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}})
	b.none("on paper", "is folded", folded)
	b.none("on paper", "is too faint", faint)
	if got := b.eval(`getComputedStyle(document.body).color`); got != "rgb(27, 31, 39)" {
		t.Errorf("on paper the ink is %v", got)
	}
	var pdf struct{ Data []byte }
	if b.result(&pdf, "Page.printToPDF", map[string]any{"printBackground": true}); !bytes.HasPrefix(pdf.Data, []byte("%PDF")) {
		t.Error("it cannot be printed")
	}
}
