package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/provider"
	"centurion/store"
)

// The limits of compaction.
const (
	bigWindow  = 200_000 // tokens; larger windows keep bigBuffer free
	bigBuffer  = 20_000  // tokens
	perToken   = 3       // bytes; real texts have about four, so the estimate is on the safe side
	maxCompact = 3       // consecutive compactions without an answer
	minClip    = 200     // bytes; kept results are not shortened further
	minRoom    = 8_000   // bytes; for the summary of a short history and what is kept of it, if a person asks
)

// Buffer returns the tokens of a model's window to keep free for its answer and for errors of the estimate: the configured number if
// there is one, otherwise 20,000 of a window above 200,000 or a fifth of a smaller one. It is at most half of the window.
func Buffer(window, configured int) int {
	b := window / 5
	if window > bigWindow {
		b = bigBuffer
	}
	return min(cmp.Or(max(configured, 0), b), window/2)
}

// limit is the maximum size of a request in tokens, 0 if the window is unknown.
func (s *Session) limit() int {
	w := s.cfg.Window
	return w - max(Buffer(w, s.cfg.Buffer), min(s.cfg.MaxOut, w/2))
}

// size estimates the tokens of the next request: the number reported by the newest answer, plus a third of the bytes since. Without an
// answer of this model since the last compaction it is a third of all bytes.
func (s *Session) size() int {
	since := 0
	for i := len(s.history) - 1; i >= s.fresh; i-- {
		m := &s.history[i]
		if accepted(m) && m.Model == s.cfg.Ref && m.Usage.Tokens.Total() > 0 {
			return int(m.Usage.Tokens.Total()) + (since+resultBytes(m))/perToken
		}
		since += weight(m)
	}
	return s.fixed() + weightOf(s.history)/perToken
}

// fixed estimates the tokens of a request without its history.
func (s *Session) fixed() int {
	return size(provider.Request{System: s.rec.Metadata.Prompt(), Tools: s.specs}) + s.status/perToken
}

func size(req provider.Request) int { return int(estimate(req, 0).Input) * 4 / perToken }

// fit shortens the history if the next request would come too close to the model's limit, or if a compaction was requested.
func (s *Session) fit(ctx context.Context) error {
	why := ""
	if s.isAsked() {
		why = event.CompactedAsked
	} else if limit := s.limit(); limit > 0 && s.size() > limit {
		why = event.CompactedAuto
	}
	if why == "" {
		return nil
	}
	done, err := s.compact(ctx, why)
	if err != nil || !done {
		return err
	}
	return s.takeIn(ctx)
}

// isAsked reports whether a compaction was requested. Call it before writing the session's row, which records the request until it is
// done.
func (s *Session) isAsked() bool {
	if s.cfg.Asked != nil && s.cfg.Asked() {
		s.rec.Metadata.Compact = true
	}
	return s.rec.Metadata.Compact
}

// Compact shortens the history after the provider refused a request as too long. It may be called only between turns. The error has
// centurion.KindOverflow if nothing can be shortened, or after three compactions without an answer. Host.Before is called first, and
// its error is returned.
func (s *Session) Compact(ctx context.Context) error {
	if err := s.takeIn(ctx); err != nil {
		return err
	}
	_, err := s.compact(ctx, event.CompactedOverflow)
	return err
}

// ShortenAsked shortens the history if that was requested. It may be called only between turns.
func (s *Session) ShortenAsked(ctx context.Context) error {
	if !s.isAsked() {
		return nil
	}
	_, err := s.compact(ctx, event.CompactedAsked)
	return err
}

// Compacting reports whether the current cost is for a summary.
func (s *Session) Compacting() bool { return s.compacting }

// plan is a compaction before it is stored.
type plan struct {
	why     string
	before  int // estimated tokens of the next request
	target  int // its permitted tokens
	room    int // bytes for the summary and the kept messages
	gone    []centurion.Message
	kept    []centurion.Message
	changed []centurion.Part // parts of kept messages with shortened results
	midTurn bool

	text, quotes, record string
	byHost               bool
	usage                centurion.Usage
	asked                bool   // a model request was made
	over                 func() // called when its cost is recorded; nil without a request
}

