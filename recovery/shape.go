package recovery

import (
	"encoding/json"
	"strings"

	"centurion"
)

// shape is an error in OpenCode's JSON format, which other programs pass on as text.
type shape struct {
	Name string `json:"name"`
	Data struct {
		Message    string `json:"message"`
		StatusCode int    `json:"statusCode"`
	} `json:"data"`
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
	switch s.Name {
	case "ProviderAuthError":
		return centurion.KindAuth, FaultNone
	case "MessageAbortedError":
		return centurion.KindCancelled, FaultNone
	case "ContextOverflowError":
		return centurion.KindOverflow, FaultNone
	case "ContentFilterError":
		return centurion.KindRefusal, FaultNone
	}
	kind := byStatus(s.Data.StatusCode)
	if kind == "" || kind == centurion.KindInvalidRequest {
		if k, fault := byText(s.Data.Message, rejections); k != "" {
			return k, fault
		}
	}
	if kind == "" {
		kind, _ = byText(s.Data.Message, others)
	}
	return kind, FaultNone
}
