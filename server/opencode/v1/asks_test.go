package v1

import (
	"testing"

	"centurion/event"
	"centurion/store"
)

// A choice is answered with the word that the host knows; anything else is what the person wrote, and nothing is an answer, too.
func TestSpoken(t *testing.T) {
	plan, allow := store.Ask{Type: store.AskPlan}, store.Ask{Type: store.AskPermission}
	question := store.Ask{Type: store.AskQuestion, Options: []string{"A", "B"}}
	for _, c := range []struct {
		name  string
		ask   store.Ask
		given [][]string
		want  string
	}{
		{"a plan is run", plan, [][]string{{"Run it"}}, "run"},
		{"a plan is left", plan, [][]string{{"Not now"}}, "quit"},
		{"allowed", allow, [][]string{{"Allow once"}}, "once"},
		{"always", allow, [][]string{{"Always allow"}}, "always"},
		{"refused", allow, [][]string{{"Reject"}}, "reject"},
		{"a choice", question, [][]string{{"B"}}, "B"},
		{"of their own", question, [][]string{{"C"}}, "C"},
		{"more than one", question, [][]string{{"A"}, {"B"}}, "A, B"},
		{"a choice and more", plan, [][]string{{"Run it", "but later"}}, "Run it, but later"},
		{"nothing", question, [][]string{{}}, event.NoAnswer},
		{"no list", question, nil, event.NoAnswer},
	} {
		if got := spoken(c.ask, c.given); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