// compact replaces the older part of the history by a summary, and reports whether it did: a request close to the limit is sent
// unchanged if little can be gained.
func (s *Session) compact(ctx context.Context, why string) (bool, error) {
	p, worth := s.plan(ctx, why)
	if why != event.CompactedAsked && (s.row >= maxCompact || !worth) {
		if why == event.CompactedAuto { // the estimate, or the configured window, may be wrong: the provider decides
			return false, nil
		}
		return false, s.tooLong(p.before)
	}
	if len(p.gone) == 0 && len(p.changed) == 0 { // what was asked for is done when there is something to shorten
		return false, nil
	}
	if why == event.CompactedAsked {
		s.rec.Metadata.Compact = false
	}
	s.compacting = true
	defer func() {
		s.compacting = false
		if p.over != nil {
			p.over()
		}
	}()
	if err := s.summarize(ctx, &p); err != nil {
		return false, errors.Join(err, s.storeSpent(ctx, &p))
	}
	if err := s.storeCompaction(ctx, &p); err != nil {
		if s.leaf != "" {
			err = errors.Join(err, s.storeSpent(ctx, &p))
		}
		return false, err
	}
	if now := s.size(); s.cfg.Window > 0 && now > s.cfg.Window {
		return true, s.tooLong(now)
	}
	return true, nil
}

// plan selects the messages to keep. It is worth doing if it makes the next request notably shorter.
func (s *Session) plan(ctx context.Context, why string) (p plan, worth bool) {
	p = plan{why: why, before: s.size(), target: s.limit()}
	half := p.before / 2
	switch {
	case why != event.CompactedAuto && p.target > 0:
		p.target = min(p.target, half) // the estimate was too low, or the compaction was not requested
	case p.target <= 0:
		p.target = half
	}
	tail := p.target / 3
	if s.cfg.Window > 0 && why == event.CompactedAuto {
		tail = s.cfg.Window / 4
	}
	fixed := s.fixed() * perToken
	if len(s.history) > 0 {
		fixed += weight(&s.history[0])
	}
	all := fixed + weightOf(s.history[min(1, len(s.history)):])
	bytes := func(tokens int) int { // text denser than estimated shows in the reported tokens
		return min(tokens*perToken, int(float64(tokens)*float64(all)/float64(max(p.before, 1))))
	}
	p.room = max(bytes(p.target)-fixed, bytes(p.target/8))
	if why == event.CompactedAsked {
		p.room = max(p.room, minRoom)
	}
	from := head(s.history)
	at := border(s.history, from, min(bytes(tail), p.room*2/3), p.room*2/3)
	if why == event.CompactedAsked && at <= from { // all of it is short
		if at = len(s.history); s.Due() && !s.Parks(ctx) {
			at = border(s.history, from, 0, p.room*2/3)
		}
	}
	if at > from { // a summary alone is not summarized again
		p.gone = s.history[min(1, at):at]
	}
	p.kept = s.history[at:]
	p.midTurn = at < len(s.history) && s.history[at].Role != centurion.RoleUser
	had := weightOf(s.history[min(1, at):])
	if len(p.gone) == 0 {
		had = weightOf(p.kept)
	}
	left := p.room - summaryBytes(p.room)
	now := weightOf(p.kept)
	for clip := 32 << 10; now > left && clip >= minClip; clip /= 2 {
		p.kept, p.changed = clipResults(s.history[at:], clip)
		now = weightOf(p.kept)
	}
	gain := had - now
	if len(p.gone) > 0 {
		gain -= summaryBytes(p.room)
	}
	return p, gain > bytes(p.target/10)
}

// summaryBytes is the maximum length of a summary: a quarter of the room, 12,000 bytes at most.
func summaryBytes(room int) int { return min(room/4, 12_000) }

func (s *Session) tooLong(tokens int) error {
	e := &centurion.Error{Op: "compact history", Kind: centurion.KindOverflow, Hint: "split the work into smaller items, or choose a model with a larger window",
		Msg: "the conversation has about " + centurion.Count(int(tokens), "token")}
	if s.cfg.Window > 0 {
		e.Msg += fmt.Sprintf(", the model's window %d", s.cfg.Window)
	}
	if s.row >= maxCompact {
		e.Msg += "; it was shortened " + centurion.Count(s.row, "time") + " in a row"
	} else {
		e.Msg += "; nothing is left to shorten"
	}
	return e
}

