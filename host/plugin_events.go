package host

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"centurion"
	"centurion/guard"
	"centurion/server"
	"centurion/server/opencode"
	v1 "centurion/server/opencode/v1"
)

// tellEvents tells what happens in a project by OpenCode's events, until ctx ends. Of a reader that is too slow some are lost.
func (h *Host) tellEvents(ctx context.Context, tell func(event json.RawMessage)) error {
	all := &opencode.Hub{}
	p := &v1.Project{Directory: h.workspace.Dir(), Version: h.how.Version, API: func() server.API { return h.api }, Files: h.workspace, Note: func(string) {}, All: all,
		Follow: func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			return h.api.Events(ctx, q)
		}}
	ctx, end := context.WithCancel(ctx)
	var group guard.Group
	group.Go("events of plugins", func() error {
		defer end()
		return p.Run(ctx)
	})
	for reader := all.Reader(); ; {
		text, err := reader.Next(ctx)
		if errors.Is(err, opencode.ErrBehind) {
			reader = all.Reader()
			continue
		}
		if err != nil {
			end()
			_ = group.Wait() // the plugins miss what comes
			return nil
		}
		var e struct {
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(text, &e) == nil {
			tell(e.Payload)
		}
	}
}
