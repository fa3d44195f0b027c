package server

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"centurion"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/roots"
	"centurion/sandbox"
	"centurion/takeover"
	"centurion/text"
)

// Prefix is the path of the program's own API.
const Prefix = "/centurion/v1"

// maxBody limits a request body, in bytes.
const maxBody = 1 << 20

// Handler serves api to clients with the token, but not to a process that [WithPeer] refuses, which refused gets. info is the answer to
// GET /centurion/v1.
func Handler(api API, token string, info Info, refused func(sandbox.Peer)) http.Handler {
	return authorized(token, refused, Routes(api, info))
}

// Routes serves api to everybody: its caller lets clients in.
func Routes(api API, info Info) http.Handler {
	h := handler{api}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix, func(w http.ResponseWriter, _ *http.Request) { reply(w, info, nil) })
	mux.HandleFunc("GET "+Prefix+"/events", h.events)
	for path, do := range h.gets() {
		mux.HandleFunc("GET "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(r.Context(), r)
			reply(w, v, err)
		})
	}
	for path, do := range h.posts() {
		mux.HandleFunc("POST "+Prefix+path, do)
	}
	return mux
}

// gets are the read-only paths.
func (h handler) gets() map[string]func(ctx context.Context, r *http.Request) (any, error) {
	type request = *http.Request
	return map[string]func(ctx context.Context, r request) (any, error){
		"/missions":               func(ctx context.Context, _ request) (any, error) { return h.api.Missions(ctx) },
		"/mission":                func(ctx context.Context, r request) (any, error) { return h.api.Mission(ctx, r.FormValue("id")) },
		"/tasks":                  func(ctx context.Context, r request) (any, error) { return h.api.Tasks(ctx, r.FormValue("mission")) },
		"/tasks/{id}":             func(ctx context.Context, r request) (any, error) { return h.api.Task(ctx, r.PathValue("id")) },
		"/sessions":               func(ctx context.Context, r request) (any, error) { return h.api.Sessions(ctx, r.FormValue("mission")) },
		"/sessions/{id}":          func(ctx context.Context, r request) (any, error) { return h.api.Session(ctx, r.PathValue("id")) },
		"/sessions/{id}/messages": func(ctx context.Context, r request) (any, error) { return h.api.Messages(ctx, r.PathValue("id")) },
		"/sessions/{id}/messages/{message}": func(ctx context.Context, r request) (any, error) {
			return h.api.Message(ctx, r.PathValue("id"), r.PathValue("message"), r.URL.Query()["part"]...)
		},
		"/sessions/{id}/tree": func(ctx context.Context, r request) (any, error) { return h.api.Tree(ctx, r.PathValue("id")) },
		"/sessions/{id}/written": func(ctx context.Context, r request) (any, error) {
			return h.api.Written(ctx, r.PathValue("id"), r.FormValue("message"))
		},
		"/todo":  func(ctx context.Context, r request) (any, error) { return h.api.Todo(ctx, r.FormValue("mission")) },
		"/roots": func(ctx context.Context, r request) (any, error) { return h.api.Roots(ctx, rootsQuery(r)) },
		"/servers": func(ctx context.Context, r request) (any, error) {
			return h.api.Servers(ctx, r.FormValue("wait") == "true")
		},
		"/receipts": func(ctx context.Context, r request) (any, error) { return h.api.Receipts(ctx, r.FormValue("mission")) },
		"/asks":     func(ctx context.Context, _ request) (any, error) { return h.api.Asks(ctx) },
		"/seq":      func(ctx context.Context, _ request) (any, error) { return h.api.LastSeq(ctx) },
		"/state":    func(ctx context.Context, r request) (any, error) { return h.api.State(ctx, r.FormValue("id")) },
		"/diff": func(ctx context.Context, r request) (any, error) {
			id := r.FormValue("id") // which parses the form
			return h.api.Diff(ctx, id, takeover.DiffOptions{Patch: r.FormValue("patch") == "true", Color: r.FormValue("color") == "true", Paths: r.Form["path"]})
		},
	}
}