// storeCompaction stores the summary and the pointer to the kept messages in one transaction, and adopts them.
func (s *Session) storeCompaction(ctx context.Context, p *plan) error {
	u, a := s.compactionMessages(p)
	history := append([]centurion.Message{s.history[0], u, a}, p.kept...)
	v := Session{cfg: s.cfg, rec: s.rec, specs: s.specs, history: history, fresh: len(history), status: s.status}
	rec := s.spend(p.usage, time.Now().UnixMilli())
	held := s.cfg.Tools
	if s.cfg.Renewed != nil { // the cached prefix is paid anew anyway
		if now := s.cfg.Renewed(ctx, &rec); now != nil {
			held = now
			v.hold(held)
		}
		v.rec = rec
	}
	replaced := 0
	for i := range p.gone {
		if pointer(&p.gone[i]) == nil && !p.gone[i].Summary {
			replaced++
		}
	}
	after := v.size()
	err := s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		u.Prev, a.Prev = "", ""
		if err := putMessage(tx, &u); err != nil {
			return err
		}
		if s.leaf != "" && u.Prev != s.leaf {
			return s.overtaken()
		}
		if err := putMessage(tx, &a); err != nil {
			return err
		}
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
		if p.asked {
			if err := s.cfg.Host.Spent(tx, p.usage); err != nil {
				return err
			}
		}
		if err := Plugged(tx, &rec, s.rec.Metadata.Plugged); err != nil {
			return err
		}
		_, err := tx.Append(fact(&rec, centurion.EventCompacted, event.CompactedData{Message: a.ID, Reason: p.why,
			Before: int64(p.before), After: int64(after), Messages: replaced, Kept: len(p.kept), ByHost: p.byHost}))
		return err
	})
	if err != nil {
		return err
	}
	s.rec, s.history, s.fresh = rec, history, len(history)
	s.hold(held)
	s.row++
	failpoint.Hit(failpoint.CompactionStored)
	return nil
}

// storeSpent records the cost of an unused summary.
func (s *Session) storeSpent(ctx context.Context, p *plan) error {
	if p.usage.Tokens.Total() == 0 {
		return nil
	}
	rec := s.spend(p.usage, time.Now().UnixMilli())
	err := s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
		return s.cfg.Host.Spent(tx, p.usage)
	})
	if err == nil {
		s.rec = rec
	}
	return err
}

// compactionMessages makes the two messages of a compaction, in OpenCode's format.
func (s *Session) compactionMessages(p *plan) (u, a centurion.Message) {
	now := time.Now().UnixMilli()
	tail := ""
	if len(p.kept) > 0 {
		tail = p.kept[0].ID
	}
	u = centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: s.rec.ID, Role: centurion.RoleUser,
		Origin: centurion.OriginHost, Time: centurion.MessageTime{Created: now}, Agent: s.rec.Agent, Model: modelOf(&s.rec)}
	pointer := newPart(&u, centurion.PartCompaction)
	pointer.Compaction = &centurion.Compaction{Auto: p.why != event.CompactedAsked, Overflow: p.why == event.CompactedOverflow, Tail: tail, Clips: clipsOf(p.kept)}
	u.Parts = []centurion.Part{pointer}
	a = centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: s.rec.ID, Role: centurion.RoleAssistant, ParentID: u.ID,
		Time: centurion.MessageTime{Created: now, Completed: now}, Agent: s.rec.Agent, Model: s.cfg.Ref, Summary: true,
		Path: centurion.MessagePath{Cwd: s.cfg.Root, Root: s.cfg.Root}, Usage: p.usage, Finish: centurion.FinishStop}
	for i, text := range []string{p.text, p.quotes, p.record} {
		if text == "" {
			continue
		}
		part := newPart(&a, centurion.PartText)
		part.Text, part.Synthetic, part.Time = text, i > 0 || p.byHost, centurion.PartTime{Start: now, End: now}
		a.Parts = append(a.Parts, part)
	}
	return u, a
}
