package session

import (
	"centurion"
	"centurion/provider"
	"centurion/store"
)

// Need is what a session knows of a request before it is made.
type Need struct {
	Input  int64 // tokens that are sent, estimated to the safe side
	MaxOut int   // tokens of the answer at most; 0 means that nobody knows
}

// Cover says that a request may be made.
type Cover struct {
	MaxOut int    // tokens that the answer may have; 0 leaves it to the endpoint
	Done   func() // is called when the request is over and what it cost is recorded; may be nil
}

// framing is how many bytes more than its text a message, a call or a tool takes in a request, roughly.
const framing = 64

// bytesOf is the size of what a model reads of a request.
func bytesOf(req provider.Request) int {
	n := framing + len(req.System)
	for _, m := range req.Messages {
		n += framing + len(m.Text) + len(m.Reasoning)
		for _, c := range m.Calls {
			n += framing + len(c.Name) + len(c.Arguments)
		}
	}
	return n + specBytes(req.Tools)
}

// specBytes is the size of what a model reads of its tools.
func specBytes(specs []provider.ToolSpec) int {
	n := 0
	for _, t := range specs {
		n += framing + len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// TokensOf estimates, to the safe side, how many tokens so many bytes are: a token of prose or code has about four.
func TokensOf(bytes int) int64 { return int64(bytes+2) / 3 }

// need estimates a request: what the last one and its answer had by the endpoint's own count, and what was added since;
// without a last one, all that is sent.
func (s *Session) need(req provider.Request) Need {
	n := Need{MaxOut: req.MaxOutput, Input: TokensOf(bytesOf(req))}
	switch last := s.lastTokens(); {
	case last > 0 && s.sent > 0:
		n.Input = last + TokensOf(max(0, bytesOf(req)-s.sent))
	case last > n.Input: // after a restart nobody knows what was added
		n.Input = last
	}
	return n
}

// lastTokens is what the newest answer and its request had.
func (s *Session) lastTokens() int64 {
	for i := len(s.history) - 1; i >= 0; i-- {
		if m := &s.history[i]; m.Role == centurion.RoleAssistant && m.Usage.Tokens.Total() > 0 {
			return m.Usage.Tokens.Total()
		}
	}
	return 0
}

// begin takes the running calls of an answer into the account, in tx. Those that are too many do not run.
func (s *Session) begin(tx *store.Tx, a *answer) error {
	if s.cfg.Calls == nil || len(a.calls) == 0 || a.finish != centurion.FinishToolCalls {
		return nil
	}
	may, why, err := s.cfg.Calls(tx, len(a.calls))
	if err != nil {
		return err
	}
	for n, i := range a.calls {
		st, started := a.msg.Parts[i].State, a.msg.Parts[i].State.Time.Start
		st.Status, st.Error, st.Time.End = centurion.ToolRunning, "", 0
		if n >= may {
			st.Status, st.Error, st.Time.End = centurion.ToolError, "Not run: "+why, started
		}
	}
	return nil
}
