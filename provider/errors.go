package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"centurion"
)

const (
	statusTooMany    = http.StatusTooManyRequests
	statusOverloaded = 529       // Anthropic's own, also used by its imitators
	errorMaxBytes    = 256 << 10 // of an error's body
	excerptLen       = 300       // bytes of a provider's message in our error
)

// complaint is a provider's error body in any of the common formats.
type complaint struct {
	Message text        `json:"message"`
	Type    text        `json:"type"`
	Status  text        `json:"status"` // Google: RESOURCE_EXHAUSTED
	Code    scalar      `json:"code"`   // a word or a status
	Detail  maybeDetail `json:"detail"`
	Models  []string    `json:"available_models"`
	Details []struct {
		RetryDelay text `json:"retryDelay"` // Google: "34s"
	} `json:"details"`
	Metadata struct {
		Raw text `json:"raw"` // OpenRouter: the underlying provider's message
	} `json:"metadata"`
	Error json.RawMessage `json:"error"`
}

// scalar is a string or a number, as a string.
type scalar string

// UnmarshalJSON never fails: other types are empty.
func (s *scalar) UnmarshalJSON(b []byte) error {
	var v string
	if json.Unmarshal(b, &v) == nil {
		*s = scalar(v)
	} else if n := strings.TrimSpace(string(b)); n != "" && strings.Trim(n, "0123456789") == "" {
		*s = scalar(n)
	}
	return nil
}

// maybeDetail is the detail of a FastAPI server: a string, or a list of objects with a msg.
type maybeDetail string

// UnmarshalJSON never fails: other types are empty.
func (d *maybeDetail) UnmarshalJSON(b []byte) error {
	var s string
	var list []struct {
		Msg text   `json:"msg"`
		Loc []text `json:"loc"`
	}
	if json.Unmarshal(b, &s) == nil {
		*d = maybeDetail(s)
	} else if lenient(b, &list) == nil && len(list) > 0 {
		var at []string
		for _, l := range list[0].Loc {
			at = append(at, string(l))
		}
		*d = maybeDetail(strings.Join(at, ".") + ": " + string(list[0].Msg))
	}
	return nil
}

// readComplaint reads an error body: {"error":{…}}, {"error":"…"}, {"type":"error","error":{…}}, [{"error":{…}}],
// {"message":…,"code":…}, {"detail":…}, or any text.
func readComplaint(b []byte) complaint {
	var c complaint
	for range 4 { // errors are wrapped in errors
		var list []json.RawMessage
		if json.Unmarshal(b, &list) == nil && len(list) > 0 {
			b = list[0]
		}
		var in complaint
		if lenient(b, &in) != nil {
			break
		}
		in.Message = cmp.Or(in.Message, text(in.Detail))
		if in.Type == "error" {
			in.Type = ""
		}
		models := in.Models
		if len(models) == 0 {
			models = c.Models
		}
		in = complaint{Message: cmp.Or(in.Message, c.Message), Type: cmp.Or(in.Type, c.Type), Status: cmp.Or(in.Status, c.Status),
			Code: cmp.Or(in.Code, c.Code), Models: models, Details: in.Details, Metadata: in.Metadata, Error: in.Error}
		c = in
		var s string
		if json.Unmarshal(c.Error, &s) == nil && s != "" {
			c.Message = text(s)
			break
		}
		if len(c.Error) == 0 || string(c.Error) == "null" {
			break
		}
		b = c.Error
	}
	if c.Message == "" {
		c.Message = text(excerpt(b))
	}
	if raw := c.Metadata.Raw; raw != "" && !strings.Contains(string(c.Message), string(raw)) {
		c.Message += ": " + raw
	}
	return c
}

// wordStatus returns the status for an error that has only a type.
func wordStatus(word string) int {
	switch strings.ToLower(word) {
	case "invalid_request_error", "invalid_argument", "failed_precondition", "bad_request":
		return http.StatusBadRequest
	case "authentication_error", "unauthenticated", "invalid_api_key":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error", "permission_denied":
		return http.StatusForbidden
	case "not_found_error", "not_found", "model_not_found":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "too_many_requests":
		return http.StatusTooManyRequests
	case "overloaded_error", "overloaded":
		return statusOverloaded
	}
	return 0
}

// providerError makes an error from a provider's message. Status is 0 for an error inside a stream; it is then derived from the
// message.
func providerError(status int, header http.Header, body []byte) *centurion.Error {
	c := readComplaint(body)
	if status == 0 {
		if n, err := strconv.Atoi(string(c.Code)); err == nil && n >= 400 && n < 600 {
			status = n
		}
		for _, word := range []string{string(c.Code), string(c.Type), string(c.Status)} {
			status = cmp.Or(status, wordStatus(word))
		}
	}
	e := &centurion.Error{Kind: kindOf(status, c), Status: status, Msg: excerpt([]byte(c.Message)), RetryAfter: retryAfter(header, time.Now())}
	for _, d := range c.Details {
		if after, err := time.ParseDuration(string(d.RetryDelay)); err == nil && e.RetryAfter == 0 {
			e.RetryAfter = max(after, 0)
		}
	}
	if len(c.Models) > 0 {
		e.Msg += "; it offers " + strings.Join(c.Models[:min(len(c.Models), 5)], ", ")
	}
	return e
}

