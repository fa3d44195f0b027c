// Package recovery decides what a session's failure means. It is pure: facts in, a decision and its reason out. It owns no clock, no
// counter and no session; the caller keeps a [Streak] per session, waits, and carries out the decision.
//
// The decision by the kind of the error (see [Classify] for how the kind is found):
//
//	kind                                  first                       again                      at the limit
//	cancelled, interrupted                none                        none                       none
//	rate_limit                            retry after Retry-After     fallback, else the same    fallback, else ask
//	                                      or 30 s, doubling
//	overloaded                            retry after 5 s             10 s, 20 s, …              fallback, else give up
//	network, stream_cut, stall,           retry after 5 s             retry after 5 s            fallback, else give up
//	crashed, conflict, internal
//	no_answer                             retry after 5 s             inject a prompt            fallback, else give up
//	tool result missing, thinking         inject a prompt             inject a prompt            fallback, else give up
//	block order (an invalid_request)
//	overflow                              compact                     compact                    fallback, else give up
//	refusal, other invalid_request        fallback, else give up
//	model_not_found                       fallback, else ask
//	auth                                  fallback at another         -
//	                                      provider, else ask
//	budget, disk                          ask, also for a task
//	timeout, verify, permission, config,  give up
//	usage, not_found, state
//
// A session is recovered 3 times in a row: its fourth failure is at the limit, and a good answer ends the streak. A streak of rate
// limits counts as one failure, because waiting is not failing, and has its own limit, 8. Where the table only says "ask", a task gives
// up instead: its parent is told, and the mission's own session asks. Giving up and asking always come with a reason and a hint for the
// report of the fatal failure.
package recovery

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"centurion"
)

// The defaults of a [Policy].
const (
	DefaultMaxAttempts   = 3                // recoveries in a row that one session gets
	DefaultCooldown      = 5 * time.Second  // between two attempts
	DefaultRateLimitWait = 30 * time.Second // the first wait for a rate limit without a time; doubles
	DefaultMaxRateLimits = 8                // rate limits in a row: doubling, about 45 minutes in total
	DefaultMaxWait       = 10 * time.Minute // the longest wait reached by doubling
	DefaultMaxRetryAfter = time.Hour        // a provider that asks for more is not waited for
)

// patience is the longest wait for the end of a limit that a [Failure] is patient about.
const patience = 24 * time.Hour

// Policy holds the limits of recovery. The zero Policy has the defaults.
type Policy struct {
	MaxAttempts   int
	Cooldown      time.Duration
	RateLimitWait time.Duration
	MaxRateLimits int
	MaxWait       time.Duration
	MaxRetryAfter time.Duration
}

// Failure is a failure and its context.
type Failure struct {
	Err        error
	Attempt    int           // failures of this session in a row, including this one: Streak.Attempts
	RateLimits int           // rate limits of this session in a row, including this one: Streak.RateLimits
	Since      time.Duration // since the session's previous attempt started, which shortens the cooldown; 0 if unknown
	Patient    bool          // a limit is that of a person's plan, which ends at a time of the day: it is waited for up to a day
	Task       bool          // the session works on a delegated task; otherwise it is a mission's own
	Recovering bool          // an earlier failure of this session is being recovered, and this is part of it
	Model      string        // provider/model that failed
	Fallbacks  []string      // provider/model of those not tried in this streak, in order of preference
}

// Action is how to respond to a failure.
type Action string

// The actions. Retry, Inject, Compact and Fallback continue the session after Decision.Wait.
const (
	None      Action = "none"       // nothing: it was intended, or it is already being done
	Retry     Action = "retry"      // make the same request again
	Inject    Action = "inject"     // add Prompt as a message of the host, then continue
	Compact   Action = "compact"    // shorten the history, then continue
	Fallback  Action = "fallback"   // continue with Model
	AskPerson Action = "ask_person" // stop until a person has fixed something outside
	GiveUp    Action = "give_up"    // the session has failed
)

// Fatal reports whether this action ends the session and must be reported.
func (a Action) Fatal() bool { return a == AskPerson || a == GiveUp }

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Wait   time.Duration  // before the action; the slot is released meanwhile
	Prompt string         // of Inject
	Model  string         // of Fallback
	Kind   centurion.Kind // of the failure
	Reason string         // for people, one line
	Hint   string         // the next step for a person; never empty if the action is fatal
}

