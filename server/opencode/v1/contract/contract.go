// Package contract holds answers and events against OpenCode's own description of its API, for tests. It owns the part of that
// description that the program serves, and nothing of the product.
package contract

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// api is made from what `opencode generate` prints by TestContract of the routes' package. It is stricter: no object has a property that
// is not described.
//
//go:embed openapi.json
var api []byte

// API is the part of OpenCode's API that is served.
type API struct {
	// Answers are the schemas of answers, by "GET /session/{}" and by status.
	Answers map[string]map[string]*jsonschema.Schema `json:"answers"`
	Events  map[string]*jsonschema.Schema            `json:"events"` // by type
	Defs    map[string]*jsonschema.Schema            `json:"$defs"`

	mu       sync.Mutex                      // protects resolved
	resolved map[string]*jsonschema.Resolved // by the schema as JSON
}

var read = sync.OnceValue(func() *API {
	a := &API{resolved: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(api, a); err != nil {
		panic(err)
	}
	return a
})

// failures are the shapes of errors that OpenCode's server gives, whatever a route's description names.
var failures = map[int]string{http.StatusBadRequest: "BadRequestError", http.StatusNotFound: "NotFoundError", http.StatusConflict: "SessionBusyError",
	http.StatusInternalServerError: "UnknownError"}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// Operation names a method and a path as [API] does: the names of what is variable do not count.
func Operation(pattern string) string { return wildcard.ReplaceAllString(pattern, "{}") }

// Answer checks what a route has answered. The pattern is the one of [http.ServeMux]; "/" stands for what is no route.
func Answer(pattern string, status int, body []byte) error {
	a := read()
	s := a.Answers[Operation(pattern)][strconv.Itoa(status)]
	switch {
	case pattern != "/" && a.Answers[Operation(pattern)] == nil:
		return fmt.Errorf("%s is no route of OpenCode's that is known here", pattern)
	case status == http.StatusNoContent:
		if s == nil || len(body) > 0 {
			return fmt.Errorf("%s answers without content, or with %s", pattern, body)
		}
		return nil
	case failures[status] != "" && (s == nil || check(s, body) != nil):
		s = &jsonschema.Schema{Ref: "#/$defs/" + failures[status]}
	case s == nil:
		return fmt.Errorf("%s has no answer %d", pattern, status)
	}
	if err := check(s, body); err != nil {
		return fmt.Errorf("%s: %d: %w: %s", pattern, status, err, body)
	}
	return nil
}

// Event checks an event of one project.
func Event(b []byte) error {
	var e struct{ Type string }
	if err := json.Unmarshal(b, &e); err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	s := read().Events[e.Type]
	if s == nil {
		return fmt.Errorf("%s is no event of OpenCode's that is known here", b)
	}
	if err := check(s, b); err != nil {
		return fmt.Errorf("%w: %s", err, b)
	}
	return nil
}

// GlobalEvent checks an event of the stream for all projects. What concerns no project names none.
func GlobalEvent(b []byte) error {
	var e struct {
		Directory string          `json:"directory"`
		Project   string          `json:"project"`
		Payload   json.RawMessage `json:"payload"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	if general := bytes.Contains(e.Payload, []byte(`"type":"server.`)); general != (e.Directory == "") || general != (e.Project == "") {
		return fmt.Errorf("%s: the directory or the project is wrong", b)
	}
	return Event(e.Payload)
}

// Shape checks a value against a shape that OpenCode names, such as "Session".
func Shape(name string, b []byte) error {
	if read().Defs[name] == nil {
		return fmt.Errorf("there is no shape %s", name)
	}
	return check(&jsonschema.Schema{Ref: "#/$defs/" + name}, b)
}

func check(s *jsonschema.Schema, b []byte) error {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	a := read()
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.resolved[string(text)]
	if r == nil {
		own := s.CloneSchemas()
		own.Defs = (&jsonschema.Schema{Defs: a.Defs}).CloneSchemas().Defs
		if r, err = own.Resolve(nil); err != nil {
			return err
		}
		a.resolved[string(text)] = r
	}
	return r.Validate(v)
}

// Handler passes requests on to a handler that was built with [http.ServeMux], and reports each answer and each event that OpenCode's
// clients do not know. report is called from several goroutines.
func Handler(h http.Handler, report func(error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &tee{ResponseWriter: w, status: http.StatusOK, path: r.URL.Path, report: report}
		h.ServeHTTP(t, r)
		if !t.streams() {
			if err := Answer(r.Pattern, t.status, bytes.TrimSpace(t.body.Bytes())); err != nil {
				report(err)
			}
		}
	})
}

// tee reads what is answered.
type tee struct {
	http.ResponseWriter
	path   string
	report func(error)
	status int
	body   bytes.Buffer
}

func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tee) streams() bool { return t.Header().Get("Content-Type") == "text/event-stream" }

func (t *tee) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

func (t *tee) Write(b []byte) (int, error) {
	if !t.streams() {
		t.body.Write(b)
		return t.ResponseWriter.Write(b)
	}
	check := Event
	if strings.HasSuffix(t.path, "/global/event") {
		check = GlobalEvent
	}
	for line := range bytes.Lines(b) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			if err := check(bytes.TrimSpace(data)); err != nil {
				t.report(err)
			}
		}
	}
	return t.ResponseWriter.Write(b)
}
