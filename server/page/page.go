// Package page serves a page for browsers: the missions of the open projects, what waits for an answer, and each mission with its board, its
// log and its report. It renders on the server; a script replaces what has changed, and nothing but that is lost without it.
//
// A request that gets through [server.Guard] may see everything. The link of an ask gets through without the token, and shows that ask alone.
package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/server"
	"centurion/text"
)

//go:embed page.html
var pages string

//go:embed page.css
var style string

//go:embed page.js
var script string

// Project is an open project. Its functions are those of its host, in this process or another one.
type Project struct {
	Directory string // absolute
	API       func() server.API
	// Follow yields events until ctx ends, also when the host changes.
	Follow func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	Tell   func(ctx context.Context, mission string) (Told, error)
}

// Told is what is told of a mission beyond its state.
type Told struct {
	Parts []Part // of its report; one without a name has no heading
	Log   string // one line for each fact, oldest first
}

// Part is a part of a mission's report. HTML is safe for the page.
type Part struct {
	ID, Name string
	HTML     template.HTML
}

// Site is the page.
type Site struct {
	Token string // see [server.Guard]
	Style string // the report's style sheet
	// Projects are those that are open. They stay so until done is called.
	Projects func(ctx context.Context) (all []*Project, done func())
}

// visit is one request.
type visit struct {
	*Site
	projects []*Project
}

// Serves reports whether a request is for the page: a browser asks for it, or it is made by the page or the link of an ask.
func (s *Site) Serves(r *http.Request) bool {
	accepts := func(kind string) bool { return strings.Contains(r.Header.Get("Accept"), kind) }
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, server.AskPath):
		return true
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false
	case path == "/live":
		return accepts("text/event-stream")
	default:
		return (path == "/" || strings.HasPrefix(path, "/mission/")) && accepts("text/html")
	}
}

// ServeHTTP answers a request that [Site.Serves].
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	projects, done := s.Projects(r.Context())
	defer done()
	v := visit{s, projects}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", v.list)
	mux.HandleFunc("GET /mission/{id}", v.mission)
	mux.HandleFunc("GET /live", v.live)
	mux.HandleFunc(server.AskPath, v.ask)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no such page"})
	})
	mux.ServeHTTP(w, r)
}

// shown is what the frame of all pages shows.
type shown struct {
	Title  string
	Waits  int    // asks, for the title of the window
	Home   string // the address of the list, "" where it is not to be seen
	Live   string // the address of the stream, "" if nothing will change
	Style  template.CSS
	Script template.JS
	Body   string // what is inside: list, mission, alone or said
	What   any
	Status int
}

// write answers with a page. Its policy lets a browser load its own style and script, ask this server, and nothing else.
func (s *Site) write(w http.ResponseWriter, v shown) {
	v.Style = template.CSS(s.Style + style)
	policy := "default-src 'none'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; style-src " + digest(string(v.Style))
	if v.Live != "" {
		v.Script = template.JS(script)
		policy += "; connect-src 'self'; script-src " + digest(script)
	}
	var b bytes.Buffer
	t, err := template.New("page").Funcs(template.FuncMap{
		"line": text.Clean, "short": func(s string, n int) string { return centurion.Clip(text.Clean(s), n) }, "count": centurion.Count,
		"clock": func(t centurion.Time) string {
			return text.When(!t.IsZero(), t.UTC().Format("2006-01-02 15:04:05 UTC"))
		},
	}).Parse(pages)
	if err == nil {
		err = t.Execute(&b, v)
	}
	if err != nil {
		http.Error(w, "the page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	for name, value := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "Cache-Control": "no-store",
		"Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff"} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(v.Status)
	_, _ = w.Write(b.Bytes()) // a browser that has left cannot be told
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// fail answers with a sentence that says what is wrong.
func (s *Site) fail(w http.ResponseWriter, err error) {
	status := map[centurion.Kind]int{centurion.KindNotFound: http.StatusNotFound, centurion.KindUsage: http.StatusBadRequest, centurion.KindConflict: http.StatusConflict}[centurion.KindOf(err)]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	s.say(w, status, sentence(err), "")
}

// say answers with a sentence, and the address to go back to.
func (s *Site) say(w http.ResponseWriter, status int, words, back string) {
	s.write(w, shown{Title: "Centurion", Status: status, Body: "said", What: map[string]string{"Words": words, "Back": back}})
}

func sentence(err error) string {
	hint := centurion.HintOf(err)
	return err.Error() + text.When(hint != "", " ("+hint+")")
}

// The pace of a stream: how often it says that it is alive, and how long changes are collected before they are told.
const (
	heartbeat = 10 * time.Second
	collects  = 200 * time.Millisecond
)

// live tells that something has changed, now and after each event, so that the page asks for itself again. It ends when a project was
// opened or cannot be followed; a browser then begins anew.
func (s visit) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	ctx, cancel := context.WithCancel(r.Context())
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	mission := r.FormValue("mission")
	var group guard.Group
	defer func() { cancel(); _ = group.Wait() }() // the stream ends for whatever reason
	for _, p := range s.projects {
		last, err := p.API().LastSeq(ctx) // before the first change is told, so that none is missed
		if err != nil {
			return
		}
		group.Go("watch a project", func() error {
			defer cancel()
			for _, err := range p.Follow(ctx, server.EventQuery{After: last, Mission: mission, Follow: true}) {
				if err != nil {
					return err
				}
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
	}
	flush := http.NewResponseController(w)
	for {
		told := ": alive\n\n"
		select {
		case <-changed:
			told = "retry: 1000\ndata: changed\n\n"
		case <-time.After(heartbeat):
		case <-ctx.Done():
			return
		}
		_, err := io.WriteString(w, told)
		if errors.Join(err, flush.Flush()) != nil || s.others(ctx) || guard.Sleep(ctx, collects) != nil {
			return
		}
	}
}

// others reports whether other projects are open than when the visit began.
func (s visit) others(ctx context.Context) bool {
	now, done := s.Projects(ctx)
	defer done()
	return len(now) != len(s.projects)
}
