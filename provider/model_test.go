package provider

import (
	"encoding/json"
	"net/http"
	"testing"

	"centurion"
)

// LOOP-88, LOOP-89: a client says which model it asks and how much that takes, and asks it for an answer to the messages with the
// tools that it is given.
func TestModel(t *testing.T) {
	var got struct {
		Model    string
		Stream   bool
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	wire := pipeServer(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := json.NewDecoder(q.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		write(w, done)
	}))
	c := New(Endpoint{Model: centurion.ModelRef{Provider: "acme", ID: "large"}, Limits: Limits{Context: 64_000, Output: 8_000}, BaseURL: "http://model.test/v1", HTTP: wire})
	r := collect(t, t.Context(), c, Request{Messages: []Message{{Role: User, Text: "hi"}}, Tools: []ToolSpec{{Name: "ls", Schema: []byte(`{"type":"object"}`)}}})
	if r.err != nil || r.dones != 1 {
		t.Fatalf("%+v", r)
	}
	m := c.Model()
	if m.Context != 64_000 || m.Output != 8_000 {
		t.Errorf("it says that the model takes %d tokens and gives %d", m.Context, m.Output)
	}
	if m.String() != "acme/large" || got.Model != m.ID || !got.Stream {
		t.Errorf("it says that it asks %s, and asks %q, as a stream: %v", m, got.Model, got.Stream)
	}
	if len(got.Messages) != 1 || got.Messages[0].Content != "hi" || len(got.Tools) != 1 || got.Tools[0].Function.Name != "ls" {
		t.Errorf("it is sent %+v", got)
	}
}
