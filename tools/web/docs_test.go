package web

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
)

func newDocs(t testing.TB, ttl time.Duration) (*Docs, string) {
	t.Helper()
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return NewDocs(ws, ttl), dir
}

func page(u, text string) Page { return Page{URL: u, Title: "T", Type: "text/html", Text: text} }

// ORCH-51, ORCH-61, ORCH-67, ORCH-71: what was put comes back until it expires, and the index says where and how long.
func TestDocsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, dir := newDocs(t, 0)
		u := parse(t, "https://go.dev/doc/Effective_Go?x=1")
		doc, err := d.Put(u, page("https://go.dev/final", "text"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, ".opencode", "docs", "_metadata.json"))
		var index struct{ Docs []map[string]any }
		if err != nil || json.Unmarshal(b, &index) != nil || len(index.Docs) != 1 {
			t.Fatalf("%s, %v", b, err)
		}
		for key, want := range map[string]any{"url": u.String(), "final": "https://go.dev/final", "title": "T", "type": "text/html", "bytes": 4.0, "file": doc.File,
			"sha256": workspace.VersionOf([]byte("text")), "fetched": "2000-01-01T00:00:00Z", "expires": "2000-01-02T00:00:00Z"} {
			if index.Docs[0][key] != want {
				t.Errorf("%s is %v, want %v", key, index.Docs[0][key], want)
			}
		}
		if file, err := os.ReadFile(filepath.Join(dir, ".opencode", "docs", doc.File)); string(file) != "text" {
			t.Errorf("%q, %v", file, err)
		}
		if !strings.HasPrefix(doc.File, "go.dev-doc-effective_go-") {
			t.Error(doc.File)
		}
		time.Sleep(24*time.Hour - time.Second)
		if got, text, err := d.Get(u); err != nil || text != "text" || got != doc {
			t.Errorf("%+v, %q, %v", got, text, err)
		}
		time.Sleep(time.Second)
		_, _, err = d.Get(u)
		is(t, "expired", err, centurion.KindNotFound, "has expired", "webfetch")
		if all, _ := d.List(); len(all) != 1 || !all[0].Expired() {
			t.Errorf("%+v", all)
		}
		_, _, err = d.Get(parse(t, "https://go.dev/doc/effective_go?x=2"))
		is(t, "another", err, centurion.KindNotFound, "is not cached")
		if n, err := d.Clear(Doc.Expired); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".opencode", "docs", "go*")); len(left) != 0 {
			t.Error(left)
		}
	})
}

// A page that is fetched again stands in the place of the first, for as long as was asked for and never longer than the most.
func TestDocsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, dir := newDocs(t, time.Hour)
		u := parse(t, "https://a.b/x")
		for _, text := range []string{"old", "new"} {
			if _, err := d.Put(u, page(u.String(), text)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if doc, text, err := d.Get(u); err != nil || text != "new" || doc.Final != "" {
			t.Errorf("%+v %q, %v", doc, text, err)
		}
		if all, _ := d.List(); len(all) != 1 {
			t.Errorf("%+v", all)
		}
		plain := page(u.String(), "newest")
		plain.Type = "text/plain"
		if doc, err := d.Put(u, plain); err != nil || !strings.HasSuffix(doc.File, ".txt") {
			t.Errorf("%+v, %v", doc, err)
		}
		if all, _ := d.List(); len(all) != 1 {
			t.Errorf("as another type: %+v", all)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, ".opencode", "docs", "a.b*")); len(files) != 1 {
			t.Errorf("the file of the first type stays: %v", files)
		}
		time.Sleep(58 * time.Minute)
		if _, _, err := d.Get(u); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		_, _, err := d.Get(u)
		is(t, "after an hour", err, centurion.KindNotFound, "has expired")
		for _, x := range []struct {
			fetched, expires time.Duration
			want             bool
		}{{0, MaxTTL, false}, {0, MaxTTL + 1, true}, {time.Minute, time.Hour, false}, {time.Minute + 1, time.Hour, true}, {-time.Hour, 1, false}, {-time.Hour, 0, true}} {
			if doc := (Doc{Fetched: time.Now().Add(x.fetched), Expires: time.Now().Add(x.expires)}); doc.Expired() != x.want {
				t.Errorf("fetched in %s until %s: expired is %v", x.fetched, x.expires, doc.Expired())
			}
		}
		long, _ := newDocs(t, 10*MaxTTL)
		if doc, err := long.Put(u, page(u.String(), "text")); err != nil || doc.Expires.Sub(doc.Fetched) != MaxTTL || doc.Expired() {
			t.Errorf("%+v, %v", doc, err)
		}
	})
}

