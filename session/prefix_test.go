package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// point is a moment at which a process may die: what is in the store then, and what the provider was asked last.
type point struct {
	stored []centurion.Message
	asked  *provider.Request // nil before the first request
	goes   int               // how often the person had said "Go on."
}

const goOn = "Go on."

// stage plays films to sessions and looks at what is asked after each way in which they can break off.
type stage struct {
	*rig
	wires []*provider.Client // chat completions, responses and messages
	reel  *reel
	films []film
	behind

	mu     sync.Mutex // protects what follows
	points []point    // one for each commit
	bases  []point    // one for each answer, before it
	steps  []int      // at which each answer's turn can be stopped
	asked  *provider.Request
	first  provider.Request
	after  bool   // the session goes on after it broke off
	goes   int    // how often the person has said "Go on."
	fault  string // the first that was found
	turns  int    // looked at
}

func newStage(t *testing.T) *stage {
	p := &stage{}
	run := func(name, out string, effect func(json.RawMessage) tools.Effect, err error) tool {
		return tool{name: name, effect: effect, run: func(ctx context.Context, _ *tools.Call, _ json.RawMessage) (tools.Result, error) {
			_ = p.reel.hit()
			switch name {
			case "write":
				if p.after {
					p.found("a call that is not to be repeated ran again")
				}
			case "slow":
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return tools.Result{}, context.Cause(ctx)
				}
			case "crash":
				panic("oh")
			}
			res := tools.Result{Output: out}
			if name == "camera" {
				res.Attachments = []centurion.File{picture(t, "b.png", 8, 8, 2)}
			}
			return res, err
		}}
	}
	p.rig = newRig(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "done"} }, run("noop", "noop", readOnly, nil),
		run("write", "written", writes, nil), run("fail", "", readOnly, errNo), run("crash", "", nil, nil), run("slow", "slow", nil, nil),
		run("camera", "shot", readOnly, nil))
	p.cfg.Media = centurion.Media{Image: true}
	for _, w := range []provider.Wire{nil, provider.Responses{}, anthropic.Wire{}} {
		p.wires = append(p.wires, provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: p.model.Client(), Wire: w, MaxRetries: -1}))
	}
	n := 0
	p.host.status = func() string { n++; return fmt.Sprint("told ", n) }
	return p
}

func (p *stage) found(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == "" {
		p.fault = fault
	}
}

// open loads a session whose model is m.
func (p *stage) open(t *rapid.T, id string, m session.Model) *session.Session {
	cfg := p.cfg
	cfg.Model = m
	s, err := session.Open(p.t.Context(), cfg, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// live plays all films to one session and writes down every point on the way.
func (p *stage) live(t *rapid.T) {
	p.points, p.bases, p.steps, p.asked, p.after, p.goes, p.fault = nil, nil, nil, nil, false, 0, ""
	id := p.create()
	p.behind = p.prologue(t, id)
	now := func() point {
		msgs, err := p.store.Messages(context.Background(), id)
		if err != nil {
			p.found(err.Error())
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return point{stored: msgs, asked: p.asked, goes: p.goes}
	}
	closed := func() {
		if len(p.bases) > len(p.steps) {
			p.steps = append(p.steps, p.reel.steps())
		}
	}
	p.reel = &reel{films: p.films, then: p.checks(nil, func() []string { return nil })}
	p.reel.asked = func(n int, req provider.Request) {
		closed()
		if n == 0 {
			p.first = req
		}
		if n < len(p.films) {
			p.bases = append(p.bases, now())
			p.mu.Lock()
			p.asked = &req
			p.mu.Unlock()
			p.bases[n].asked = &req
			if fault := wrong(req, p.first, p.due(p.bases[n].stored), p.words()); fault != "" {
				p.found(fault)
			}
		}
	}
	cfg := p.cfg
	cfg.Model, cfg.EveryEvent = p.reel, rapid.Bool().Draw(t, "every event")
	cfg.Policy = rapid.SampledFrom([]session.Policy{session.PolicyAuto, session.PolicySequential, session.PolicyConcurrent}).Draw(t, "policy")
	cfg.Fence = func(*store.Tx) error { // what the commit before this one has left
		at := now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.points = append(p.points, at)
		return nil
	}
	s, err := session.Open(p.t.Context(), cfg, id)
	if err != nil {
		t.Fatal(err)
	}
	for round := 0; p.reel.next < len(p.films); round++ {
		if round > 2*len(p.films) {
			t.Fatal("it comes to no end")
		}
		if !s.Due() {
			p.sayGoOn(t, s)
		}
		if _, err := s.Turn(p.t.Context()); err != nil && centurion.KindOf(err) == centurion.KindInvalidRequest {
			t.Fatal(err)
		}
	}
	closed()
	p.points = append(p.points, now())
}

// sayGoOn says it in the person's name.
func (p *stage) sayGoOn(t *rapid.T, s *session.Session) {
	if err := s.Say(p.t.Context(), centurion.OriginPerson, goOn); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.goes++
}

// words are what a request has to bring in the person's name.
func (p *stage) words() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.told), slices.Repeat([]string{goOn}, p.goes)...)
}

