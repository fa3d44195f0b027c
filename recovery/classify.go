package recovery

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"centurion"
)

// Fault is what a provider objects to in a rejected history.
type Fault string

// The faults of a history that a prompt can fix.
const (
	FaultNone          Fault = ""
	FaultToolResult    Fault = "tool_result_missing"  // a tool call without its result, or a result without its call
	FaultThinkingOrder Fault = "thinking_block_order" // thinking blocks changed, moved or missing
)

// prompts are for the model that continues after the host has repaired the history.
var prompts = map[Fault]string{
	FaultToolResult: "A tool call of yours broke off before its result was recorded; the history has been repaired and " +
		"shows what is known. Check what the call did before you repeat it, then continue your task.",
	FaultThinkingOrder: "The previous turn could not be continued and was closed. " +
		"Continue your task from the last recorded result.",
}

const noAnswerPrompt = "Your last turn ended without any text or tool call. " +
	"Continue your task; if it is done, say in a few sentences what you did and what came of it."

// reasons put kinds into words for people.
var reasons = map[centurion.Kind]string{
	centurion.KindNetwork:       "the provider could not be reached",
	centurion.KindStreamCut:     "the answer was cut off",
	centurion.KindStall:         "the provider fell silent",
	centurion.KindCrashed:       "the session crashed",
	centurion.KindConflict:      "something changed meanwhile",
	centurion.KindInternal:      "an unexpected error",
	centurion.KindBudget:        "the spending limit is reached",
	centurion.KindDisk:          "the disk is full or failing",
	centurion.KindAuth:          "the provider refused the key",
	centurion.KindModelNotFound: "the provider does not know the model",
	centurion.KindRefusal:       "the model refused to answer",
	centurion.KindPermission:    "it was not permitted",
	centurion.KindTimeout:       "the time allowed for it is over",
	centurion.KindVerify:        "an acceptance command failed",
	centurion.KindConfig:        "the configuration is wrong",
	centurion.KindUsage:         "the input is wrong",
	centurion.KindNotFound:      "what was named does not exist",
	centurion.KindState:         "the state database cannot be used",
}

// Classify classifies an error by its kind if it has a specific one, then by the HTTP status, by the type of a standard-library cause,
// and last by its text. An unknown error is KindInternal. The fault is set only for a rejected history.
func Classify(err error) (centurion.Kind, Fault) {
	kind := centurion.KindOf(err)
	switch kind {
	case "":
		return "", FaultNone
	case centurion.KindInternal:
		if kind = cmp.Or(byStatus(status(err)), byCause(err)); kind != "" {
			break
		}
		if k, fault := byShape(err.Error()); k != "" {
			return k, fault
		}
	}
	kind, fault := refine(kind, err.Error())
	return cmp.Or(kind, centurion.KindInternal), fault
}

// refine adds what a provider's text says to a kind that says little: what a request is rejected for, and without a kind what else
// has failed.
func refine(kind centurion.Kind, text string) (centurion.Kind, Fault) {
	if kind != "" && kind != centurion.KindInvalidRequest {
		return kind, FaultNone
	}
	if k, fault := byText(text, rejections()); k != "" {
		return k, fault
	}
	if kind == "" {
		kind, _ = byText(text, others())
	}
	return kind, FaultNone
}

func byStatus(status int) centurion.Kind {
	switch {
	case status == 401 || status == 403:
		return centurion.KindAuth
	case status == 404:
		return centurion.KindModelNotFound
	case status == 413:
		return centurion.KindOverflow
	case status == 429:
		return centurion.KindRateLimit
	case status == 408 || status >= 500:
		return centurion.KindOverloaded
	case status >= 400:
		return centurion.KindInvalidRequest
	}
	return ""
}

func byCause(err error) centurion.Kind {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EIO):
		return centurion.KindDisk
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return centurion.KindNetwork
	}
	e, ok := errors.AsType[net.Error](err)
	if _, system := e.(syscall.Errno); ok && !system { // every system error would match, even that of a missing file
		return centurion.KindNetwork
	}
	return ""
}

// pattern is a text that providers write. Patterns match whole phrases, since a lone number or word also occurs in file names, line
// numbers and test output.
type pattern struct {
	re    *regexp.Regexp
	kind  centurion.Kind
	fault Fault
}

func byText(s string, table []pattern) (centurion.Kind, Fault) {
	for _, p := range table {
		if p.re.MatchString(s) {
			return p.kind, p.fault
		}
	}
	return "", FaultNone
}

