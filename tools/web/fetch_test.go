package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"centurion"
)

// TRIAL S6: whatever is not in the public network is known in every spelling.
func TestIsPublic(t *testing.T) {
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"} {
		if !IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s is public", s)
		}
	}
	for _, s := range []string{"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
		"168.63.129.16", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1",
		"fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1",
		"64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1", "100::1"} {
		if IsPublic(netip.MustParseAddr(s)) {
			t.Errorf("%s is not public", s)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// TRIAL S6: no way to write or to reach this machine gets a single connection.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	private := newCanary(t, "127.0.0.1:0")
	// Each host is fetched as the system resolves it (getaddrinfo reads 2130706433 as 127.0.0.1) and as a resolver would
	// that understands everything.
	hosts := []string{"127.0.0.1", "localhost", "LOCALHOST", "localhost.", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1",
		"127.0.1", "0", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "127.0.0.1.",
		"①②⑦.⓪.⓪.①", "localtest.example"}
	for _, h := range hosts {
		for name, c := range map[string]*Client{"system": New(Config{Timeout: time.Second}), "wide": New(Config{Resolve: leads("127.0.0.1")}),
			"mapped": New(Config{Resolve: leads("::ffff:127.0.0.1")})} {
			u, err := ParseURL("http://" + h + ":" + private.port + "/latest/meta-data")
			if err != nil {
				continue
			}
			page, err := c.Fetch(t.Context(), u, anything)
			if err == nil {
				t.Errorf("%s (%s): %q", h, name, page.Text)
			}
			if name != "system" && centurion.KindOf(err) != centurion.KindPermission {
				t.Errorf("%s (%s): %v", h, name, err)
			}
		}
	}
	if n := private.hits.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	if New(Config{}).pages.Transport.(*http.Transport).Proxy != nil { // the environment is read once in a process, so that no proxy can be played here
		t.Error("a proxy connects to pages, and could connect to anything")
	}
	_, err := New(Config{}).Fetch(t.Context(), parse(t, "http://localhost:"+private.port), anything)
	is(t, "hint", err, centurion.KindPermission, "not in the public network", `{"http://localhost:`+private.port+`/*": "allow"}`)
}

// The test above can fail: the same canary answers as soon as its host is opened by its name, and then only under that.
func TestAllowedHost(t *testing.T) {
	private := newCanary(t, "127.0.0.1:0")
	c := New(Config{AllowHosts: []string{"127.0.0.1:" + private.port}})
	page, err := c.Fetch(t.Context(), parse(t, "http://"+private.addr), anything)
	if err != nil || page.Text != "secret of the machine" {
		t.Fatalf("%+v, %v", page, err)
	}
	_, err = c.Fetch(t.Context(), parse(t, "http://localhost:"+private.port), anything)
	is(t, "another name", err, centurion.KindPermission)
	if n := private.hits.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	named := New(Config{AllowHosts: []string{"Here.Example:" + private.port}, Resolve: leads("127.0.0.1")})
	if page, err := named.Fetch(t.Context(), parse(t, "http://here.example:"+private.port), anything); err != nil || page.Text != "secret of the machine" {
		t.Errorf("by its name: %+v, %v", page, err)
	}
}

// TRIAL S6: a page in the public network does not lead into the private one.
func TestRedirectToPrivate(t *testing.T) {
	private := newCanary(t, "127.0.0.1:0")
	_, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.TrimPrefix(r.URL.RequestURI(), "/to/"))
		w.WriteHeader(http.StatusFound)
	})
	c := New(Config{AllowHosts: []string{host}})
	for _, to := range []string{"http://" + private.addr, "//" + private.addr + "/x", "http://2130706433:" + private.port, "http://[::ffff:127.0.0.1]:" + private.port,
		"file:///etc/passwd", "gopher://" + private.addr, "http://user:pw@" + private.addr} {
		page, err := c.Fetch(t.Context(), parse(t, "http://"+host).ResolveReference(&url.URL{Path: "/to/" + to}), anything)
		if err == nil {
			t.Errorf("%s: %q", to, page.Text)
		}
	}
	if n := private.hits.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TRIAL S6: a name that is checked while it leads to one address and dialled when it leads to another.
