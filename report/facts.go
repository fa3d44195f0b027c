package report

import (
	"encoding/json"

	"centurion"
)

// decode reads the data of an event as T. Unknown fields are passed over; a field of another type stays empty, and the error tells
// of it.
func decode[T any](e centurion.Event) (T, error) {
	var v T
	err := json.Unmarshal(e.Data, &v)
	return v, err
}

// PlanItem is an item of the plan.
type PlanItem struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Agent  string   `json:"agent,omitempty"`
	After  []string `json:"after,omitempty"`
	Files  []string `json:"files,omitempty"`
	Verify []string `json:"verify,omitempty"`
	Status string   `json:"status"` // open, running, done, cancelled or blocked
}

// The types below are the parts of events' data that a report speaks of.
type (
	missionFact struct {
		Agent  string `json:"agent"`
		Reason string `json:"reason"`
	}
	todoFact struct {
		Items []PlanItem `json:"items"`
	}
	taskFact struct {
		Agent   string               `json:"agent"`
		Title   string               `json:"title"`
		Item    string               `json:"item"`
		Status  centurion.TaskStatus `json:"status"`
		Attempt int                  `json:"attempt"`
		Reason  string               `json:"reason"`
		Error   *centurion.TaskError `json:"error"`
		Result  string               `json:"result"`
	}
	messageFact struct {
		Role   string `json:"role"`
		Origin string `json:"origin"`
		Finish string `json:"finish"`
		Calls  int    `json:"calls"`
		Text   string `json:"text"`
	}
	queuedFact struct {
		Address string   `json:"address"`
		Origin  string   `json:"origin"`
		Agent   string   `json:"agent"` // of a message that was taken in
		Text    string   `json:"text"`
		Files   []string `json:"files"`
	}
	toolFact struct {
		Tool  string `json:"tool"`
		Error string `json:"error"`
	}
	sessionFact struct {
		Model string         `json:"model"`
		Kind  centurion.Kind `json:"kind"`
		Error string         `json:"error"`
	}
	modelFact struct {
		From   string `json:"from"`
		To     string `json:"to"`
		Reason string `json:"reason"`
		Error  string `json:"error"`
	}
	askFact struct {
		ID         string   `json:"id"`
		Type       string   `json:"type"`
		Permission string   `json:"permission"`
		Patterns   []string `json:"patterns"`
		Title      string   `json:"title"`
		Text       string   `json:"text"`
		Agent      string   `json:"agent"`
		Address    string   `json:"address"`
		Answer     string   `json:"answer"`
		By         string   `json:"by"`
	}
	retryFact struct {
		WaitMS int64  `json:"wait_ms"`
		Reason string `json:"reason"`
		Error  string `json:"error"`
	}
	returnFact struct {
		Cause   string   `json:"cause"`
		Reason  string   `json:"reason"`
		Files   []string `json:"files"`
		Command string   `json:"command"`
	}
	stallFact struct {
		SilentMS int64  `json:"silent_ms"`
		Last     string `json:"last"`
	}
	fenceFact struct {
		Attempt int    `json:"attempt"`
		Refused string `json:"refused"`
	}
	verifyFact struct {
		Command string `json:"command"`
		Early   bool   `json:"early"` // a check of the mission that its branch has not passed yet
		Error   string `json:"error"`
		Output  string `json:"output"`
	}
	mergeFact struct {
		Branch string   `json:"branch"`
		Files  []string `json:"files"`
		Person bool     `json:"person"` // onto the person's branch
	}
	abortFact struct {
		Reason string `json:"reason"`
	}
	budgetFact struct {
		Limit string `json:"limit"`
	}
)
