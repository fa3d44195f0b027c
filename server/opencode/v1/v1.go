// Package v1 speaks the protocol of OpenCode 1.18: its routes, its events and its names, which no other package knows. It keeps nothing but
// what a client is told next: sessions, messages and asks are read from the project's API.
package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"centurion"
	"centurion/server"
	"centurion/server/opencode"
	"centurion/workspace"
)

// Project is an open project. Its functions are those of its host, in this process or another one.
type Project struct {
	Directory string // absolute, with links resolved
	Home      string // of the person
	State     string // the program's state directory
	Config    string // the directory of the person's configuration
	Version   string // of the program
	API       func() server.API
	// Follow yields events until ctx ends, also when the host changes.
	Follow func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error]
	// Begin starts a mission with the first message of a session.
	Begin   func(ctx context.Context, b Begin) (server.Mission, error)
	Catalog func(ctx context.Context) (Catalog, error)
	// Expand makes a message of a command.
	Expand func(ctx context.Context, command, arguments string) (Begin, error)
	Files  *workspace.Workspace
	Note   func(string) // tells the person who runs the server; never nil
	// Show shows a notice of a client where the project's own streams do not reach; it may be nil.
	Show func(title, message, variant string)
	// All gets the events of all projects of a server, for the stream of all; nil where that is not served.
	All *opencode.Hub

	hub  opencode.Hub
	view view
	told server.Follower
}

// Begin is the first message of a session.
type Begin struct {
	Session, Goal         string
	Agent, Model, Profile string
	ShowPlan              bool   // a person accepts the plan before it is carried out
	Message               string // the message's id, "" for a new one
	Parts                 []centurion.Part
	Typed                 *centurion.Typed // the command that made the message; nil for none

	noReply bool // no answer is wanted, and no mission begins
}

// maxBody limits a request's body, in bytes: 20 MB of attachments in base64, and text.
const maxBody = 32 << 20

// heartbeat is how often a stream says that it is alive, as OpenCode's server does.
const heartbeat = 10 * time.Second

// Run tells the project's events to the readers of its streams until ctx ends. It has to run while the project is served.
func (p *Project) Run(ctx context.Context) error { return p.follow(ctx) }

// Handler serves a project.
func (p *Project) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range p.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			if pattern == healthRoute {
				w.Header().Set(DialectsHeader, "v1")
			}
			v, err := do(r)
			answer(w, v, err)
		})
	}
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		p.stream(w, r, p.hub.Reader(), func(event []byte) []byte { return event })
	})
	mux.HandleFunc("GET /global/event", func(w http.ResponseWriter, r *http.Request) {
		p.stream(w, r, p.All.Reader(), func(event []byte) []byte { return fmt.Appendf(nil, `{"payload":%s}`, event) })
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no route " + r.Method + " " + r.URL.Path})
	})
	return mux
}

// healthRoute says whether the server answers. What it answers is OpenCode's, so that the dialects which are served, separated by commas, stand
// in a header.
const (
	healthRoute    = "GET /global/health"
	DialectsHeader = "X-OpenCode-Dialects"
)

type route = func(r *http.Request) (any, error)

// routes are those of OpenCode that are served, by pattern.
func (p *Project) routes() map[string]route {
	all := map[string]route{}
	for _, some := range []map[string]route{p.catalogRoutes(), p.clientRoutes(), p.sessionRoutes(), p.promptRoutes(), p.revertRoutes(), p.askRoutes(), p.shellRoutes(), p.toolRoutes(), p.fileRoutes()} {
		maps.Copy(all, some)
	}
	return all
}

// stream sends events as they come; own makes one of what concerns no project.
func (p *Project) stream(w http.ResponseWriter, r *http.Request, reader *opencode.Reader, own func([]byte) []byte) {
	for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"} {
		w.Header().Set(name, value)
	}
	flush := http.NewResponseController(w)
	send := func(b []byte) bool {
		_, err := fmt.Fprintf(w, "data: %s\n\n", b)
		if err == nil && reader.Waits() { // else more is written first: a packet for each event is slow
			err = flush.Flush()
		}
		return err == nil
	}
	if !send(own(eventText("server.connected", struct{}{}))) {
		return
	}
	for {
		ctx, cancel := context.WithTimeout(r.Context(), heartbeat)
		text, err := reader.Next(ctx)
		cancel()
		switch {
		case err == nil:
		case r.Context().Err() == nil && errors.Is(err, context.DeadlineExceeded):
			text = own(eventText("server.heartbeat", struct{}{}))
		default: // the client has left, or is so slow that it has to read everything again
			return
		}
		if !send(text) {
			return
		}
	}
}

