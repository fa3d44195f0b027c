// Package tui shows a mission to a person: a calm live view on a terminal, plain lines without one, JSON lines for
// scripts, and the boards of the one-shot commands.
//
// It reads events and nothing else, and everything it shows derives from a [Board] that they were applied to. It owns no
// state of a mission and decides nothing: what a person answers goes out through an [Answerer], which the caller
// provides. Text that a model, a repository or a tool wrote is made harmless by [Clean] or [Escape] before it is shown.
package tui

import (
	"context"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/term"

	"centurion"
)

// The answers that keys give to an ask. A question is answered with the text that was typed.
const (
	AnswerOnce   = "once"   // permission: this call may go on; plan: run it
	AnswerAlways = "always" // permission: this call and all like it may go on
	AnswerReject = "reject" // permission: no; plan: leave it for later
)

// Answerer takes a person's answers. Answer is called from a goroutine of its own and may block until the answer is
// recorded; an error is shown and the person can answer again.
type Answerer interface {
	Answer(ctx context.Context, askID, answer string) error
}

// UntilEnd yields events up to and including the one that ends the mission's run. Without it [RunPlain] and [RunJSON]
// go on as long as there are events, as a log that is followed must.
func UntilEnd(events iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || err == nil && e.Type.EndsMission() {
				return
			}
		}
	}
}

// CanLive reports whether in and out are a terminal that [RunLive] can draw on. A terminal that calls itself dumb cannot
// move its cursor; it gets plain lines. An environment of nil stands for none of its variables being set.
func CanLive(in io.Reader, out io.Writer, env []string) bool {
	return isTerminal(in) && isTerminal(out) && !dumb(env)
}

// Dumb reports whether in and out are a terminal that cannot move its cursor, or does not say what it is.
func Dumb(in io.Reader, out io.Writer, env []string) bool {
	return isTerminal(in) && isTerminal(out) && dumb(env)
}

// Color reports whether colours may be written to a terminal with this environment: not with a NO_COLOR that is not
// empty (no-color.org), and not on a dumb one. Whether there is a terminal at all is the caller's to know.
func Color(env []string) bool { return lookup(env, "NO_COLOR") == "" && !dumb(env) }

func dumb(env []string) bool {
	t := lookup(env, "TERM")
	return t == "dumb" || t == "" && runtime.GOOS != "windows"
}

func isTerminal(v any) bool {
	f, ok := v.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// lookup returns the last value of a variable in an environment, as a process sees it.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
