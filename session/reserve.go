package session

import (
	"context"

	"centurion"
	"centurion/provider"
	"centurion/store"
)

// Need describes a request before it is made.
type Need struct {
	Input  int64 // estimated tokens to send, on the safe side
	MaxOut int   // maximum tokens of the answer; 0 if unknown
}

// Cover permits a request.
type Cover struct {
	MaxOut int    // permitted tokens of the answer; 0 leaves it to the endpoint
	Done   func() // called when the request is over and its cost recorded; may be nil
}

// TokensOf estimates, on the safe side, the tokens of a text: a token of prose or code has about four bytes.
func TokensOf(bytes int) int64 { return int64(bytes+perToken-1) / perToken }

// need estimates the next request. The status is added, since it changes with each request.
func (s *Session) need(req provider.Request) Need {
	return Need{MaxOut: req.MaxOutput, Input: int64(s.size()) + TokensOf(s.status)}
}

// reserve asks whether a request may be made, and limits its answer. over is called when its cost is recorded.
func (s *Session) reserve(ctx context.Context, req *provider.Request, n Need) (over func(), err error) {
	if s.cfg.Reserve == nil {
		return func() {}, nil
	}
	cover, err := s.cfg.Reserve(ctx, n)
	if err != nil {
		return nil, err
	}
	req.MaxOutput = cover.MaxOut
	if cover.Done == nil {
		return func() {}, nil
	}
	return cover.Done, nil
}

// begin records the running calls of an answer in tx. Surplus calls do not run.
func (s *Session) begin(tx *store.Tx, a *answer) error {
	if len(a.calls) == 0 || a.finish != centurion.FinishToolCalls {
		return nil
	}
	may, why := len(a.calls), ""
	var err error
	switch {
	case s.last:
		may, why = 0, "this was the last request of the turn."
	case s.cfg.Calls != nil:
		may, why, err = s.cfg.Calls(tx, len(a.calls))
	}
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
