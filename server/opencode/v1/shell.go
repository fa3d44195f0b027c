package v1

import (
	"context"
	"net/http"

	"centurion"
)

// shellCommand is the body of POST /session/{id}/shell. The command is the person's: its agent and model only say who is asked next.
type shellCommand struct {
	MessageID string              `json:"messageID"`
	Agent     string              `json:"agent"`
	Model     *centurion.ModelRef `json:"model"`
	Command   string              `json:"command"`
}

func (p *Project) shellRoutes() map[string]route {
	return map[string]route{
		"POST /session/{id}/shell": func(r *http.Request) (any, error) {
			b, err := read[shellCommand](r)
			if err != nil {
				return nil, err
			}
			s, err := p.session(r)
			if err == nil {
				_, err = p.ProfileOf(r.Context(), b.Agent)
			}
			if err != nil {
				return nil, err
			}
			m, err := p.API().Shell(r.Context(), s.ID, b.Command)
			if err != nil {
				return nil, asBusy(s.ID, err)
			}
			return p.shownMessage(m), p.toldAll(r.Context())
		},
	}
}

// toldAll waits until all facts that there are were told.
func (p *Project) toldAll(ctx context.Context) error {
	seq, err := p.API().LastSeq(ctx)
	if err == nil {
		_ = p.told.Await(ctx, seq) // a client that leaves is told nothing
	}
	return err
}
