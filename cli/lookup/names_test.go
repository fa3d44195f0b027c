package lookup

import (
	"context"
	"fmt"
	"testing"

	"centurion"
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
	api := named{tasks: []server.Task{{ID: "tsk_1", Item: "T2"}, {ID: "tsk_2", Item: "T2"}, {ID: "tsk_3", Item: "T3"}}}
	if id, err := ID(t.Context(), api, "t2"); id != "tsk_2" || err != nil {
		t.Errorf("t2 is %s, %v", id, err)
	}
}

// In a race each try has a name of its own; the item means the one that was merged, as long as none is, the newest.
func TestNamesInARace(t *testing.T) {
	try := func(n int, lost bool) server.Task {
		return server.Task{ID: fmt.Sprint("tsk_", n), Item: "T2", Race: &centurion.Race{ID: "tsk_1", Try: n, Lost: lost}}
	}
	for name, test := range map[string]struct {
		tasks       []server.Task
		typed, want string
	}{
		"a try":            {[]server.Task{try(1, false), try(2, false)}, "t2/1", "tsk_1"},
		"while they try":   {[]server.Task{try(1, false), try(2, false)}, "T2", "tsk_2"},
		"the merged one":   {[]server.Task{try(1, false), try(2, true), try(3, true)}, "T2", "tsk_1"},
		"a lost one":       {[]server.Task{try(1, false), try(2, true)}, "T2/2", "tsk_2"},
		"what came after":  {[]server.Task{try(1, false), try(2, true), {ID: "tsk_9", Item: "T2"}}, "T2", "tsk_9"},
		"what came before": {[]server.Task{{ID: "tsk_9", Item: "T2"}, try(1, true), try(2, false)}, "T2", "tsk_2"},
	} {
		if id, err := ID(t.Context(), named{tasks: test.tasks}, test.typed); id != test.want || err != nil {
			t.Errorf("%s: %s is %s, %v", name, test.typed, id, err)
		}
	}
}
