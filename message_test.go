package centurion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion"
)

// LOOP-76: how an answer ended, and when, stands in the message under these words, which others read.
func TestFinishWords(t *testing.T) {
	for want, finish := range map[string]string{"stop": centurion.FinishStop, "tool-calls": centurion.FinishToolCalls, "cancelled": centurion.FinishCancelled,
		"length": centurion.FinishLength, "content-filter": centurion.FinishFilter, "error": centurion.FinishError, "unknown": centurion.FinishUnknown} {
		m := centurion.Message{Role: centurion.RoleAssistant, Finish: finish, Time: centurion.MessageTime{Created: 7, Completed: 9}}
		b, err := json.Marshal(m)
		if err != nil || !strings.HasSuffix(string(b), `"finish":"`+want+`"}`) || !strings.Contains(string(b), `"completed":9`) {
			t.Errorf("%s is written as %s, %v", want, b, err)
		}
	}
}