// ORCH-51: pages and bytes are bounded, the oldest go first, and files of a person stay.
func TestDocsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, dir := newDocs(t, 0)
		if err := os.MkdirAll(filepath.Join(dir, ".opencode", "docs"), 0o755); err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, ".opencode", "docs", "own.md")
		if err := os.WriteFile(own, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		for i := range MaxDocs + 5 {
			time.Sleep(time.Second)
			u := fmt.Sprintf("https://a.b/%d", i)
			if _, err := d.Put(parse(t, u), page(u, u)); err != nil {
				t.Fatal(err)
			}
		}
		all, _ := d.List()
		files, _ := filepath.Glob(filepath.Join(dir, ".opencode", "docs", "a.b*"))
		if len(all) != MaxDocs || len(files) != MaxDocs || all[0].URL != "https://a.b/104" || all[MaxDocs-1].URL != "https://a.b/5" {
			t.Errorf("%d pages, %d files, from %s to %s", len(all), len(files), all[0].URL, all[len(all)-1].URL)
		}
		big := []Doc{{URL: "1", Bytes: MaxBytes}, {URL: "2", Bytes: 1}, {URL: "3", Bytes: MaxBytes}}
		keep, drop := bounded(big)
		if len(keep) != 1 || keep[0].URL != "3" || len(drop) != 2 {
			t.Errorf("%v, %v", keep, drop)
		}
		at := time.Now()
		keep, drop = bounded([]Doc{{URL: "new", Bytes: 1, Fetched: at.Add(time.Hour)}, {URL: "old", Bytes: MaxBytes, Fetched: at}, {URL: "mid", Bytes: 1, Fetched: at.Add(time.Minute)}})
		if len(keep) != 2 || keep[0].URL != "mid" || keep[1].URL != "new" || len(drop) != 1 {
			t.Errorf("%v, %v", keep, drop)
		}
		if keep, drop = bounded([]Doc{{Bytes: MaxBytes + 1}}); len(keep) != 1 || len(drop) != 0 {
			t.Errorf("the one that was fetched now goes: %v, %v", keep, drop)
		}
		oldest := func(doc Doc) bool { return doc.URL == "https://a.b/5" }
		if n, err := d.Clear(oldest); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if all, _ := d.List(); len(all) != MaxDocs-1 || slices.ContainsFunc(all, oldest) {
			t.Errorf("%d pages are left", len(all))
		}
		if n, err := d.Clear(func(Doc) bool { return true }); n != MaxDocs-1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := os.Stat(own); err != nil {
			t.Error(err)
		}
	})
}

// A repository can ship an index: it leads to no other file, lends no page its words for ever, and breaks nothing.
func TestDocsDoNotTrustTheirIndex(t *testing.T) {
	d, dir := newDocs(t, 0)
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u := parse(t, "https://a.b/x")
	doc, err := d.Put(u, page(u.String(), "text"))
	if err != nil {
		t.Fatal(err)
	}
	put("secret.md", "secret")
	sum := workspace.VersionOf([]byte("secret"))
	year := time.Now().Add(365 * 24 * time.Hour).Format(time.RFC3339)
	now := time.Now().Format(time.RFC3339)
	for name, entry := range map[string]string{
		"out":      `"file":"../../secret.md","fetched":"` + now + `","expires":"` + year + `"`,
		"absolute": `"file":"` + filepath.ToSlash(filepath.Join(dir, "secret.md")) + `","fetched":"` + now + `","expires":"` + year + `"`,
		"itself":   `"file":"_metadata.json","fetched":"` + now + `","expires":"` + year + `"`,
		"for ever": `"file":"` + doc.File + `","fetched":"` + now + `","expires":"` + year + `"`,
		"future":   `"file":"` + doc.File + `","fetched":"` + year + `","expires":"` + year + `"`,
		"a name":   `"file":"a-b.md","fetched":"` + now + `","expires":"` + year + `"`,
		"no JSON":  `{`,
	} {
		put(DocsMetadata, `{"docs":[{"url":"https://a.b/x","sha256":"`+sum+`",`+entry+`}]}`)
		put(doc.Path(), "secret")
		if got, text, err := d.Get(u); err == nil {
			t.Errorf("%s: %+v, %q", name, got, text)
		}
		if _, err := d.Clear(func(Doc) bool { return true }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "secret.md")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	// An older entry that claims the file of a page does not take it along when it has to go.
	entries := make([]string, MaxDocs)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"url":"https://a.b/%d","file":%q,"fetched":%q,"expires":%q}`, i, doc.File, now, year)
	}
	put(DocsMetadata, `{"docs":[`+strings.Join(entries, ",")+`]}`)
	if _, err := d.Put(u, page(u.String(), "text")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := d.Get(u); err != nil || text != "text" {
		t.Errorf("%q, %v", text, err)
	}
	// Nor do entries that were written before the clock was set back push out what is fetched now.
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"url":"https://a.b/%d","file":"a-%016x.md","fetched":%q,"expires":%q}`, i, i, year, year)
	}
	put(DocsMetadata, `{"docs":[`+strings.Join(entries, ",")+`]}`)
	if _, err := d.Put(u, page(u.String(), "text")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := d.Get(u); err != nil || text != "text" {
		t.Errorf("after entries of the future: %q, %v", text, err)
	}
	put(doc.Path(), "changed")
	_, _, err = d.Get(u)
	is(t, "changed", err, centurion.KindNotFound, "was changed")
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(doc.Path()))); err != nil {
		t.Fatal(err)
	}
	_, _, err = d.Get(u)
	is(t, "gone", err, centurion.KindNotFound, "is gone")
	outside := t.TempDir()
	if err := os.RemoveAll(filepath.Join(dir, ".opencode")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, ".opencode")); err == nil { // not everywhere
		_, err = d.Put(u, page(u.String(), "text"))
		is(t, "link that leads out", err, centurion.KindPermission)
		_, _, err = d.Get(u)
		is(t, "read by it", err, centurion.KindPermission)
		_, err = d.Clear(func(Doc) bool { return true })
		is(t, "cleared by it", err, centurion.KindPermission)
		if left, _ := os.ReadDir(outside); len(left) != 0 {
			t.Error("it wrote outside the project")
		}
	}
}

