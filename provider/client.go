package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"centurion"
)

const (
	defaultIdle    = 120 * time.Second // without a byte from the provider, before the request counts as stalled
	defaultRetries = 8                 // of an answer 429 or 529
	silenceLimit   = 10 * time.Minute  // of keep-alives without a piece of the answer
	modelsTimeout  = 30 * time.Second  // to list a provider's models
	modelsMaxBytes = 16 << 20          // of such a list; the largest known is about 1 MB
)

// Limits are a model's window for prompt and answer together, and its longest answer, in tokens. 0 means unknown.
type Limits struct{ Context, Output int }

// ModelInfo describes a client's model.
type ModelInfo struct {
	centurion.ModelRef
	Limits
}

// Endpoint is one model at one provider. Model and BaseURL are required; every other field has a useful zero value.
type Endpoint struct {
	Model   centurion.ModelRef
	Limits  Limits // returned by [Client.Model]; not enforced
	BaseURL string // up to and without /chat/completions and the like: "https://api.openai.com/v1"
	APIKey  string // empty for local servers

	// KeySource names the key's source, a variable or a file, in the error for a refused key; the key itself is never shown.
	KeySource string

	Wire    Wire              // the API, such as Responses; nil means OpenAI's chat completions
	Headers map[string]string // sent with every request, overriding defaults
	// Extra are fields for the body of every request, such as reasoning_effort. They override our fields, except model, messages, input,
	// tools and stream.
	Extra            map[string]any
	NoSessionHeaders bool // omits x-session-id and x-parent-session-id
	EchoReasoning    bool // sends the reasoning of earlier answers back, as some models require

	// HTTP carries the requests. Nil means one client shared by every endpoint with the same Gates: 15 s to dial and 15 s
	// for TLS, 64 idle connections for each host, no limit for a whole request.
	HTTP *http.Client
	// IdleTimeout is the longest total silence. Keep-alives are a sign of life, for at most 10 minutes without a piece of the answer. 0
	// means 120 s.
	IdleTimeout time.Duration
	MaxRetries  int    // of an answer 429 or 529; 0 means 8, a negative number none
	Gates       *Gates // shared by all endpoints of a process; nil means its own
}

// Client accesses one endpoint. It is safe for concurrent use by many sessions.
type Client struct {
	end  Endpoint
	base string // the base URL, without a slash at its end
	gate *Gate
	err  error // of the configuration; told by every call
}

// field is an additional field of a request's body.
type field struct {
	name  string
	value json.RawMessage
}

// New returns a client for e. It starts nothing and opens no connection.
func New(e Endpoint) *Client {
	e.IdleTimeout = cmp.Or(e.IdleTimeout, defaultIdle)
	e.MaxRetries = cmp.Or(e.MaxRetries, defaultRetries)
	e.Gates = cmp.Or(e.Gates, &Gates{})
	if e.HTTP == nil {
		e.HTTP = e.Gates.client()
	}
	e.Wire = cmp.Or(e.Wire, Wire(chat{echo: e.EchoReasoning}))
	base := strings.TrimRight(e.BaseURL, "/")
	c := &Client{end: e, base: base, gate: e.Gates.Of(base, e.Model)}
	if e.BaseURL == "" {
		c.err = &centurion.Error{Op: "call " + e.Model.String(), Kind: centurion.KindConfig, Msg: "the provider has no base URL",
			Hint: "set provider." + e.Model.Provider + ".options.baseURL in opencode.json"}
	}
	if _, err := fieldsOf(e.Extra); err != nil {
		err.Op = "call " + e.Model.String()
		c.err = err
	}
	return c
}

// fieldsOf returns the effective fields of [Endpoint].Extra, sorted.
func fieldsOf(extra map[string]any) (all []field, err *centurion.Error) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		switch name {
		case "model", "messages", "input", "tools", "stream":
			continue
		}
		v, bad := json.Marshal(extra[name])
		if bad != nil {
			return nil, &centurion.Error{Kind: centurion.KindConfig, Msg: fmt.Sprintf("the extra field %q is not JSON", name), Err: bad}
		}
		all = append(all, field{name, v})
	}
	return all, nil
}

// Model returns the client's model and its limits.
func (c *Client) Model() ModelInfo { return ModelInfo{c.end.Model, c.end.Limits} }

// Closed returns for how long this model accepts no requests, because its provider said "too many requests"; 0 if it accepts them.
func (c *Client) Closed() time.Duration { return c.gate.Closed() }

// Models returns the ids of the models that the provider offers (GET /models), sorted. It takes at most 30 s. Errors
// have the same kinds as those of [Client.Stream].
func (c *Client) Models(ctx context.Context) ([]string, error) {
	op := "list models of " + c.end.Model.Provider
	if c.err != nil {
		return nil, c.err
	}
	limited, cancel := context.WithTimeoutCause(ctx, modelsTimeout, &centurion.Error{Kind: centurion.KindNetwork,
		Msg: "no answer for " + modelsTimeout.String(), Hint: "check that the server answers at " + c.base})
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, c.base+"/models", nil)
	if err != nil {
		return nil, &centurion.Error{Op: op, Kind: centurion.KindConfig, Err: err}
	}
	c.end.Wire.Authorize(req.Header, c.end.APIKey)
	c.setHeaders(req.Header)
	resp, err := c.end.HTTP.Do(req)
	if err != nil {
		return nil, c.transportError(limited, op, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.statusError(op, resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, modelsMaxBytes))
	if err != nil {
		return nil, c.transportError(limited, op, err)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := lenient(b, &list); err != nil {
		return nil, &centurion.Error{Op: op, Kind: centurion.KindConfig, Msg: "the answer is not a list of models: " + excerpt(b),
			Hint: "check the base URL " + c.base}
	}
	ids := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		if id := strings.TrimPrefix(m.ID, "models/"); id != "" { // Google names them models/…, but accepts the bare name
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

func (c *Client) setHeaders(h http.Header) {
	h.Set("User-Agent", "centurion")
	for k, v := range c.end.Headers {
		h.Set(k, v)
	}
}

// newHTTPClient returns a client without a limit for a whole request, because an answer may stream for an hour; phases that must be
// short have their own limits.
func newHTTPClient() *http.Client {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: 15 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        256,
			MaxIdleConnsPerHost: 64, // more than the 50 sessions of one host
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true, // a compressing proxy delays small events until its buffer is full
		},
		// A redirected POST becomes a GET, and a key must not follow one anyway.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