// posts are the modifying paths. A client with the token acts for the person.
func (h handler) posts() map[string]http.HandlerFunc {
	type request = *http.Request
	posts := map[string]http.HandlerFunc{
		"/asks/{id}": post(func(ctx context.Context, r request, b answerBody) (any, error) {
			return done(h.api.Answer(b.by(ctx), r.PathValue("id"), b.Answer))
		}),
		"/missions": post(func(ctx context.Context, _ request, b startBody) (any, error) {
			return h.api.Start(ctx, b.Goal, b.Options)
		}),
		"/resume": post(func(ctx context.Context, _ request, b resumeBody) (any, error) {
			return h.api.Resume(ctx, b.ID, b.Options)
		}),
		"/send": post(func(ctx context.Context, _ request, p mail.Post) (any, error) {
			p.Origin = centurion.OriginPerson
			return h.api.Send(ctx, p)
		}),
		"/prompt": post(func(ctx context.Context, _ request, p mail.Post) (any, error) {
			p.Origin = centurion.OriginPerson
			return h.api.Prompt(ctx, p)
		}),
		"/tidy":            post(func(ctx context.Context, _ request, o retention.TidyOptions) (any, error) { return h.api.Tidy(ctx, o) }),
		"/servers/content": post(func(ctx context.Context, _ request, q ServerQuery) (any, error) { return h.api.Content(ctx, q) }),
		"/sessions/{id}/compact": post(func(ctx context.Context, r request, b compactBody) (any, error) {
			return done(h.api.Compact(ctx, r.PathValue("id"), b.Model))
		}),
		"/sessions/{id}/rewind": post(func(ctx context.Context, r request, b Rewind) (any, error) {
			return h.api.Rewind(ctx, r.PathValue("id"), b)
		}),
		"/sessions/{id}/revert": post(func(ctx context.Context, r request, b revertBody) (any, error) {
			return h.api.Revert(ctx, r.PathValue("id"), b.Message)
		}),
		"/sessions/{id}/fork": post(func(ctx context.Context, r request, b forkBody) (any, error) {
			return h.api.Fork(ctx, r.PathValue("id"), b.At)
		}),
		"/sessions/{id}/shell": post(func(ctx context.Context, r request, b shellBody) (any, error) {
			return h.api.Shell(ctx, r.PathValue("id"), b.Command)
		}),
		"/roots": post(func(ctx context.Context, _ request, o roots.Opening) (any, error) {
			return h.api.Open(ctx, o)
		}),
		"/roots/{id}": post(func(ctx context.Context, r request, c roots.Change) (any, error) {
			return h.api.Change(ctx, r.PathValue("id"), c)
		}),
		"/roots/{id}/remove": func(w http.ResponseWriter, r request) {
			reply(w, struct{}{}, h.api.Remove(r.Context(), r.PathValue("id")))
		},
		"/merge": post(func(ctx context.Context, _ request, b mergeBody) (any, error) {
			return h.api.Merge(ctx, b.ID, b.MergeRequest)
		}),
		"/undo": post(func(ctx context.Context, _ request, b undoBody) (any, error) {
			return h.api.Undo(ctx, b.ID, b.UndoRequest)
		}),
	}
	for path, end := range map[string]func(ctx context.Context, id, reason string) error{
		"/cancel": h.api.Cancel, "/pause": h.api.Pause, "/abort": h.api.Abort, "/stop": h.api.Stop, "/expand": h.api.Expand} {
		posts[path] = post(func(ctx context.Context, _ request, b cancelBody) (any, error) { return done(end(ctx, b.ID, b.Reason)) })
	}
	return posts
}

// done is the answer of a function that only returns an error.
func done(err error) (any, error) { return struct{}{}, err }

// Info describes the host of the project.
type Info struct {
	PID       int    `json:"pid"`
	Version   string `json:"version"`
	Directory string `json:"directory"`
	Detached  bool   `json:"detached"` // it runs in the background, independent of the terminal
	Way       string `json:"way"`      // how it confines commands: full, files or none
}

type handler struct{ api API }

type peerKey struct{}

