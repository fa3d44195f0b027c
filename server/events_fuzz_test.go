package server

import (
	"bytes"
	"encoding/json"
	"testing"

	"centurion"
)

// FuzzEvents reads the JSON lines of a host: nothing panics, and what was read can be told again.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"", "{}\n", "{\"seq\":1,\"type\":\"mission.started\",\"mission\":\"msn_1\",\"data\":{}}\n{\"seq\":2}", "{\"error\":{\"kind\":\"usage\",\"message\":\"m\"}}\n",
		"null\n", "[]\n", "{\"data\":\"ü\",\"time\":\"2026-01-01T00:00:00Z\"}\r\n", "{\"time\":7}\n", "\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		err := (&Client{}).readEvents(bytes.NewReader(b), func(e centurion.Event) bool {
			if _, err := json.Marshal(e); err != nil {
				t.Fatalf("%+v cannot be told: %v", e, err)
			}
			n++
			return true
		})
		if lines := bytes.Count(b, []byte("\n")) + 1; n > lines || err != nil && err.Error() == "" {
			t.Fatalf("%d events of %d lines, %v", n, lines, err)
		}
	})
}