// A page that could not be stored is an error, and an entry without an address is none.
func TestDocsThatCannotBeStored(t *testing.T) {
	u := parse(t, "https://a.b/x")
	for name, at := range map[string]string{"the index": DocsMetadata, "the page": DocsDirectory + "/" + fileName(u, "text/html")} {
		d, dir := newDocs(t, 0)
		if n, err := d.Clear(Doc.Expired); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := os.Stat(filepath.Join(dir, ".opencode")); err == nil {
			t.Error("clearing nothing writes an index")
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(at), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if doc, err := d.Put(u, page(u.String(), "text")); err == nil {
			t.Errorf("%s is a directory: %+v", name, doc)
		}
	}
	d, dir := newDocs(t, 0)
	if _, err := d.Put(u, page(u.String(), "text")); err != nil {
		t.Fatal(err)
	}
	entry := `{"docs": [{"url": "", "file": "a-0123456789abcdef.md"}]}`
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(DocsMetadata)), []byte(entry), 0o644); err != nil {
		t.Fatal(err)
	}
	if all, err := d.List(); len(all) != 0 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// Every name that is made is safe, whatever the URL says, and no two URLs share one.
func TestFileNames(t *testing.T) {
	for raw, want := range map[string]string{"https://A.b9/Z_0az": "a.b9-z_0az", "https://a.b//x///y": "a.b-x-y", "https://a.b/AZ": "a.b-az", "https://a.b/x..y": "a.b-x.-y", "https://a.b/" + strings.Repeat("x", 99): "a.b-" + strings.Repeat("x", 56)} {
		if got := fileName(parse(t, raw), "text/markdown"); got[:len(got)-20] != want || !strings.HasSuffix(got, ".md") {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	for kind, want := range map[string]string{"text/html": ".md", "application/xhtml+xml": ".md", "text/markdown": ".md", "application/json": ".json", "a/b+json": ".json", "text/plain": ".txt"} {
		if got := filepath.Ext(fileName(parse(t, "https://a.b"), kind)); got != want {
			t.Errorf("%s is stored as %s", kind, got)
		}
	}
	if longest := strings.Repeat("a", 80) + "-0123456789abcdef.md"; !safeName(longest) || safeName("a"+longest) {
		t.Error("a name may have 100 bytes")
	}
	seen := map[string]string{}
	for _, raw := range []string{"https://a.b", "https://a.b/../../etc/passwd", "https://a.b/..%2f..%2fetc", "https://a.b/%00", "https://a.b/CON", "https://a.b/x?y",
		"https://a.b/x?z", "http://[::1]/", "https://a.b/" + strings.Repeat("x/", 500), "https://müller.de/ä", "https://a.b/_metadata.json", "https://a.b/.hidden"} {
		u := parse(t, raw)
		for _, kind := range []string{"text/html", "text/plain", "application/json"} {
			name := fileName(u, kind)
			if !safeName(name) || filepath.Base(name) != name || seen[name] != "" {
				t.Errorf("%s: %q (%s)", raw, name, seen[name])
			}
			seen[name] = raw
		}
	}
	for _, name := range []string{"", "_metadata.json", "../a-0123456789abcdef.md", "a/b-0123456789abcdef.md", "own.md", "a-0123456789abcdef.go", ".a-0123456789abcdef.md",
		"a-0123456789ABCDEF.md", "a-0123456789abcde.md", "a-0123456789abcdeg.md", "0123456789abcdef.md", strings.Repeat("a", 81) + "-0123456789abcdef.md", `a\b-0123456789abcdef.md`} {
		if safeName(name) {
			t.Errorf("%q is safe", name)
		}
	}
}

// Sessions that fetch at the same time lose nothing of each other.
func TestDocsTogether(t *testing.T) {
	d, _ := newDocs(t, 0)
	var g guard.Group
	var mu sync.Mutex
	for i := range 20 {
		g.Go("put", func() error {
			u := fmt.Sprintf("https://a.b/%d", i)
			p, err := ParseURL(u)
			if err == nil {
				_, err = d.Put(p, page(u, u))
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		u := fmt.Sprintf("https://a.b/%d", i)
		if _, text, err := d.Get(parse(t, u)); text != u {
			t.Errorf("%s: %q, %v", u, text, err)
		}
	}
}
