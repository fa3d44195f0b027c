package v1

import (
	"net/http"

	"centurion"
)

// summarize shortens a session's history, and answers when the summary is there.
func (p *Project) summarize(r *http.Request) (any, error) {
	ctx := r.Context()
	b, err := read[struct {
		Provider string `json:"providerID"`
		Model    string `json:"modelID"`
	}](r)
	if err != nil {
		return nil, err
	}
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	mission := s.Metadata.Mission
	if mission == "" {
		return nil, &centurion.Error{Kind: centurion.KindConflict, Msg: "the session has no message yet"}
	}
	model := ""
	if b.Provider+b.Model != "" {
		model = centurion.ModelRef{Provider: b.Provider, ID: b.Model}.String()
	}
	if err := p.checkModel(ctx, model); err != nil {
		return nil, err
	}
	if model == s.Own().String() {
		model = "" // or the one that it has instead
	}
	if !p.works(mission) {
		p.tellStatus(mission, s.ID, busy)
		defer func() {
			if !p.works(mission) { // a message may have come meanwhile
				p.tellIdle(mission, s.ID)
			}
		}()
	}
	if err := p.API().Compact(ctx, s.ID, model); err != nil {
		return nil, err
	}
	return true, p.toldAll(ctx)
}

// works reports whether a mission is worked on, as far as clients know.
func (p *Project) works(mission string) bool {
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	return p.view.works[mission]
}
