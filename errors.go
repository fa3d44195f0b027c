package centurion

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Kind classifies an error, so that its receiver can handle it without parsing its text. Kinds are stored and transmitted: existing
// ones keep their spelling, new ones are added.
type Kind string

// The kinds of error.
const (
	KindInternal Kind = "internal" // a fault of the program itself; report it

	KindUsage      Kind = "usage"      // the input is wrong: change it and try again
	KindConfig     Kind = "config"     // a configuration file is wrong or something is not configured
	KindNotFound   Kind = "not_found"  // the named thing does not exist
	KindConflict   Kind = "conflict"   // it is in use or was changed: look again, then retry
	KindPermission Kind = "permission" // a rule or a person refused; asking again is useless
	KindDisk       Kind = "disk"       // the disk is full or failing
	KindState      Kind = "state"      // the state database is damaged, newer than the program, or busy

	KindAuth           Kind = "auth"            // the provider refused the key
	KindRateLimit      Kind = "rate_limit"      // too many requests: wait as long as requested
	KindOverloaded     Kind = "overloaded"      // the provider is overloaded or failing: wait and retry
	KindNetwork        Kind = "network"         // the provider could not be reached or the connection broke
	KindStreamCut      Kind = "stream_cut"      // an answer ended without a finish reason: do not act on any of it
	KindStall          Kind = "stall"           // no data for the idle timeout
	KindOverflow       Kind = "overflow"        // the conversation is longer than the model's window
	KindRefusal        Kind = "refusal"         // the model or a content filter refused to answer
	KindModelNotFound  Kind = "model_not_found" // the provider does not know the model
	KindInvalidRequest Kind = "invalid_request" // the provider rejected the request's format

	KindTimeout     Kind = "timeout"     // a deadline of ours passed
	KindCancelled   Kind = "cancelled"   // a person or a parent requested the end
	KindInterrupted Kind = "interrupted" // the host went away; the work can be resumed
	KindCrashed     Kind = "crashed"     // a panic was caught
	KindBudget      Kind = "budget"      // the spending limit is reached
	KindVerify      Kind = "verify"      // an acceptance command failed
	KindNoAnswer    Kind = "no_answer"   // the work ended without an answer
)

// Error is an error with an operation, a kind and a next step.
type Error struct {
	Op         string        // what was attempted: "read config", "call model"
	Kind       Kind          // what the receiver should do
	Msg        string        // the problem, its place, and what is expected; may be empty if Err says it
	Hint       string        // the next step for a person; may be empty
	Err        error         // the cause; may be nil
	Status     int           // the HTTP status of a provider's answer; 0 without one
	RetryAfter time.Duration // the delay requested by the provider; 0 if there is none
}

// Error returns "op: message: cause" without the hint, which only the outermost caller shows.
func (e *Error) Error() string {
	parts := slices.DeleteFunc([]string{e.Op, e.Msg}, func(s string) bool { return s == "" })
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return cmp.Or(strings.Join(parts, ": "), string(e.Kind))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost [Error] in err's tree that has one, translates the context package's errors, and returns
// [KindInternal] for every other error and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e := find(err, func(e *Error) bool { return e.Kind != "" }); e != nil {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	case errors.Is(err, context.Canceled):
		return KindCancelled
	}
	return KindInternal
}

// HintOf returns the first hint in err's tree, or "".
func HintOf(err error) string {
	if e := find(err, func(e *Error) bool { return e.Hint != "" }); e != nil {
		return e.Hint
	}
	return ""
}

// find returns the first Error in err's tree for which ok returns true, or nil. Unlike [errors.AsType] it continues after one for which
// it returns false, also within joined errors.
func find(err error, ok func(*Error) bool) *Error {
	if e, is := err.(*Error); is && ok(e) {
		return e
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		return find(u.Unwrap(), ok)
	case interface{ Unwrap() []error }:
		for _, err := range u.Unwrap() {
			if e := find(err, ok); e != nil {
				return e
			}
		}
	}
	return nil
}

// The causes of our cancelled contexts (see [context.Cause]). Waiters get the true cause, because a kill, a shutdown, a spent budget
// and a timeout require different next steps.
var (
	// ErrCancelled: a person or a parent cancelled this work. It is over and is not a failure.
	ErrCancelled = &Error{Kind: KindCancelled, Msg: "cancelled"}
	// ErrShutdown: the host is going away. The work continues after a resume.
	ErrShutdown = &Error{Kind: KindInterrupted, Msg: "interrupted"}
	// ErrHandover: the host is going away and another one takes over. Nothing is reported as stopped.
	ErrHandover = &Error{Kind: KindInterrupted, Msg: "handed over to another host"}
	// ErrBudget: a spending limit was reached. The work continues when the limit is raised.
	ErrBudget = &Error{Kind: KindBudget, Msg: "budget reached"}
)
