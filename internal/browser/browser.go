//go:build browser

// Package browser drives a real browser, for tests of pages. It is not part of the program.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Browser is a browser with one page. It is driven over two pipes, as its --remote-debugging-pipe does it: JSON, each message ended by a zero byte.
type Browser struct {
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

// Open starts the browser that is installed; scripts/browser.sh installs one. It never skips: a test that nobody can run shows
// nothing.
func Open(t *testing.T) *Browser {
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
	b := &Browser{t: t, in: in, out: bufio.NewReader(out), stderr: new(bytes.Buffer)}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirIn, theirOut}, b.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		b.session = ""
		b.Call("Browser.close", nil)
		_ = cmd.Wait() // how a browser that was told to close ends is its own affair
		cancel()
		in.Close()
		out.Close()
	})
	var target struct{ TargetID string }
	b.Result(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	b.Result(&attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime", "Network"} {
		b.Call(domain+".enable", nil)
	}
	return b
}

// Call calls a method and returns its result. What the browser tells meanwhile is kept.
func (b *Browser) Call(method string, params any) json.RawMessage {
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
func (b *Browser) next(why string) message {
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

func (b *Browser) Result(into any, method string, params any) {
	b.t.Helper()
	if err := json.Unmarshal(b.Call(method, params), into); err != nil {
		b.t.Fatal(err)
	}
}

// Load opens an address and waits until it has been loaded. It returns what [Browser.Wrong] does.
func (b *Browser) Load(address, own string) []string {
	b.t.Helper()
	b.Leave(func() { b.Call("Page.navigate", map[string]any{"url": address}) })
	return b.Wrong(own)
}

// Leave does what opens another page, and waits until that has been loaded.
func (b *Browser) Leave(do func()) {
	b.t.Helper()
	b.events = nil
	do()
	for !slices.ContainsFunc(b.events, func(m message) bool { return m.Method == "Page.loadEventFired" }) {
		b.next("load")
	}
}

// Wrong returns what the page has complained of since it was loaded, and what it asked for that does not begin with own.
func (b *Browser) Wrong(own string) (wrong []string) {
	b.t.Helper()
	b.Eval("1") // what is told until here belongs to the page
	for _, m := range b.events {
		switch m.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			wrong = append(wrong, string(m.Params))
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if err := json.Unmarshal(m.Params, &p); err != nil || !strings.HasPrefix(p.Request.URL, own) && !strings.HasPrefix(p.Request.URL, "data:") {
				wrong = append(wrong, "it asks for "+string(m.Params))
			}
		}
	}
	return wrong
}

// Await waits until an expression is true in the page, 20 s at most.
func (b *Browser) Await(expression string) {
	b.t.Helper()
	var r struct{ Result struct{ Value bool } }
	b.Result(&r, "Runtime.evaluate", map[string]any{"awaitPromise": true, "returnByValue": true, "expression": `new Promise(done => {
		setTimeout(() => done(false), 20000);
		const look = () => { if (` + expression + `) done(true); else setTimeout(look, 20) };
		look();
	})`})
	if !r.Result.Value {
		b.t.Fatalf("it never comes: %s\n%v", expression, b.Eval("document.body.innerText"))
	}
}

// Press presses a key and lets it go: Tab, Enter, ArrowDown or " ".
func (b *Browser) Press(key string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40}
	text := map[string]string{"Enter": "\r", " ": " "}[key]
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": codes[key]})
		text = ""
	}
}

// Window sets the width of the window, in pixels, and the colours: light or dark.
func (b *Browser) Window(width int, scheme string) {
	b.t.Helper()
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": "screen", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
}

// Fits fails for what is cut off, broken or too faint in the page as it is laid out now.
func (b *Browser) Fits(where string) {
	b.t.Helper()
	if got := b.Eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); got != 0.0 {
		b.t.Errorf("%s: the page is %v px wider than the window", where, got)
	}
	b.None(where, "reaches out of the window", wide)
	b.None(where, "is broken", broken)
	b.None(where, "is too faint", Faint)
}

// Eval is the value of an expression in the page.
func (b *Browser) Eval(expression string) any {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.Result(&r, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s\n%s", expression, r.ExceptionDetails)
	}
	return r.Result.Value
}

// None fails for each line that an expression, which makes a list of texts, finds.
func (b *Browser) None(where, what, expression string) {
	b.t.Helper()
	found, ok := b.Eval(expression).([]any)
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

// Expressions for [Browser.None].
const (
	// wide are elements that reach out of the window although nothing there can be scrolled.
	wide = `[...document.body.querySelectorAll('*')].filter(e => !e.closest('.scroll, pre, svg') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
		.map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60))`
	// broken are headings of columns that are broken into pieces.
	broken = `[...document.querySelectorAll('th[scope=col]')].filter(e => e.offsetParent && getComputedStyle(e.closest('thead')).position != 'absolute' && e.clientHeight > 60).map(e => e.textContent)`
	// Faint are texts that stand out too little from what is behind them, as they are really drawn.
	Faint = `(() => {
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
)
