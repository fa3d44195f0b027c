// Package tui shows a mission to a person: a calm live view on a terminal, plain lines without one, JSON lines for
// scripts, and the boards of the one-shot commands.
//
// It reads only events, and everything it shows derives from a [Board] that they were applied to. It owns no state of a mission and
// decides nothing: a person's answers go through an [Answerer] of the caller. Texts of a model, a repository or a tool are made
// harmless by [Clean] or [Escape] before they are shown.
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

// The answers of keys to an ask. A question is answered with typed text.
const (
	AnswerOnce   = "once"   // permission: this call may proceed; plan: run it
	AnswerAlways = "always" // permission: this call and all like it may proceed
	AnswerReject = "reject" // permission: no; plan: leave it for later
)

// Answerer receives a person's answers. Answer is called in its own goroutine and may block until the answer is recorded; an error is
// shown and the person can answer again.
type Answerer interface {
	Answer(ctx context.Context, askID, answer string) error
}

// UntilEnd yields events up to and including the one that ends the mission's run. Without it [RunPlain] and [RunJSON] continue as long
// as there are events, as for a followed log.
func UntilEnd(events iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for e, err := range events {
			if !yield(e, err) || err == nil && e.Type.EndsMission() {
				return
			}
		}
	}
}

// CanLive reports whether in and out are a terminal that [RunLive] can draw on. A dumb terminal cannot move its cursor and gets plain
// lines. A nil env means that no variables are set.
func CanLive(in io.Reader, out io.Writer, env []string) bool {
	return isTerminal(in) && isTerminal(out) && !dumb(env)
}

// Dumb reports whether in and out are a terminal that is dumb or of unknown type.
func Dumb(in io.Reader, out io.Writer, env []string) bool {
	return isTerminal(in) && isTerminal(out) && dumb(env)
}

// Color reports whether colours may be written to a terminal with this environment: not with a non-empty NO_COLOR (no-color.org), and
// not on a dumb one. The caller checks whether there is a terminal at all.
func Color(env []string) bool { return lookup(env, "NO_COLOR") == "" && !dumb(env) }

func dumb(env []string) bool {
	t := lookup(env, "TERM")
	return t == "dumb" || t == "" && runtime.GOOS != "windows"
}

func isTerminal(v any) bool {
	f, ok := v.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// lookup returns the last value of a variable in an environment, as seen by a process.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