// kindOf classifies by status, then code and type, and finally by the wording.
func kindOf(status int, c complaint) centurion.Kind {
	msg := strings.ToLower(string(c.Message))
	words := strings.ToLower(string(c.Code) + " " + string(c.Type))
	has := func(in string, any ...string) bool {
		return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(in, s) })
	}
	switch {
	case status == http.StatusPaymentRequired, has(words, "insufficient_quota", "billing_hard_limit", "insufficient_balance"),
		has(msg, "credit balance is too low", "insufficient balance"):
		return centurion.KindBudget
	case status == statusTooMany:
		return centurion.KindRateLimit
	case status == http.StatusRequestEntityTooLarge, has(words, "context_length_exceeded", "exceed_context_size"),
		(status == 0 || status == 400 || status == 422 || status == 500) && has(msg, overflowWords()...):
		return centurion.KindOverflow
	case has(words, "content_filter", "content_policy", "moderation"), status == http.StatusForbidden && has(msg, "moderation", "flagged"):
		return centurion.KindRefusal
	case status == http.StatusUnauthorized, status == http.StatusForbidden, has(words, "invalid_api_key"),
		status == http.StatusBadRequest && has(msg, "api key not valid", "invalid api key", "incorrect api key"):
		return centurion.KindAuth
	case has(words, "model_not_found"), status == http.StatusNotFound && has(msg, "model"),
		status == http.StatusBadRequest && has(msg, "valid model id", "model not exist", "model does not exist", "invalid model", "unknown model"):
		return centurion.KindModelNotFound
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status >= 300 && status < 400:
		return centurion.KindConfig
	case status == http.StatusRequestTimeout, status >= 500, status == 0:
		return centurion.KindOverloaded
	}
	return centurion.KindInvalidRequest
}

// overflowWords are the providers' phrases for a conversation that is too long, for errors without a code.
func overflowWords() []string {
	return []string{"context length", "context_length", "context window", "context size", "prompt is too long", "input is too long",
		"input token count", "exceed context limit", "maximum prompt length", "model token limit", "reduce the length of the messages"}
}

// retryAfter parses the delay requested by the provider: seconds, a date, or milliseconds in a separate header.
func retryAfter(h http.Header, now time.Time) time.Duration {
	seconds := func(s string, unit time.Duration) time.Duration {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || math.IsNaN(f) || f <= 0 {
			return 0
		}
		return time.Duration(min(f*float64(unit), float64(1000*time.Hour)))
	}
	v := h.Get("Retry-After")
	if d := cmp.Or(seconds(h.Get("Retry-After-Ms"), time.Millisecond), seconds(v, time.Second)); d > 0 {
		return d
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return untilReset(h, now)
}

// statusError makes an error from an unsuccessful answer.
func (c *Client) statusError(op string, resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorMaxBytes))
	e := providerError(resp.StatusCode, resp.Header, body)
	if e.Msg == "" {
		e.Msg = http.StatusText(resp.StatusCode)
	}
	return c.complete(e, op)
}

// complete adds what only the client knows: the operation, the key's source, and a hint.
func (c *Client) complete(e *centurion.Error, op string) *centurion.Error {
	told := *e
	told.Op = op
	if status := told.Status; status != 0 && told.Msg != "" {
		told.Msg = fmt.Sprintf("%s (status %d)", told.Msg, status)
	}
	id := c.end.Model.Provider
	hint := ""
	switch told.Kind {
	case centurion.KindAuth:
		from := "without a key"
		if c.end.APIKey != "" {
			from = "with the key from " + cmp.Or(c.end.KeySource, "the configuration")
		}
		told.Msg = fmt.Sprintf("%s refused the request %s: %s", id, from, told.Msg)
		hint = "check " + cmp.Or(c.end.KeySource, "the key of provider "+id) + ", or run `centurion auth login`"
	case centurion.KindBudget:
		hint = "add credit at " + id + ", or use another model, then `centurion resume`"
	case centurion.KindModelNotFound:
		hint = "run `centurion models` to see what " + id + " offers"
	case centurion.KindConfig:
		hint = "check the base URL " + c.baseURL() + "; it usually ends in /v1"
	case centurion.KindRateLimit:
		hint = "wait, or use fewer workers (--max-workers)"
	}
	told.Hint = cmp.Or(told.Hint, hint)
	told.Msg = c.redact(told.Msg)
	return &told
}

// baseURL returns the base URL without possible secrets.
func (c *Client) baseURL() string {
	u, err := url.Parse(c.base)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// redact removes the key from a provider's message.
func (c *Client) redact(s string) string {
	if len(c.end.APIKey) < 4 {
		return s
	}
	return strings.ReplaceAll(s, c.end.APIKey, "[key]")
}

// transportError makes an error from a failure to send a request or to read its answer. If ctx has ended, that is the cause.
func (c *Client) transportError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if cause == errSilent {
			return &centurion.Error{Op: op, Kind: centurion.KindStall, Msg: errSilent.Msg + " in time", Hint: errSilent.Hint}
		}
		return &centurion.Error{Op: op, Kind: centurion.KindOf(cause), Err: cause}
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // without the URL, which may contain a secret
	}
	e := &centurion.Error{Op: op, Kind: centurion.KindNetwork, Msg: "the connection to " + c.baseURL() + " broke", Err: err,
		Hint: "check the network; the work can be retried"}
	if oe, ok := errors.AsType[*net.OpError](err); ok && oe.Op == "dial" {
		e.Msg, e.Hint = "cannot reach "+c.baseURL(), "check that the server runs and that the base URL is right"
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		e.Err = errors.New(err.Error()) // a transport timeout must not be taken for one of ours
	}
	return e
}

// excerpt shortens a provider's message to one line.
func excerpt(b []byte) string {
	cut := len(b) > excerptLen
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b[:min(len(b), excerptLen+utf8.UTFMax)]), "\uFFFD")), " ")
	if len(s) > excerptLen || cut {
		s = strings.ToValidUTF8(s[:min(len(s), excerptLen)], "") + "…"
	}
	return s
}
