package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/workspace"
)

// The place of fetched pages, relative to the project.
const (
	DocsDirectory = workspace.DocsPath
	DocsMetadata  = workspace.DocsMetadataPath
)

// Limits of the stored pages.
const (
	DefaultTTL = 24 * time.Hour
	MaxTTL     = 30 * 24 * time.Hour
	MaxDocs    = 100      // pages; the oldest go first
	MaxBytes   = 50 << 20 // of all pages together
	maxIndex   = 1 << 20  // bytes of _metadata.json
)

// Doc is a stored page.
type Doc struct {
	URL     string    `json:"url"` // the requested one
	Final   string    `json:"final,omitempty"`
	Title   string    `json:"title"`
	Type    string    `json:"type"`
	File    string    `json:"file"` // name in DocsDirectory
	Fetched time.Time `json:"fetched"`
	Expires time.Time `json:"expires"`
	SHA256  string    `json:"sha256"` // of the file
	Bytes   int       `json:"bytes"`  // of the file
}

// Path returns the path of the page's text, relative to the project.
func (d Doc) Path() string { return DocsDirectory + "/" + d.File }

// Expired reports whether it must be fetched again. A time that this program cannot have written counts as expired.
func (d Doc) Expired() bool {
	now := time.Now()
	return !now.Before(d.Expires) || d.Fetched.After(now.Add(time.Minute)) || d.Expires.Sub(d.Fetched) > MaxTTL
}

// Docs stores pages in a project. One value serves a whole host; a second process that writes at the same time can at worst cause a
// page to be fetched again.
type Docs struct {
	ws  *workspace.Workspace
	ttl time.Duration
	mu  sync.Mutex // protects the files
}

// NewDocs returns the store of a project's pages. Pages are kept for ttl, at most MaxTTL; 0 means DefaultTTL.
func NewDocs(ws *workspace.Workspace, ttl time.Duration) *Docs {
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	return &Docs{ws: ws, ttl: min(ttl, MaxTTL)}
}

// Put stores a page under the requested URL, replacing an earlier one, and drops the oldest beyond the limits. The file name is
// generated, so that no URL leads out of the directory.
func (d *Docs) Put(asked *url.URL, p Page) (Doc, error) {
	now, soon := time.Now().UTC().Truncate(time.Millisecond), time.Now().Add(time.Minute)
	doc := Doc{URL: asked.String(), Title: p.Title, Type: p.Type, File: fileName(asked, p.Type), Fetched: now, Expires: now.Add(d.ttl),
		SHA256: workspace.VersionOf([]byte(p.Text)), Bytes: len(p.Text)}
	if p.URL != doc.URL {
		doc.Final = p.URL
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.load()
	if err != nil {
		return Doc{}, err
	}
	old := func(o Doc) bool { return o.URL == doc.URL || o.File == doc.File || o.Fetched.After(soon) }
	keep, drop := bounded(append(slices.DeleteFunc(slices.Clone(all), old), doc))
	drop = append(drop, slices.DeleteFunc(all, func(o Doc) bool { return !old(o) || o.File == doc.File })...)
	// The index comes first, so that a crash leaves nothing unknown: an entry without its file does not count.
	if err := d.save(keep); err != nil {
		return Doc{}, err
	}
	if err := d.ws.WriteFile(doc.Path(), []byte(p.Text)); err != nil {
		return Doc{}, err
	}
	return doc, d.remove(drop)
}

// bounded splits pages into those to keep and those to drop, oldest first.
func bounded(all []Doc) (keep, drop []Doc) {
	slices.SortStableFunc(all, func(a, b Doc) int { return a.Fetched.Compare(b.Fetched) })
	total := 0
	for _, doc := range all {
		total += doc.Bytes
	}
	for len(all) > 1 && (len(all) > MaxDocs || total > MaxBytes) {
		total -= all[0].Bytes
		drop, all = append(drop, all[0]), all[1:]
	}
	return all, drop
}

// Get returns the stored page of a URL and its text. The error has centurion.KindNotFound if there is none, if it has expired, or if
// its file differs from what was fetched.
func (d *Docs) Get(asked *url.URL) (Doc, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.load()
	if err != nil {
		return Doc{}, "", err
	}
	i := slices.IndexFunc(all, func(o Doc) bool { return o.URL == asked.String() })
	switch {
	case i < 0:
		return Doc{}, "", none("%s is not cached", asked)
	case all[i].Expired():
		return Doc{}, "", none("%s has expired (fetched %s)", asked, all[i].Fetched.Format(time.DateTime))
	}
	text, _, err := d.ws.ReadFile(all[i].Path(), MaxBytes)
	if err != nil || workspace.VersionOf(text) != all[i].SHA256 {
		return Doc{}, "", none("the cached copy of %s is gone or was changed", asked)
	}
	return all[i], string(text), nil
}

func none(format string, args ...any) error {
	return &centurion.Error{Op: "cache", Kind: centurion.KindNotFound, Msg: fmt.Sprintf(format, args...), Hint: "fetch it with webfetch"}
}

// List returns the stored pages, newest first, including expired ones.
func (d *Docs) List() ([]Doc, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.load()
	slices.Reverse(all)
	return all, err
}

// Clear removes the pages selected by which, and returns their number.
func (d *Docs) Clear(which func(Doc) bool) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, err := d.load()
	if err != nil {
		return 0, err
	}
	var keep, drop []Doc
	for _, doc := range all {
		if which(doc) {
			drop = append(drop, doc)
		} else {
			keep = append(keep, doc)
		}
	}
	if len(drop) == 0 {
		return 0, nil
	}
	return len(drop), errors.Join(d.remove(drop), d.save(keep))
}

