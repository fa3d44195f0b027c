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

// input returns a call's arguments as a JSON object. Arguments that are none are kept as text under "raw", so that the
// history stays valid and the model sees in the error what it had sent.
func input(raw []byte) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		return canonical(raw)
	}
	b, _ := json.Marshal(map[string]string{"raw": string(raw)}) // a map of strings always marshals
	return b
}

var escaped = regexp.MustCompile(`\\(?:u003[ceCE]|u0026|u202[89]|.)`)

// canonical writes JSON the one way that it keeps from the stream through the store and back, without spaces and with
// signs such as < as themselves: a history that is loaded again has to be the same, byte by byte, as the one that a
// provider has in its cache.
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

// messageError gives an error OpenCode's shape.
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
