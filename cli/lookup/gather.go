package lookup

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/server"
	"centurion/tui"
)

// Gather collects everything about one id, for people and as an object for scripts.
func Gather(ctx context.Context, api server.API, id string) (tui.Shown, any, error) {
	switch {
	case strings.HasPrefix(id, string(centurion.PrefixTask)+"_"):
		t, err := api.Task(ctx, id)
		if err != nil {
			return tui.Shown{}, nil, err
		}
		s := tui.Shown{Task: new(t.Noun())}
		object := struct {
			server.Task
			Given    *given           `json:"given,omitempty"`
			Messages []server.Message `json:"messages"`
		}{t, nil, []server.Message{}}
		if t.Session != "" {
			r, err := api.Session(ctx, t.Session)
			switch {
			case centurion.KindOf(err) == centurion.KindNotFound: // removed; the task itself is in the archive
				return s, object, nil
			case err != nil:
				return tui.Shown{}, nil, err
			}
			if object.Messages, err = api.Messages(ctx, t.Session); err != nil {
				return tui.Shown{}, nil, err
			}
			s.Session, s.Messages, object.Given = &r, Messages(object.Messages), givenTo(r, object.Messages)
		}
		return s, object, nil
	case strings.HasPrefix(id, string(centurion.PrefixSession)+"_"):
		r, err := api.Session(ctx, id)
		if err != nil {
			return tui.Shown{}, nil, err
		}
		s, err := account(ctx, api, r)
		if err != nil {
			return s, nil, err
		}
		msgs, err := api.Messages(ctx, r.ID)
		s.Messages = Messages(msgs)
		return s, struct {
			centurion.Session
			Own      centurion.Spent  `json:"own"`
			Total    centurion.Spent  `json:"total"`
			Counters counters         `json:"counters"`
			Given    *given           `json:"given,omitempty"`
			Messages []server.Message `json:"messages"`
		}{*s.Session, s.Own, s.Total, countersOf(r, msgs), givenTo(r, msgs), msgs}, err
	case strings.HasPrefix(id, string(centurion.PrefixMission)+"_"):
		p, err := read(ctx, api, id)
		return tui.Shown{Mission: new(p.Noun()), Tasks: Tasks(p.Board), Receipts: p.Receipts, Sessions: p.Sessions}, p, err
	}
	return tui.Shown{}, nil, unknownID("show", id)
}

// Messages converts messages to the root package's type.
func Messages(all []server.Message) []centurion.Message {
	out := make([]centurion.Message, len(all))
	for i, m := range all {
		out[i] = m.Info
		out[i].Parts, out[i].Origin, out[i].Prev = m.Parts, m.Origin, m.Prev
	}
	return out
}

// Tasks converts tasks to the root package's type.
func Tasks(all []server.Task) []centurion.Task {
	nouns := make([]centurion.Task, len(all))
	for i, t := range all {
		nouns[i] = t.Noun()
	}
	return nouns
}

// Asking returns the tasks of a mission that wait for the person, or none if that cannot be read: the list is useful without.
func Asking(ctx context.Context, api server.API, m server.Mission) map[string]bool {
	if !m.Status.Alive() {
		return nil
	}
	asks, err := api.Asks(ctx)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for _, a := range asks {
		if a.Mission == m.ID && a.Task != "" {
			out[a.Task] = true
		}
	}
	return out
}

// Doubts returns the tasks of a mission whose checks prove too little, or none if that cannot be read: the list is useful without.
func Doubts(ctx context.Context, api server.API, mission string) map[string]string {
	receipts, err := api.Receipts(ctx, mission)
	if err != nil {
		return nil
	}
	return tui.Doubts(receipts)
}

// given is what a session was given at its start, for scripts.
type given struct {
	Agent        string            `json:"agent"`
	AgentFile    string            `json:"agent_file,omitempty"`
	System       string            `json:"system"`
	SystemSHA256 string            `json:"system_sha256"`
	Files        []centurion.Given `json:"files"` // the shared texts in the first message
	First        string            `json:"first"` // the complete first message
}

func givenTo(r centurion.Session, messages []server.Message) *given {
	m := r.Metadata
	g := &given{Agent: r.Agent, AgentFile: m.AgentFile, System: m.System, SystemSHA256: tui.PromptHash(m.System), Files: m.Given}
	if g.Files == nil {
		g.Files = []centurion.Given{}
	}
	if len(messages) > 0 {
		for _, p := range messages[0].Parts {
			if p.Type == centurion.PartText {
				g.First += p.Text
			}
		}
	}
	return g
}

// counters are the totals of a session for scripts. They come from the stored answers, so they are never outdated.
type counters struct {
	Messages         int   `json:"messages"`
	PromptTokens     int64 `json:"prompt_tokens"`     // including those read from and written to the provider's cache
	CompletionTokens int64 `json:"completion_tokens"` // including reasoning
	// SummaryMessage is the id of the newest compaction's summary.
	SummaryMessage string `json:"summary_message,omitempty"`
}

func countersOf(r centurion.Session, messages []server.Message) counters {
	t := r.Tokens
	c := counters{Messages: len(messages), PromptTokens: t.Input + t.Cache.Read + t.Cache.Write, CompletionTokens: t.Output + t.Reasoning}
	for _, m := range slices.Backward(messages) {
		if m.Info.Summary {
			c.SummaryMessage = m.Info.ID
			break
		}
	}
	return c
}

// parts are a mission and everything stored about it.
type parts struct {
	server.Mission
	Board    []server.Task       `json:"board"`
	Receipts []centurion.Receipt `json:"receipts"`
	Sessions []centurion.Session `json:"sessions"`
}

func read(ctx context.Context, api server.API, id string) (p parts, err error) {
	if p.Mission, err = api.Mission(ctx, id); err == nil {
		p.Board, err = api.Tasks(ctx, p.ID)
	}
	if err == nil {
		p.Receipts, err = api.Receipts(ctx, p.ID)
	}
	if err == nil {
		p.Sessions, err = api.Sessions(ctx, p.ID)
	}
	return p, err
}

// account returns a session with its own usage and its children's. All sessions are read at once, after the mission, so that a parent's
// total always includes what its child has spent.
func account(ctx context.Context, api server.API, rec centurion.Session) (tui.Shown, error) {
	p, err := read(ctx, api, rec.Metadata.Mission)
	if err != nil {
		return tui.Shown{}, err
	}
	if i := slices.IndexFunc(p.Sessions, func(s centurion.Session) bool { return s.ID == rec.ID }); i >= 0 {
		rec = p.Sessions[i]
	}
	s := tui.Shown{Session: &rec}
	s.Own, s.Total = centurion.SpentBy(rec.ID, p.Noun(), p.Sessions, Tasks(p.Board))
	return s, nil
}
