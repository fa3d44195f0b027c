package orchestrator

import (
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// O7: an answer that the provider's content filter ended, or that was cut off at the output limit again and again, is no end of a mission,
// and neither is a turn that repeats one call: the person is told what happened.
func TestNoEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		answer scripted.Answer
		status centurion.MissionStatus
		reason string
		asked  int
	}{
		"content filter": {scripted.Answer{Say: "All is done", Finish: "content_filter"}, centurion.MissionFailed, "the provider's content filter ended the answer", 1},
		"output limit":   {scripted.Answer{Say: "All is", Finish: "length"}, centurion.MissionBlocked, "The commander was cut off at its output limit 4 times in a row", 4},
		"same call":      {do(call("ls", args{})), centurion.MissionBlocked, "The commander has called ls 20 times in a row with the same arguments and the same result", 20},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return tt.answer }}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, tt.status, tt.reason)
				equal(t, "requests", len(r.requests("commander")), tt.asked)
			})
		})
	}
}