// Streak counts a session's consecutive failures. The zero Streak is that of a healthy session; a good answer resets it.
type Streak struct {
	Attempts   int
	RateLimits int
}

// After returns the streak with one more failure. Consecutive rate limits count as one attempt; intended ends (a cancellation, a
// shutdown) do not count.
func (s Streak) After(err error) Streak {
	switch kind, _ := Classify(err); kind {
	case "", centurion.KindCancelled, centurion.KindInterrupted:
	case centurion.KindRateLimit:
		if s.RateLimits == 0 {
			s.Attempts++
		}
		s.RateLimits++
	default:
		s.Attempts++
		s.RateLimits = 0
	}
	return s
}

// Decide decides about f. It has an answer for every failure.
func (p Policy) Decide(f Failure) Decision {
	p = p.withDefaults()
	kind, fault := Classify(f.Err)
	d := p.decide(f, kind, fault)
	d.Kind = kind
	if d.Action.Fatal() {
		d.Hint = cmp.Or(centurion.HintOf(f.Err), d.Hint, "see `centurion logs` for what happened, then `centurion resume`")
	}
	return d
}

func (p Policy) decide(f Failure, kind centurion.Kind, fault Fault) Decision {
	switch kind {
	case "":
		return Decision{Action: None, Reason: "nothing failed"}
	case centurion.KindCancelled, centurion.KindInterrupted:
		return Decision{Action: None, Reason: string(kind) + ": this was wanted and is not recovered"}
	}
	if f.Recovering {
		return Decision{Action: None, Reason: "a recovery of this session is already under way"}
	}
	switch kind {
	case centurion.KindRateLimit:
		return p.rateLimit(f)
	case centurion.KindOverflow:
		return p.overflow(f)
	case centurion.KindInvalidRequest:
		if fault == FaultNone {
			return orFallback(f, end(f, GiveUp, "the provider rejected the request"), f.Fallbacks)
		}
		return p.bounded(f, Decision{Action: Inject, Prompt: prompts[fault], Reason: "the provider rejected the history: " + string(fault)})
	case centurion.KindOverloaded:
		return p.bounded(f, Decision{Action: Retry, Wait: p.doubled(p.Cooldown, f.Attempt), Reason: "the provider is overloaded"})
	case centurion.KindNoAnswer:
		if f.Attempt > 1 {
			return p.bounded(f, Decision{Action: Inject, Prompt: noAnswerPrompt, Reason: "the model ended without an answer again"})
		}
		return p.bounded(f, Decision{Action: Retry, Reason: "the model ended without an answer"})
	case centurion.KindNetwork, centurion.KindStreamCut, centurion.KindStall, centurion.KindCrashed, centurion.KindConflict,
		centurion.KindInternal:
		return p.bounded(f, Decision{Action: Retry, Reason: reasons[kind]})
	}
	return outside(f, kind)
}

// outside decides about failures that repetition cannot fix.
func outside(f Failure, kind centurion.Kind) Decision {
	reason := cmp.Or(reasons[kind], string(kind))
	var d Decision
	switch kind {
	case centurion.KindBudget:
		d = Decision{Action: AskPerson, Reason: reason, Hint: "raise it: `centurion resume --max-cost USD`"}
	case centurion.KindDisk:
		d = Decision{Action: AskPerson, Reason: reason, Hint: "free some space, then `centurion resume`"}
	case centurion.KindAuth:
		d = orFallback(f, end(f, AskPerson, reason), otherProviders(f.Model, f.Fallbacks))
		d.Hint = "set a valid key, or `centurion auth login`, then `centurion resume`"
	case centurion.KindModelNotFound:
		d = orFallback(f, end(f, AskPerson, reason), f.Fallbacks)
		d.Hint = "`centurion models` lists what there is; then `centurion resume --model PROVIDER/MODEL`"
	case centurion.KindRefusal:
		d = orFallback(f, end(f, GiveUp, reason), f.Fallbacks)
		d.Hint = "say it differently, or choose another model"
	case centurion.KindPermission:
		d = end(f, GiveUp, reason)
		d.Hint = "allow it with a rule under `permission`, or run with --ask allow"
	case centurion.KindTimeout:
		d = end(f, GiveUp, reason)
		d.Hint = "split the work, or give it more time"
	default:
		d = end(f, GiveUp, reason)
	}
	return d
}

