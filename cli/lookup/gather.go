package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/server"
	"centurion/tui"
)

// Account is a session with what it has used up itself and with its children. The sessions are read in one go, and after
// the mission: what a child has spent is never left out of what its parent has.
func Account(ctx context.Context, api server.API, rec centurion.Session) (tui.Shown, error) {
	m, err := api.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return tui.Shown{}, err
	}
	tasks, err := api.Tasks(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, err
	}
	all, err := api.Sessions(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, err
	}
	if i := slices.IndexFunc(all, func(s centurion.Session) bool { return s.ID == rec.ID }); i >= 0 {
		rec = all[i]
	}
	s := tui.Shown{Session: &rec}
	s.Own, s.Total = centurion.SpentBy(rec.ID, m.Noun(), all, Tasks(tasks))
	return s, nil
}

// Gather collects what belongs to one id, for people and as the object for scripts.
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
			case centurion.KindOf(err) == centurion.KindNotFound: // it was removed; the task itself is in the archive
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
		s, err := Account(ctx, api, r)
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
		return gatherMission(ctx, api, id)
	}
	return tui.Shown{}, nil, &centurion.Error{Op: "show", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not the id of a mission, task or session", id),
		Hint: "ids begin with msn_, tsk_ or ses_; see: centurion ps, centurion tasks"}
}

func gatherMission(ctx context.Context, api server.API, id string) (tui.Shown, any, error) {
	m, err := api.Mission(ctx, id)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	tasks, err := api.Tasks(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	receipts, err := api.Receipts(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, nil, err
	}
	sessions, err := api.Sessions(ctx, m.ID)
	return tui.Shown{Mission: new(m.Noun()), Tasks: Tasks(tasks), Receipts: receipts, Sessions: sessions}, struct {
		server.Mission
		Board    []server.Task       `json:"board"`
		Receipts []centurion.Receipt `json:"receipts"`
		Sessions []centurion.Session `json:"sessions"`
	}{m, tasks, receipts, sessions}, err
}

func Messages(all []server.Message) []centurion.Message {
	out := make([]centurion.Message, len(all))
	for i, m := range all {
		out[i] = m.Info
		out[i].Parts, out[i].Origin, out[i].Prev = m.Parts, m.Origin, m.Prev
	}
	return out
}

func Tasks(all []server.Task) []centurion.Task {
	nouns := make([]centurion.Task, len(all))
	for i, t := range all {
		nouns[i] = t.Noun()
	}
	return nouns
}

// Asking finds the tasks of a mission that wait for the person. They are left out where that cannot be read: the list is of use without.
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

// Doubts finds the tasks of a mission whose checks prove too little. They are left out where that cannot be read: the list is of use without.
func Doubts(ctx context.Context, api server.API, mission string) map[string]string {
	receipts, err := api.Receipts(ctx, mission)
	if err != nil {
		return nil
	}
	return tui.Doubts(receipts)
}

// given is, for scripts, what a session was given when it began.
type given struct {
	Agent        string            `json:"agent"`
	AgentFile    string            `json:"agent_file,omitempty"`
	System       string            `json:"system"`
	SystemSHA256 string            `json:"system_sha256"`
	Files        []centurion.Given `json:"files"` // the shared texts that stand in the first message
	First        string            `json:"first"` // the first message whole
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

// counters are the totals of a session for scripts. They come from what is stored with each answer, so they are never behind it.
type counters struct {
	Messages         int   `json:"messages"`
	PromptTokens     int64 `json:"prompt_tokens"`     // what came from the provider's cache and went there among them
	CompletionTokens int64 `json:"completion_tokens"` // reasoning among them
	// SummaryMessage is the id of the summary that the newest compaction made.
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