// WithPeer says which process a connection comes from, for the requests that it makes.
func WithPeer(ctx context.Context, p sandbox.Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf is the process of a request; the zero Peer for a call within the hosting process.
func peerOf(ctx context.Context) sandbox.Peer {
	p, _ := ctx.Value(peerKey{}).(sandbox.Peer)
	return p
}

// authorized refuses requests of processes that agents have started, and those without the token: a socket's permissions do not exclude
// commands that agents run as the same user, and such a command can read the token where it is not confined.
func authorized(token string, refused func(sandbox.Peer), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := peerOf(r.Context()); p.Refused != "" {
			refused(p)
			reply(w, nil, &centurion.Error{Kind: centurion.KindPermission, Msg: "Centurion's host refuses this process: " + p.Refused,
				Hint: "agents cannot control Centurion; run the command in a terminal of your own"})
			return
		}
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			reply(w, nil, &centurion.Error{Kind: centurion.KindAuth, Msg: "the token is missing or wrong"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

type answerBody struct {
	Answer string `json:"answer"`
	Client string `json:"client,omitempty"` // the program for which this one answers; without it a person is taken to be there
}

// by says which process answers.
func (b answerBody) by(ctx context.Context) context.Context {
	if p := peerOf(ctx); p.Own && b.Client != "" {
		return WithPeer(ctx, sandbox.Peer{PID: p.PID, Command: b.Client})
	}
	return ctx
}

type cancelBody struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

type startBody struct {
	Goal    string                   `json:"goal"`
	Options centurion.MissionOptions `json:"options"`
}

type resumeBody struct {
	ID      string                   `json:"id"`
	Options centurion.MissionOptions `json:"options"`
}

// post answers a request with a body of type T with the result of do.
func post[T any](do func(ctx context.Context, r *http.Request, b T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b T
		err := body(w, r, &b)
		if err != nil {
			reply(w, nil, err)
			return
		}
		v, err := do(r.Context(), r, b)
		reply(w, v, err)
	}
}

// events streams one JSON object per line, or for browsers, which ask for it, one per event of text/event-stream.
func (h handler) events(w http.ResponseWriter, r *http.Request) {
	from := cmp.Or(r.FormValue("after"), "0")
	if last := r.Header.Get("Last-Event-ID"); last != "" { // a browser connects again
		from = last
	}
	after, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		reply(w, nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "after and Last-Event-ID must be sequence numbers"})
		return
	}
	q := EventQuery{After: after, Mission: r.FormValue("mission"), Session: r.FormValue("session"), Task: r.FormValue("task"),
		Deltas: r.FormValue("deltas") == "true", Follow: r.FormValue("follow") == "true", Keep: r.FormValue("keep") == "true",
		Toasts: r.FormValue("toasts") == "true", View: r.FormValue("view")}
	kind, line := "application/x-ndjson", "%[2]s\n"
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		kind, line = "text/event-stream", "%[1]sdata: %[2]s\n\n"
	}
	w.Header().Set("Content-Type", kind)
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return
	}
	send := func(v any, id string) error {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, line, id, b)
		}
		return err
	}
	for e, err := range h.api.Events(r.Context(), q) {
		if err != nil {
			_ = send(failure(err), "") // reported in the stream; a disconnected reader cannot be told
			return
		}
		if send(e, text.When(e.Seq > 0, fmt.Sprintf("id: %d\n", e.Seq))) != nil {
			return
		}
		if q.Follow && flush.Flush() != nil {
			return
		}
	}
}

func body(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bound(r)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &centurion.Error{Op: "read request", Kind: centurion.KindUsage, Err: err}
	}
	return nil
}

// wireError is the transmitted form of an error.
type wireError struct {
	Kind    centurion.Kind `json:"kind"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
}

type errorBody struct {
	Error *wireError `json:"error"`
}

func failure(err error) errorBody {
	return errorBody{&wireError{Kind: centurion.KindOf(err), Message: err.Error(), Hint: centurion.HintOf(err)}}
}

// Refuse answers a request with an error.
func Refuse(w http.ResponseWriter, err error) { reply(w, nil, err) }

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(statusOf(err))
		v = failure(err)
	}
	_ = json.NewEncoder(w).Encode(v) // a disconnected reader cannot be told
}

func statusOf(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	status := map[centurion.Kind]int{centurion.KindUsage: http.StatusBadRequest, centurion.KindAuth: http.StatusUnauthorized,
		centurion.KindPermission: http.StatusForbidden, centurion.KindNotFound: http.StatusNotFound, centurion.KindConflict: http.StatusConflict}
	return cmp.Or(status[centurion.KindOf(err)], http.StatusInternalServerError)
}