// rejections are the texts of providers about requests they reject.
var rejections = sync.OnceValue(func() []pattern {
	return []pattern{
		{regexp.MustCompile("(?i)tool_result_missing|tool_use[`'\"]* ids? (were|was) found without|" +
			"tool_call_ids? did not have response messages|(must be|not) followed by tool messages|" +
			"messages? with role [`'\"]*tool[`'\"]* must be a response|unexpected [`'\"]*tool_(use_id|result)|" +
			"no tool (call|output) found for (function|tool) call|not the same number of function calls and responses|" +
			"number of function response parts (is|should be) equal"),
			centurion.KindInvalidRequest, FaultToolResult},
		{regexp.MustCompile("(?i)thinking_block_order|(must|expected|should) (start|begin) with a thinking block|" +
			"expected [`'\"]*(redacted_)?thinking[`'\"]*( or [`'\"]*redacted_thinking[`'\"]*)?,? but found|" +
			"[`'\"]*thinking[`'\"]* (or [`'\"]*redacted_thinking[`'\"]* )?blocks?.{0,80}(cannot be modified|must remain|order)|" +
			"invalid [`'\"]*signature[`'\"]* in [`'\"]*thinking|missing thought_signature"),
			centurion.KindInvalidRequest, FaultThinkingOrder},
		{regexp.MustCompile("(?i)context_length_exceeded|maximum context length|prompt is too long|input is too long|" +
			"exceeds? (the )?(model'?s? )?(maximum |available )?context (window|length|size)|context (window|length) (is )?exceeded|" +
			"input token count.{0,40}exceeds|exceeds? the maximum number of (input )?tokens|too many (input )?tokens in the (request|prompt)"),
			centurion.KindOverflow, FaultNone},
	}
})

// others are the texts about everything else.
var others = sync.OnceValue(func() []pattern {
	return []pattern{
		{regexp.MustCompile("(?i)rate[ _-]?limit(ed\\b|[ _-]?(exceeded|reached|error|hit)\\b)|exceed\\w*( [\\w']+){0,4} rate limit|" +
			"\\btoo[ _]many[ _]requests\\b|resource_exhausted|\\b(http|status|error)( status)?( code)?[ :=]{1,3}429\\b|\\b429 too many\\b"),
			centurion.KindRateLimit, FaultNone},
		{regexp.MustCompile("(?i)overloaded_error|\\b(server|model|engine) is (currently )?overloaded|service unavailable|bad gateway|" +
			"gateway time-?out|internal server error|\\b(http|status)( status| code)?[ :=]{1,3}5(00|02|03|04|20|29)\\b"),
			centurion.KindOverloaded, FaultNone},
		{regexp.MustCompile("(?i)(incorrect|invalid|missing|no) api[ _-]?key|invalid_api_key|authentication_error|\\bunauthorized\\b|" +
			"\\b(http|status)( status| code)?[ :=]{1,3}40[13]\\b"),
			centurion.KindAuth, FaultNone},
		{regexp.MustCompile("(?i)connection (refused|reset|closed|timed out)|no such host|network is unreachable|no route to host|" +
			"\\bi/o timeout\\b|tls handshake|socket hang up|\\b(econnreset|econnrefused|etimedout|enotfound)\\b|unexpected eof"),
			centurion.KindNetwork, FaultNone},
	}
})

// first returns the first non-zero value of an error's causes, from the outside in.
func first[T comparable](err error, of func(*centurion.Error) T) (said T) {
	var none T
	for said == none {
		e, ok := errors.AsType[*centurion.Error](err)
		if !ok {
			break
		}
		said, err = of(e), e.Err
	}
	return said
}

func status(err error) int { return first(err, func(e *centurion.Error) int { return e.Status }) }

func retryAfter(err error) time.Duration {
	return max(0, first(err, func(e *centurion.Error) time.Duration { return e.RetryAfter }))
}

// shape is an error in OpenCode's JSON format, which other programs pass on as text.
type shape struct {
	Name string `json:"name"`
	Data struct {
		Message    string `json:"message"`
		StatusCode int    `json:"statusCode"`
	} `json:"data"`
}

// shapeKinds are the names of errors that say enough.
var shapeKinds = map[string]centurion.Kind{
	"ProviderAuthError":    centurion.KindAuth,
	"MessageAbortedError":  centurion.KindCancelled,
	"ContextOverflowError": centurion.KindOverflow,
	"ContentFilterError":   centurion.KindRefusal,
}

// byShape reads {"name":…,"data":{"message":…,"statusCode":…}} from a text: only its fields count, not numbers or words elsewhere. It
// returns "" for a text of another form.
func byShape(text string) (centurion.Kind, Fault) {
	i := strings.Index(text, `{"name"`)
	if i < 0 {
		return "", FaultNone
	}
	var s shape
	if json.NewDecoder(strings.NewReader(text[i:])).Decode(&s) != nil || s.Name == "" {
		return "", FaultNone
	}
	return refine(cmp.Or(shapeKinds[s.Name], byStatus(s.Data.StatusCode)), s.Data.Message)
}
