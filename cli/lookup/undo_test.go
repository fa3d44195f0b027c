package lookup

import (
	"context"
	"errors"
	"testing"
	"time"

	"centurion"
	"centurion/server"
	"centurion/takeover"
)

// merged is an API with these missions, each of which can be undone.
type merged struct {
	server.API
	missions []server.Mission
}

func (m merged) Missions(context.Context) ([]server.Mission, error) { return m.missions, nil }

func (m merged) Undo(context.Context, string, takeover.UndoRequest) (takeover.UndoReport, error) {
	return takeover.UndoReport{}, nil
}

// The latest work is what came last to the person's branch, not what was begun last.
func TestUndoableIsMergedLast(t *testing.T) {
	at := func(sec int64) centurion.Time { return centurion.Time{Time: time.Unix(sec, 0)} }
	mission := func(id string, started, landed int64) server.Mission {
		m := server.Mission{}
		m.ID, m.Started, m.Merged = id, at(started), &centurion.Merged{Time: at(landed)}
		return m
	}
	api := merged{missions: []server.Mission{mission("msn_1", 10, 40), mission("msn_2", 20, 30)}}
	if m, _, err := Undoable(t.Context(), api, takeover.UndoRequest{}); m.ID != "msn_1" || err != nil {
		t.Errorf("found %s, %v", m.ID, err)
	}
}

// unreadable is an API of which no mission can be read.
type unreadable struct{ server.API }

func (unreadable) Mission(context.Context, string) (server.Mission, error) {
	return server.Mission{}, errors.New("broken pipe")
}

// Who has answered is told to resume only what is known not to run.
func TestIsReadUnlessKnownOtherwise(t *testing.T) {
	if !IsRead(t.Context(), unreadable{}, "msn_1") {
		t.Error("a mission that cannot be read is taken for one that does not run")
	}
}
