package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"unicode/utf8"

	"centurion"
)

// input returns a call's arguments as a JSON object. Invalid ones are kept as text under "raw", so that the history stays valid and the
// model can see what it sent.
func input(raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		return canonical(raw)
	}
	b, _ := json.Marshal(map[string]string{"raw": string(raw)}) // a map of strings can always be marshalled
	return b
}

var escaped = regexp.MustCompile(`\\(?:u003[ceCE]|u0026|u202[89]|.)`)

// canonical normalizes JSON to a form that survives streaming and storing: without spaces, and with unescaped characters such as <. A
// reloaded history must be byte-identical to the one in a provider's cache.
func canonical(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	if !bytes.Contains(b.Bytes(), []byte(`\u`)) {
		return b.Bytes()
	}
	return escaped.ReplaceAllFunc(b.Bytes(), func(e []byte) []byte {
		if len(e) == 2 {
			return e
		}
		n, _ := strconv.ParseUint(string(e[2:]), 16, 16) // four hexadecimal digits
		return utf8.AppendRune(nil, rune(n))
	})
}

// messageError converts an error to OpenCode's format.
func messageError(err error, providerID string) *centurion.MessageError {
	data := centurion.MessageErrorData{Message: err.Error()}
	e, _ := errors.AsType[*centurion.Error](err)
	switch kind := centurion.KindOf(err); kind {
	case centurion.KindCancelled, centurion.KindInterrupted:
		return &centurion.MessageError{Name: "MessageAbortedError", Data: data}
	case centurion.KindAuth:
		data.ProviderID = providerID
		return &centurion.MessageError{Name: "ProviderAuthError", Data: data}
	case centurion.KindOverflow:
		return &centurion.MessageError{Name: "ContextOverflowError", Data: data}
	case centurion.KindRefusal:
		return &centurion.MessageError{Name: "ContentFilterError", Data: data}
	default:
		if e == nil || e.Status == 0 {
			return &centurion.MessageError{Name: "UnknownError", Data: data}
		}
		data.StatusCode = e.Status
		data.IsRetryable = new(kind == centurion.KindRateLimit || kind == centurion.KindOverloaded)
		return &centurion.MessageError{Name: "APIError", Data: data}
	}
}