// index is the content of DocsMetadata.
type index struct {
	Docs []Doc `json:"docs"`
}

// load reads the index, oldest first. An unreadable one counts as empty: it is a cache.
func (d *Docs) load() ([]Doc, error) {
	b, _, err := d.ws.ReadFile(DocsMetadata, maxIndex)
	switch centurion.KindOf(err) {
	case "":
	case centurion.KindNotFound, centurion.KindUsage:
		return nil, nil
	default:
		return nil, err
	}
	var x index
	if json.Unmarshal(b, &x) != nil {
		return nil, nil
	}
	all := slices.DeleteFunc(x.Docs, func(o Doc) bool { return !safeName(o.File) || o.URL == "" })
	slices.SortStableFunc(all, func(a, b Doc) int { return a.Fetched.Compare(b.Fetched) })
	return all, nil
}

func (d *Docs) save(all []Doc) error {
	b, err := json.MarshalIndent(index{Docs: append([]Doc{}, all...)}, "", "  ")
	if err != nil {
		return err
	}
	return d.ws.WriteFile(DocsMetadata, append(b, '\n'))
}

func (d *Docs) remove(docs []Doc) error {
	var errs []error
	for _, doc := range docs {
		errs = append(errs, d.ws.Remove(doc.Path()))
	}
	return errors.Join(errs...)
}

// fileName returns a recognizable name that no two URLs share: go.dev-doc-effective_go-1f0e3dad.md.
func fileName(u *url.URL, kind string) string {
	var s strings.Builder
	for _, r := range u.Hostname() + u.Path {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			s.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			s.WriteRune(r - 'A' + 'a')
		case r == '.' && s.Len() > 0 && !strings.HasSuffix(s.String(), "."):
			s.WriteRune('.')
		case s.Len() > 0 && !strings.HasSuffix(s.String(), "-"):
			s.WriteByte('-')
		}
		if s.Len() >= 60 {
			break
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(u.String())) // documented never to fail
	ext := ".txt"
	switch {
	case isHTML(kind), kind == "text/markdown":
		ext = ".md"
	case strings.HasSuffix(kind, "json"):
		ext = ".json"
	}
	return fmt.Sprintf("%s-%016x%s", strings.Trim(s.String(), "-."), h.Sum64(), ext)
}

// safeName reports whether fileName can have made a name: it is inside the directory and no other file of it.
func safeName(name string) bool {
	stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	if ext != ".md" && ext != ".txt" && ext != ".json" || len(name) > 100 {
		return false
	}
	i := strings.LastIndexByte(stem, '-')
	if i < 0 || len(stem)-i-1 != 16 || strings.Trim(stem[i+1:], "0123456789abcdef") != "" {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" && !strings.HasPrefix(name, ".")
}
