package lookup

import (
	"context"
	"testing"

	"centurion/server"
)

// named is an API with one mission and these tasks, oldest first.
type named struct {
	server.API
	tasks []server.Task
}

func (n named) Missions(context.Context) ([]server.Mission, error) {
	return []server.Mission{{ID: "msn_1"}}, nil
}

func (n named) Tasks(context.Context, string) ([]server.Task, error) { return n.tasks, nil }

// An item means the newest of its tasks, whatever the case.
func TestItemMeansItsNewestTask(t *testing.T) {
	api := named{tasks: []server.Task{{ID: "tsk_1", Name: "T2"}, {ID: "tsk_2", Name: "T2"}, {ID: "tsk_3", Name: "T3"}}}
	if id, err := ID(t.Context(), api, "t2"); id != "tsk_2" || err != nil {
		t.Errorf("t2 is %s, %v", id, err)
	}
}
