package server

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"centurion"
	"centurion/orchestrator/retention"
)

// Prefix is where the program's own API is served.
const Prefix = "/centurion/v1"

// maxBody bounds a request body, in bytes.
const maxBody = 1 << 20

// Handler serves api to whoever knows the token. Info is what GET /centurion/v1 answers.
func Handler(api API, token string, info Info) http.Handler {
	h := handler{api: api, info: info}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Prefix, func(w http.ResponseWriter, _ *http.Request) { reply(w, h.info, nil) })
	mux.HandleFunc("GET "+Prefix+"/missions", func(w http.ResponseWriter, r *http.Request) { answer(w)(h.api.Missions(r.Context())) })
	mux.HandleFunc("GET "+Prefix+"/mission", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Mission(r.Context(), r.FormValue("id")))
	})
	mux.HandleFunc("GET "+Prefix+"/tasks", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Tasks(r.Context(), r.FormValue("mission")))
	})
	mux.HandleFunc("GET "+Prefix+"/tasks/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Task(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("GET "+Prefix+"/sessions", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Sessions(r.Context(), r.FormValue("mission")))
	})
	mux.HandleFunc("GET "+Prefix+"/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Session(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("GET "+Prefix+"/sessions/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Messages(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("GET "+Prefix+"/receipts", func(w http.ResponseWriter, r *http.Request) {
		answer(w)(h.api.Receipts(r.Context(), r.FormValue("mission")))
	})
	mux.HandleFunc("GET "+Prefix+"/asks", func(w http.ResponseWriter, r *http.Request) { answer(w)(h.api.Asks(r.Context())) })
	mux.HandleFunc("GET "+Prefix+"/seq", func(w http.ResponseWriter, r *http.Request) { answer(w)(h.api.LastSeq(r.Context())) })
	mux.HandleFunc("POST "+Prefix+"/asks/{id}", post(h.answerAsk))
	mux.HandleFunc("POST "+Prefix+"/cancel", post(h.cancel))
	mux.HandleFunc("POST "+Prefix+"/pause", post(h.pause))
	mux.HandleFunc("POST "+Prefix+"/missions", post(h.start))
	mux.HandleFunc("POST "+Prefix+"/resume", post(h.resume))
	mux.HandleFunc("POST "+Prefix+"/send", post(h.send))
	mux.HandleFunc("POST "+Prefix+"/tidy", post(h.tidy))
	mux.HandleFunc("POST "+Prefix+"/sessions/{id}/compact", func(w http.ResponseWriter, r *http.Request) {
		reply(w, struct{}{}, h.api.Compact(r.Context(), r.PathValue("id")))
	})
	h.treeRoutes(mux)
	h.personRoutes(mux)
	mux.HandleFunc("GET "+Prefix+"/events", h.events)
	h.live(mux)
	return authorized(token, mux)
}

// Info tells who hosts the project.
type Info struct {
	PID       int    `json:"pid"`
	Version   string `json:"version"`
	Directory string `json:"directory"`
	Detached  bool   `json:"detached"` // it lives in the background, whatever becomes of the terminal
}

type handler struct {
	api  API
	info Info
}

// authorized lets nobody in without the token: a socket's permissions do not keep out the commands that agents run as
// the same user.
func authorized(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// post answers a request whose body is a T with what do returns.
func post[T any](do func(r *http.Request, b T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b T
		err := body(w, r, &b)
		if err != nil {
			reply(w, nil, err)
			return
		}
		v, err := do(r, b)
		reply(w, v, err)
	}
}

func (h handler) start(r *http.Request, b startBody) (any, error) {
	return h.api.Start(r.Context(), b.Goal, b.Options)
}

func (h handler) resume(r *http.Request, b resumeBody) (any, error) {
	return h.api.Resume(r.Context(), b.ID, b.Options)
}

func (h handler) pause(r *http.Request, b cancelBody) (any, error) {
	return struct{}{}, h.api.Pause(r.Context(), b.ID, b.Reason)
}

func (h handler) answerAsk(r *http.Request, b answerBody) (any, error) {
	return struct{}{}, h.api.Answer(r.Context(), r.PathValue("id"), b.Answer)
}

func (h handler) cancel(r *http.Request, b cancelBody) (any, error) {
	return struct{}{}, h.api.Cancel(r.Context(), b.ID, b.Reason)
}

func (h handler) tidy(r *http.Request, o retention.TidyOptions) (any, error) {
	return h.api.Tidy(r.Context(), o)
}

// events streams one JSON object a line.
func (h handler) events(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
	if err != nil && r.FormValue("after") != "" {
		reply(w, nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "after must be a sequence number"})
		return
	}
	q := EventQuery{After: after, Mission: r.FormValue("mission"), Session: r.FormValue("session"), Task: r.FormValue("task"),
		Deltas: r.FormValue("deltas") == "true", Follow: r.FormValue("follow") == "true", Keep: r.FormValue("keep") == "true",
		Toasts: r.FormValue("toasts") == "true", View: r.FormValue("view")}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	if err := flush.Flush(); err != nil {
		return
	}
	for e, err := range h.api.Events(r.Context(), q) {
		if err != nil {
			_ = out.Encode(failure(err)) // the reader is told in the stream; if it has gone, nobody is there to tell
			return
		}
		if out.Encode(e) != nil {
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

// answer returns a function that takes a call's results as they are.
func answer(w http.ResponseWriter) func(v any, err error) {
	return func(v any, err error) { reply(w, v, err) }
}

// wireError is how an error crosses the wire.
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

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(statusOf(err))
		v = failure(err)
	}
	_ = json.NewEncoder(w).Encode(v) // a reader that has gone cannot be told
}

func statusOf(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	switch centurion.KindOf(err) {
	case centurion.KindUsage:
		return http.StatusBadRequest
	case centurion.KindAuth:
		return http.StatusUnauthorized
	case centurion.KindPermission:
		return http.StatusForbidden
	case centurion.KindNotFound:
		return http.StatusNotFound
	case centurion.KindConflict:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