// due returns the calls that a request has to bring when so much is stored: those of the answers that were taken as whole.
func (p *stage) due(stored []centurion.Message) []string {
	names, n := slices.Clone(p.behind.due), -p.answers
	for _, m := range stored {
		if m.Role != centurion.RoleAssistant {
			continue
		}
		if n >= 0 && n < len(p.films) && p.films[n].done && m.Finish != "" {
			names = append(names, p.films[n].calls()...)
		}
		n++
	}
	return names
}

// plant stores copies of sessions as they were at some points, and returns their ids.
func (p *stage) plant(t *rapid.T, at ...point) (ids []string) {
	err := p.store.Update(p.t.Context(), func(tx *store.Tx) error {
		ids = nil
		for _, pt := range at {
			rec := session.New(centurion.Session{Agent: "worker", Model: &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider},
				Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1", Address: "0/1", System: system}}, centurion.Now())
			ids = append(ids, rec.ID)
			if err := tx.PutSession(&rec); err != nil {
				return err
			}
			renamed := map[string]string{}
			for _, old := range pt.stored {
				m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: rec.ID, Role: old.Role, Origin: old.Origin,
					ParentID: renamed[old.ParentID], Time: old.Time, Agent: old.Agent, Model: old.Model, Path: old.Path, Usage: old.Usage,
					Finish: old.Finish, Error: old.Error, Summary: old.Summary}
				renamed[old.ID] = m.ID
				if err := tx.PutMessage(&m); err != nil {
					return err
				}
				for _, part := range old.Parts {
					if c := part.Compaction; c != nil {
						part.Compaction = &centurion.Compaction{Auto: c.Auto, Tail: renamed[c.Tail]}
					}
					part.ID, part.SessionID, part.MessageID = centurion.NewID(centurion.PrefixPart), rec.ID, m.ID
					if err := tx.PutPart(&part); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// looker answers the first request that comes after a break, and looks at it.
type looker struct {
	stage *stage
	asked *provider.Request // before the break
	due   func() []string
}

func (p *stage) checks(asked *provider.Request, due func() []string) looker {
	return looker{p, asked, due}
}

func (l looker) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		if due := l.due(); due != nil || l.asked != nil {
			if fault := wrong(req, l.stage.first, due, l.stage.words()); fault != "" {
				l.stage.found(fault)
			} else if fault := l.stage.refused(ctx, l.asked, req); fault != "" {
				l.stage.found(fault)
			}
		}
		_ = yield(provider.Delta{Type: provider.Text, Text: "done"}, nil) && yield(provider.Delta{Type: provider.Done, Finish: centurion.FinishStop}, nil)
	}
}

// refused sends what was asked before and what is asked now over one of the wires, to a provider that checks both and how
// they follow, and returns what it has against them.
func (p *stage) refused(ctx context.Context, before *provider.Request, now provider.Request) string {
	p.turns++
	wire := p.wires[p.turns%len(p.wires)]
	for i, req := range []*provider.Request{before, &now} {
		if req == nil {
			continue
		}
		q := *req
		q.Session = fmt.Sprint("point ", p.turns)
		for _, err := range wire.Stream(ctx, q) {
			if err != nil {
				return fmt.Sprintf("request %d over wire %d: %v", i, p.turns%len(p.wires), err)
			}
		}
	}
	return ""
}

// goOn lets a session take its next turn after a break.
func (p *stage) goOn(t *rapid.T, s *session.Session, what string, say bool) {
	p.after = true
	defer func() { p.after = false }()
	if say || !s.Due() {
		p.sayGoOn(t, s)
	}
	if _, err := s.Turn(p.t.Context()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if p.fault != "" {
		t.Fatalf("%s: %s", what, p.fault)
	}
}

// breakOff plays one answer up to a step, stops there, and goes on.
func (p *stage) breakOff(t *rapid.T, id string, n, step int, abort bool) {
	what := fmt.Sprintf("answer %d, step %d of %d, abort %v", n, step, p.steps[n], abort)
	f := p.films[n]
	p.goes = p.bases[n].goes
	ctx, cancel := context.WithCancelCause(p.t.Context())
	defer cancel(nil)
	due := p.due(p.bases[n].stored)
	if f.done && step > len(f.deltas) {
		due = append(slices.Clone(due), f.calls()...)
	}
	p.reel = &reel{films: []film{f}, then: p.checks(p.bases[n].asked, func() []string { return due })}
	p.reel.stop = func(at int) error {
		switch {
		case at != step:
		case abort:
			cancel(centurion.ErrCancelled)
			return centurion.ErrCancelled
		default:
			return errCut
		}
		return nil
	}
	s := p.open(t, id, p.reel)
	_, err := s.Turn(ctx)
	p.reel.stop = nil
	if err == nil && step <= len(f.deltas) {
		t.Fatalf("%s: the turn ended well", what)
	}
	p.answered(t, id, what)
	if step%2 == 0 {
		s = p.open(t, id, p.reel)
	}
	p.goOn(t, s, what, step/2%2 == 0)
}

// answered looks whether every call of a session whose turn has ended has its result in the store.
func (p *stage) answered(t *rapid.T, id, what string) {
	stored, err := p.store.Messages(p.t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range stored {
		for _, c := range calls(m) {
			if m.Finish == "" || !c.State.Ended() {
				t.Fatalf("%s: the call of %s is stored as %s, finish %q", what, c.Tool, c.State.Status, m.Finish)
			}
		}
	}
}

// Whatever the model answers, and wherever it breaks off, what is asked next is valid, for every API: for each prefix of the
// pieces of each answer, followed by an abort or by a cut of the stream, with and without a new process, and for each state
// that the store goes through, followed by a new process; all that with files and compactions in the history, too. A turn that has ended has left no call without a result in the store. Each call of an answer that was whole is answered exactly once, and
// directly after it, with what came of it; no call of a half answer is there; nothing runs twice; the system prompt and the
// tools are those of before; and what the person said is told word by word, once, also what a compaction has kept.
//
// OPAL-24, OPAL-25, OPAL-65, LOOP-25, LOOP-33, LOOP-35, LOOP-36, LOOP-41, LOOP-45, LOOP-46, LOOP-80, LOOP-88
func TestEveryPrefixStaysValid(t *testing.T) {
	p := newStage(t)
	const enough = 400 // requests after a break: some seconds
	failing := false   // what fails is tried again, as often as it takes to make it smaller
	rapid.Check(t, func(rt *rapid.T) {
		if p.turns > enough && !failing {
			return
		}
		failing = true
		p.films = films(rt)
		p.live(rt)
		if p.fault != "" {
			rt.Fatal(p.fault)
		}
		for i, id := range p.plant(rt, p.points...) {
			at := p.points[i]
			due := p.due(at.stored)
			p.goes = at.goes
			s := p.open(rt, id, p.checks(at.asked, func() []string { return due }))
			p.goOn(rt, s, fmt.Sprintf("killed after commit %d", i), i%2 == 0)
		}
		var starts []point
		for n := range p.bases {
			for range p.steps[n] + min(p.steps[n], len(p.films[n].deltas)) {
				starts = append(starts, p.bases[n])
			}
		}
		ids := p.plant(rt, starts...)
		for n := range p.bases {
			for step := 1; step <= p.steps[n]; step++ {
				p.breakOff(rt, ids[0], n, step, true)
				if ids = ids[1:]; step <= len(p.films[n].deltas) {
					p.breakOff(rt, ids[0], n, step, false)
					ids = ids[1:]
				}
			}
		}
		failing = false
	})
	t.Logf("%d requests after a break", p.turns)
}
