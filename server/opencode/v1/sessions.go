package v1

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"centurion"
	"centurion/orchestrator/roots"
	"centurion/server"
)

// opening is the body of POST /session.
type opening struct {
	ParentID    string                  `json:"parentID"`
	Title       string                  `json:"title"`
	Agent       string                  `json:"agent"`
	Model       *centurion.SessionModel `json:"model"`
	Metadata    map[string]any          `json:"metadata"`
	Permission  []any                   `json:"permission"`
	WorkspaceID string                  `json:"workspaceID"`
}

// change is the body of PATCH /session/{id}.
type change struct {
	Title      *string        `json:"title"`
	Metadata   map[string]any `json:"metadata"`
	Permission []any          `json:"permission"`
	Time       *struct {
		Archived *float64 `json:"archived"`
	} `json:"time"`
}

func (p *Project) sessionRoutes() map[string]route {
	return map[string]route{
		"GET /session":        p.list,
		"POST /session":       p.open,
		"GET /session/status": p.states,
		"GET /session/{id}":   func(r *http.Request) (any, error) { s, err := p.session(r); return shownSession(s), err },
		"PATCH /session/{id}": p.change,
		"DELETE /session/{id}": func(r *http.Request) (any, error) {
			s, err := p.session(r)
			if err == nil {
				err = p.API().Remove(r.Context(), s.ID)
			}
			return true, err
		},
		"GET /session/{id}/children":          p.children,
		"GET /session/{id}/todo":              p.todo,
		"GET /session/{id}/message":           p.messages,
		"GET /session/{id}/message/{message}": p.message,
		"POST /session/{id}/fork":             p.fork,
	}
}

// session is the session that a request names.
func (p *Project) session(r *http.Request) (centurion.Session, error) {
	return p.sessionByID(r.Context(), r.PathValue("id"))
}

func (p *Project) sessionByID(ctx context.Context, id string) (centurion.Session, error) {
	none := &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no session " + id}
	if centurion.CheckID(centurion.PrefixSession, id) != nil {
		return centurion.Session{}, none
	}
	s, err := p.API().Session(ctx, id)
	if err == nil && !s.Metadata.Removed.IsZero() {
		return s, none
	}
	return s, err
}

func number(r *http.Request, name string) int64 {
	n, _ := strconv.ParseFloat(r.FormValue(name), 64) // what is no number counts as none
	return int64(max(n, 0))
}

// list lists sessions, the last changed first: the roots, unless children are wanted as well.
func (p *Project) list(r *http.Request) (any, error) {
	limit, only, search := int(number(r, "limit")), r.FormValue("roots") == "true", r.FormValue("search")
	all, err := p.API().Roots(r.Context(), roots.Query{Search: search, Since: number(r, "start"), Limit: limit, All: !only, Tasks: !only && search == ""})
	if err != nil {
		return nil, err
	}
	out := make([]sessionInfo, 0, len(all))
	for _, s := range all {
		out = append(out, shownSession(s))
	}
	if limit > 0 {
		out = out[:min(len(out), limit)]
	}
	return out, nil
}

func (p *Project) open(r *http.Request) (any, error) {
	b, err := read[opening](r)
	if err != nil {
		return nil, err
	}
	if b.ParentID != "" {
		if _, err := p.sessionByID(r.Context(), b.ParentID); err != nil {
			return nil, err
		}
	}
	o := roots.Opening{Title: b.Title, Agent: b.Agent, Below: b.ParentID}
	if o.Profile, err = p.ProfileOf(r.Context(), b.Agent); err != nil {
		return nil, err
	}
	if b.Model != nil {
		o.Model = b.Model.Provider + "/" + b.Model.ID
	}
	if err := p.checkModel(r.Context(), o.Model); err != nil {
		return nil, err
	}
	s, err := p.API().Open(r.Context(), o)
	return shownSession(s), err
}

func (p *Project) change(r *http.Request) (any, error) {
	b, err := read[change](r)
	if err != nil {
		return nil, err
	}
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	c := roots.Change{Title: b.Title}
	if b.Time != nil && b.Time.Archived != nil {
		at := int64(*b.Time.Archived)
		c.Archived = &at
	}
	if c.Title == nil && c.Archived == nil {
		return shownSession(s), nil
	}
	s, err = p.API().Change(r.Context(), s.ID, c)
	return shownSession(s), err
}

func (p *Project) children(r *http.Request) (any, error) {
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	all, err := p.API().Roots(r.Context(), roots.Query{All: true})
	if s.Metadata.Mission != "" && err == nil {
		var agents []centurion.Session
		agents, err = p.API().Sessions(r.Context(), s.Metadata.Mission)
		all = append(agents, all...)
	}
	out := []sessionInfo{}
	for _, child := range all {
		if shown := shownSession(child); shown.ParentID == s.ID {
			out = append(out, shown)
		}
	}
	return out, err
}

// todo are the items of the plan, for the root of its mission.
func (p *Project) todo(r *http.Request) (any, error) {
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	if s.ParentID != "" || s.Metadata.Mission == "" {
		return []any{}, nil
	}
	p.view.mu.Lock()
	todos, known := p.view.todos[s.Metadata.Mission]
	p.view.mu.Unlock()
	if known {
		return todos, nil
	}
	d, err := p.API().Todo(r.Context(), s.Metadata.Mission) // its plan has not changed since the server began
	return shownTodo(d), err
}

// messages are those of a session's current line, of which the newest can be asked for, or those before one.
func (p *Project) messages(r *http.Request) (any, error) {
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	all, err := p.API().Messages(r.Context(), s.ID)
	if err != nil {
		return nil, err
	}
	if before := r.FormValue("before"); before != "" {
		i := slices.IndexFunc(all, func(m server.Message) bool { return m.Info.ID == before })
		if i < 0 {
			return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "before: the session has no message " + before}
		}
		all = all[:i]
	}
	cursor := ""
	if limit := int(number(r, "limit")); limit > 0 && len(all) > limit {
		all = all[len(all)-limit:]
		cursor = all[0].Info.ID
	}
	out := make([]message, 0, len(all))
	for _, m := range all {
		out = append(out, p.shownMessage(m))
	}
	return paged{out, cursor, r.URL}, nil
}

func (p *Project) message(r *http.Request) (any, error) {
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	m, err := p.API().Message(r.Context(), s.ID, r.PathValue("message"))
	return p.shownMessage(m), err
}

func (p *Project) shownMessage(m server.Message) message {
	out := message{m.Info, []centurion.Part{}}
	for _, part := range m.Parts {
		out.Parts = append(out.Parts, p.shown(part))
	}
	return out
}

// fork copies a conversation up to the message before the one that is named.
func (p *Project) fork(r *http.Request) (any, error) {
	b, err := read[struct {
		Message string `json:"messageID"`
	}](r)
	if err != nil {
		return nil, err
	}
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	at := ""
	if b.Message != "" {
		m, err := p.API().Message(r.Context(), s.ID, b.Message)
		if err != nil {
			return nil, err
		}
		if at = m.Prev; at == "" {
			s, err = p.API().Open(r.Context(), roots.Opening{Agent: s.Agent, Profile: s.Metadata.Profile}) // nothing stands before it
			return shownSession(s), err
		}
	}
	copied, err := p.API().Fork(r.Context(), s.ID, at)
	if err != nil {
		return nil, err
	}
	title := s.Title + " (fork #1)"
	s, err = p.API().Change(r.Context(), copied.Session, roots.Change{Title: &title})
	return shownSession(s), err
}