func TestNameThatChanges(t *testing.T) {
	private := newCanary(t, "127.0.0.1:0")
	looked := 0
	change := leads("2606:4700::1111", "127.0.0.1")
	c := New(Config{Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		looked++
		return change(ctx, host)
	}})
	u := parse(t, "http://changing.example:"+private.port)
	for range 3 {
		_, err := c.Fetch(t.Context(), u, func(u *url.URL) error {
			if looked == 0 { // what a check before dialling would have seen
				addrs, _ := c.cfg.Resolve(t.Context(), u.Hostname())
				if !IsPublic(addrs[0]) {
					t.Error("the first answer is not public: the test does not show what it should")
				}
			}
			return nil
		})
		is(t, "second answer", err, centurion.KindPermission, "127.0.0.1")
	}
	// One good answer among others opens nothing either.
	both := New(Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
	}})
	_, err := both.Fetch(t.Context(), u, anything)
	is(t, "several answers", err, centurion.KindPermission)
	if n := private.hits.Load(); n != 0 || looked < 4 {
		t.Errorf("%d connections, %d lookups", n, looked)
	}
}

// TRIAL S6: however much a server sends, or however little that becomes much, only so much of it is held.
func TestBodyIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	zeros := bytes.Repeat([]byte("a"), 1<<20)
	for range 128 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	stopped := make(chan int, 1)
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		case "/endless":
			n := 0
			for { // ends only because the client leaves
				if _, err := w.Write(zeros[:64<<10]); err != nil {
					stopped <- n
					return
				}
				n += 64 << 10
			}
		case "/promised":
			w.Header().Set("Content-Length", "99999999999")
		case "/header":
			for i := range 10_000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("h", 100))
			}
		case "/slow":
			_, _ = w.Write([]byte("begin"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	c := New(Config{AllowHosts: []string{host}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for path, words := range map[string]string{"/bomb": "at most 5 MB", "/endless": "at most 5 MB", "/promised": "at most 5 MB"} {
		_, err := c.Fetch(t.Context(), parse(t, address+path), anything)
		is(t, path, err, centurion.KindUsage, words)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 150 {
		t.Errorf("%d MB were allocated", n)
	}
	if n := <-stopped; n > 64<<20 {
		t.Errorf("%d MB were sent", n>>20)
	}
	_, err := c.Fetch(t.Context(), parse(t, address+"/header"), anything)
	is(t, "header", err, centurion.KindNetwork)
	hasty := New(Config{AllowHosts: []string{host}, Timeout: 50 * time.Millisecond})
	_, err = hasty.Fetch(t.Context(), parse(t, address+"/slow"), anything)
	is(t, "slow", err, centurion.KindTimeout, "within 50ms")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = c.Fetch(ctx, parse(t, address+"/slow"), func(*url.URL) error { cancel(centurion.ErrShutdown); return nil })
	is(t, "ended", err, centurion.KindInterrupted)
	if hint := centurion.HintOf(err) + centurion.HintOf(centurion.ErrShutdown); strings.Contains(hint, "permission rule") {
		t.Errorf("who is told to stop is told %q", hint)
	}
}

// ORCH-48: what comes back of each kind of answer.
func TestFetch(t *testing.T) {
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		kind, body := "text/html; charset=utf-8", "<title> A  page </title><h1>Größe</h1><p>x <a href='/b?c=1'>link</a></p>"
		switch r.URL.Path {
		case "/json":
			kind, body = "application/json", `{"a": 1}`
		case "/latin":
			kind, body = "text/plain; charset=ISO-8859-1", "Gr\xf6\xdfe \x80\xa0\x9f"
		case "/utf16":
			kind, body = "text/plain", "\xff\xfeG\x00\xf6\x00"
		case "/none":
			kind, body = "", "just text"
		case "/octets":
			kind, body = "application/octet-stream", "just text"
		case "/png":
			kind, body = "image/png", "\x89PNG\r\n\x1a\n\x00"
		case "/lies":
			kind, body = "text/plain", "\x7fELF\x00\x01"
		case "/zip":
			kind, body = "application/octet-stream", "PK\x03\x04\x00"
		case "/gone":
			http.Error(w, "no", http.StatusNotFound)
			return
		case "/busy":
			w.Header().Set("Retry-After", "7")
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		case "/broken":
			http.Error(w, "no", http.StatusBadGateway)
			return
		case "/post":
			body = r.Method + " " + r.Header.Get("Cookie") + r.Header.Get("Referer") + r.Header.Get("Authorization")
		case "/hop":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, "/post", http.StatusMovedPermanently)
			return
		case "/utf16be":
			kind, body = "text/plain", "\xfe\xff\x00G\x00\xf6\x00"
		case "/atom":
			kind, body = "application/atom+xml", "<feed/>"
		case "/drawing":
			kind, body = "image/svg+xml", "<svg/>"
		case "/script":
			kind, body = "application/x-sh", "ls"
		case "/xhtml":
			kind, body = "application/xhtml+xml", "<h1>H</h1>"
		case "/agent":
			kind, body = "text/plain", r.Header.Get("User-Agent")
		case "/wanted":
			kind, body = "text/plain", r.Header.Get("Accept")
		case "/problem":
			kind, body = "application/problem+json", "{}"
		case "/openapi":
			kind, body = "application/openapi+yaml", "a: 1"
		case "/marked":
			kind, body = "text/plain", "\xef\xbb\xbfx"
		case "/lost":
			kind, body = "text/plain; charset=koi8-r", "a\xc1b"
		case "/full":
			kind, body = "text/plain", strings.Repeat("a", MaxBody)
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
			return
		case "/nowhere":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
			return
		case "/later":
			w.Header().Set("Retry-After", "1000000")
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		case "/created":
			w.Header()["Content-Type"] = []string{"text/plain"}
			w.Header().Set("Location", "/gone")
			w.WriteHeader(http.StatusCreated)
			body = "x"
		case "/missing":
			w.Header().Set("Location", "/json")
			w.WriteHeader(http.StatusNotFound)
			return
		case "/bad":
			w.Header().Set("Location", "/json")
			w.WriteHeader(http.StatusBadRequest)
			return
		case "/either":
			w.Header().Set("Location", "/json")
			w.WriteHeader(http.StatusMultipleChoices)
			return
		case "/choices":
			w.WriteHeader(http.StatusMultipleChoices)
		case "/nothing":
			kind, body = "image/png", ""
		case "/nul":
			kind, body = "text/plain", "\x00abc"
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
			return
		}
		w.Header()["Content-Type"] = nil
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		_, _ = w.Write([]byte(body))
	})
	c := New(Config{AllowHosts: []string{host}})
	for path, want := range map[string]string{"/": "# Größe\n\nx [link](" + address + "/b?c=1)", "/json": `{"a": 1}`, "/latin": "Größe €\u00a0Ÿ", "/utf16": "Gö",
		"/utf16be": "Gö", "/atom": "<feed/>", "/script": "ls", "/xhtml": "# H", "/agent": "Centurion", "/marked": "x", "/full": strings.Repeat("a", MaxBody),
		"/none": "just text", "/octets": "just text", "/hop": "GET", "/created": "x", "/either": `{"a": 1}`,
		"/problem": "{}", "/openapi": "a: 1", "/wanted": "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1"} {
		p, err := c.Fetch(t.Context(), parse(t, address+path), anything)
		if err != nil || p.Text != want {
			t.Errorf("%s: %q, %v", path, p.Text, err)
		}
		if path == "/json" && p.Title != "json" || path == "/" && p.Title != "A page" || path == "/hop" && p.URL != address+"/post" ||
			path == "/utf16" && (p.Size != 6 || p.Type != "text/plain") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for path, want := range map[string]struct {
		kind   centurion.Kind
		says   string
		status int
		wait   time.Duration
	}{
		"/png": {kind: centurion.KindUsage, says: "image/png with 9 bytes"}, "/lies": {kind: centurion.KindUsage, says: "no text"}, "/zip": {kind: centurion.KindUsage, says: "application/zip"},
		"/gone": {kind: centurion.KindNotFound, says: "404", status: 404}, "/busy": {kind: centurion.KindRateLimit, says: "wait 7s", status: 429, wait: 7 * time.Second},
		"/later": {kind: centurion.KindRateLimit, says: "wait before you try again", status: 429}, "/broken": {kind: centurion.KindNetwork, says: "502", status: 502},
		"/unchanged": {kind: centurion.KindNetwork, says: "304", status: 304}, "/nowhere": {kind: centurion.KindNetwork, says: "leads to something that cannot be fetched"},
		"/missing": {kind: centurion.KindNotFound, says: "404", status: 404}, "/bad": {kind: centurion.KindNetwork, says: "400", status: 400}, "/choices": {kind: centurion.KindNetwork, says: "300", status: 300},
		"/nothing": {kind: centurion.KindUsage, says: "image/png with 0 bytes"}, "/nul": {kind: centurion.KindUsage, says: "only text can be read"},
		"/drawing": {kind: centurion.KindUsage, says: "image/svg+xml"}, "/loop": {kind: centurion.KindNetwork, says: "more than 5 times"},
	} {
		_, err := c.Fetch(t.Context(), parse(t, address+path), anything)
		is(t, path, err, want.kind, want.says)
		if e, ok := errors.AsType[*centurion.Error](err); !ok || e.Op != "fetch" || e.Hint == "" || want.status != e.Status || e.RetryAfter != want.wait {
			t.Errorf("%s: %+v", path, e)
		}
	}
	steps := 0
	if _, _ = c.Fetch(t.Context(), parse(t, address+"/loop"), func(*url.URL) error { steps++; return nil }); steps != MaxRedirects+1 {
		t.Errorf("%d requests with at most %d redirects", steps, MaxRedirects)
	}
	// Every step is asked for, and a refusal ends the fetch before the request.
	var asked []string
	no := errors.New("no")
	_, err := c.Fetch(t.Context(), parse(t, address+"/hop"), func(u *url.URL) error {
		if asked = append(asked, u.Path); u.Path == "/post" {
			return no
		}
		return nil
	})
	if !errors.Is(err, no) || strings.Join(asked, " ") != "/hop /post" {
		t.Errorf("%v, %q", err, asked)
	}
}

// A server that nobody reaches is told as that; an address whose name leads nowhere, too.
func TestFetchUnreachable(t *testing.T) {
	gone, host := site(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	_, err := New(Config{AllowHosts: []string{host}}).Fetch(t.Context(), parse(t, gone+"/x"), anything)
	is(t, "broken off", err, centurion.KindNetwork, "fetch: "+gone+"/x", "check the address")
	empty := New(Config{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }})
	_, err = empty.Fetch(t.Context(), parse(t, "http://nowhere.example/"), anything)
	is(t, "no address", err, centurion.KindNetwork, "nowhere.example", "no such host")
	if err := public("a.b:80", "8.8.8.8:80"); err != nil {
		t.Error(err)
	}
	if public("a.b:80", "no address") == nil || New(Config{}).Docs() != nil {
		t.Error("what cannot be read is public")
	}
	d, _ := newDocs(t, 0)
	if New(Config{Docs: d}).Docs() != d {
		t.Error("the store is lost")
	}
}

func TestParseURL(t *testing.T) {
	for in, want := range map[string]string{"HTTPS://Go.Dev": "https://go.dev/", "http://a.b:80/x#y": "http://a.b/x", "https://a.b:443/?q=1": "https://a.b/?q=1",
		"http://a.b:443/": "http://a.b:443/", "https://a.b./pub/../private/": "https://a.b/private/", " http://[::1]:80/ ": "http://[::1]/",
		"http://a.b/x%2Fy": "http://a.b/x%2Fy"} {
		if u, err := ParseURL(in); err != nil || u.String() != want {
			t.Errorf("%s: %v, %v", in, u, err)
		}
	}
	for _, in := range []string{"", "go.dev", "file:///etc/passwd", "ftp://a.b", "http://", "http:///x", "http://u@a.b", "http://u:p@a.b", "javascript:alert(1)",
		"http://a b/", "http://a.b:x/", "http://%zz/", "data:text/html,x"} {
		u, err := ParseURL(in)
		if centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%q: %v, %v", in, u, err)
		}
	}
}