// eventText is an event as a stream has it.
func eventText(kind string, properties any) []byte {
	b, err := json.Marshal(struct {
		ID         string `json:"id"`
		Type       string `json:"type"`
		Properties any    `json:"properties"`
	}{centurion.NewID("evt"), kind, properties})
	if err != nil {
		panic(err) // only structs of this package are sent
	}
	return b
}

// pass tells an event to the readers of the project, and of all projects.
func (p *Project) pass(event []byte, delta bool) {
	p.hub.Send(event, delta)
	if p.All == nil { // a front end of another protocol
		return
	}
	p.All.Send(fmt.Appendf(nil, `{"directory":%s,"project":"global","payload":%s}`, mustJSON(p.Directory), event), delta)
}

func mustJSON(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

// answer writes the result of a request. A nil result without an error has no content.
func answer(w http.ResponseWriter, v any, err error) {
	if err == nil && v == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if page, ok := v.(paged); ok {
		page.head(w.Header())
		v = page.list
	}
	w.Header().Set("Content-Type", "application/json")
	if over, ok := errors.AsType[*overError](err); ok {
		w.WriteHeader(http.StatusNotFound)
		v = over
	} else if busy, ok := errors.AsType[*busyError](err); ok {
		w.WriteHeader(http.StatusConflict)
		v = busy
	} else if err != nil {
		status, body := failure(err)
		w.WriteHeader(status)
		v = body
	}
	_ = json.NewEncoder(w).Encode(v) // a client that has left cannot be told
}

// paged is a list with what asks for the older ones; none is left without a cursor.
type paged struct {
	list   any
	cursor string
	url    *url.URL
}

func (p paged) head(h http.Header) {
	if p.cursor == "" {
		return
	}
	query := p.url.Query()
	query.Set("before", p.cursor)
	h.Set("X-Next-Cursor", p.cursor)
	h.Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", p.url.Path, query.Encode()))
}

// Refuse answers a request with an error, as OpenCode's clients know it.
func Refuse(w http.ResponseWriter, err error) { answer(w, nil, err) }

// overError says that an ask is over, as OpenCode's clients know it.
type overError struct {
	Tag     string `json:"_tag"`
	Request string `json:"requestID"`
	Message string `json:"message"`
}

func (e *overError) Error() string { return e.Message }

type errorBody struct {
	Name string         `json:"name"`
	Data map[string]any `json:"data"`
}

// failure is an error as OpenCode's clients know it.
func failure(err error) (int, errorBody) {
	text := err.Error()
	if hint := centurion.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	body := errorBody{"BadRequest", map[string]any{"message": text, "kind": "Payload"}}
	switch kind := centurion.KindOf(err); kind {
	case centurion.KindNotFound:
		return http.StatusNotFound, errorBody{"NotFoundError", map[string]any{"message": text}}
	case centurion.KindUsage, centurion.KindConflict, centurion.KindPermission, centurion.KindConfig:
		return http.StatusBadRequest, body
	default:
		return http.StatusInternalServerError, errorBody{"UnknownError", map[string]any{"message": text, "ref": string(kind)}}
	}
}

// read decodes a request's body. An empty one is an empty object, and a field that a newer client sends is passed over.
func read[T any](r *http.Request) (v T, err error) {
	if r.ContentLength == 0 {
		return v, nil
	}
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		return v, &centurion.Error{Op: "read request", Kind: centurion.KindUsage, Err: err}
	}
	return v, nil
}

// Directory is the directory that a request is about, "" for the server's own.
func Directory(r *http.Request) string {
	if dir := r.URL.Query().Get("directory"); dir != "" {
		return filepath.Clean(dir)
	}
	return unescaped(r.Header.Get("X-Opencode-Directory"))
}