func (p Policy) rateLimit(f Failure) Decision {
	n := max(f.RateLimits, 1)
	after := retryAfter(f.Err)
	if f.Patient {
		p.MaxRetryAfter = max(p.MaxRetryAfter, patience)
	}
	if n > 1 && len(f.Fallbacks) > 0 {
		return fallback(f.Fallbacks[0], "the provider still says too many requests")
	}
	if after > p.MaxRetryAfter || n > p.MaxRateLimits {
		reason := "the provider says too many requests, " + centurion.Count(n, "time") + " in a row"
		if after > p.MaxRetryAfter {
			reason = fmt.Sprintf("the provider says too many requests and asks to wait %v", after)
		}
		d := orFallback(f, end(f, AskPerson, reason), f.Fallbacks)
		d.Hint = "wait until the limit is over or choose another model: `centurion resume --model PROVIDER/MODEL`"
		return d
	}
	wait := cmp.Or(after, p.doubled(p.RateLimitWait, n))
	return Decision{Action: Retry, Wait: wait, Reason: fmt.Sprintf("the provider says too many requests; waiting %v (%d of %d)",
		wait, n, p.MaxRateLimits)}
}

func (p Policy) overflow(f Failure) Decision {
	if f.Attempt <= p.MaxAttempts {
		return Decision{Action: Compact, Reason: "the conversation is longer than the model's window"}
	}
	d := orFallback(f, end(f, GiveUp, "the conversation is longer than the model's window, also after it was shortened"), f.Fallbacks)
	d.Hint = "split the work into smaller items, or choose a model with a larger window"
	return d
}

// bounded returns d, with the cooldown as the default wait, until the attempts are used up.
func (p Policy) bounded(f Failure, d Decision) Decision {
	if f.Attempt <= p.MaxAttempts {
		if d.Wait == 0 {
			d.Wait = p.Cooldown
			if f.Since > 0 {
				d.Wait = max(p.Cooldown-f.Since, 0)
			}
		}
		d.Reason = fmt.Sprintf("%s (attempt %d of %d)", d.Reason, max(f.Attempt, 1), p.MaxAttempts)
		return d
	}
	return orFallback(f, end(f, GiveUp, d.Reason+", "+centurion.Count(f.Attempt, "time")+" in a row"), f.Fallbacks)
}

// doubled returns base·2^(n−1), at most p.MaxWait.
func (p Policy) doubled(base time.Duration, n int) time.Duration {
	for ; n > 1 && base < p.MaxWait; n-- {
		base *= 2
	}
	return min(base, p.MaxWait)
}

func (p Policy) withDefaults() Policy {
	return Policy{
		MaxAttempts:   cmp.Or(p.MaxAttempts, DefaultMaxAttempts),
		Cooldown:      cmp.Or(p.Cooldown, DefaultCooldown),
		RateLimitWait: cmp.Or(p.RateLimitWait, DefaultRateLimitWait),
		MaxRateLimits: cmp.Or(p.MaxRateLimits, DefaultMaxRateLimits),
		MaxWait:       cmp.Or(p.MaxWait, DefaultMaxWait),
		MaxRetryAfter: cmp.Or(p.MaxRetryAfter, DefaultMaxRetryAfter),
	}
}

// end returns a fatal decision with the error's own text. Only a mission's own session asks.
func end(f Failure, a Action, reason string) Decision {
	if f.Task {
		a = GiveUp
	}
	if said := strings.TrimSpace(f.Err.Error()); said != "" && !strings.Contains(reason, said) {
		reason += ": " + said
	}
	return Decision{Action: a, Reason: reason}
}

func orFallback(f Failure, d Decision, models []string) Decision {
	if len(models) == 0 {
		return d
	}
	return fallback(models[0], cmp.Or(f.Model, "the model")+" failed: "+d.Reason)
}

func fallback(model, reason string) Decision {
	return Decision{Action: Fallback, Model: model, Reason: reason + "; continuing with " + model}
}

// otherProviders drops the models of the provider that refused the key.
func otherProviders(model string, fallbacks []string) []string {
	provider, _, _ := strings.Cut(model, "/")
	var others []string
	for _, m := range fallbacks {
		if p, _, _ := strings.Cut(m, "/"); p != provider {
			others = append(others, m)
		}
	}
	return others
}
