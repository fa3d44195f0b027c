package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"pgregory.net/rapid"

	"centurion"
	"centurion/provider"
)

// film is an answer as a provider gives it, piece by piece.
type film struct {
	deltas []provider.Delta
	done   bool  // the last piece says that it is whole
	err    error // instead of that; nil: it just ends
}

// calls returns the names of the tools that it calls.
func (f film) calls() (names []string) {
	for _, d := range f.deltas {
		if d.Type == provider.CallStart {
			names = append(names, d.Name)
		}
	}
	return names
}

// films draws answers: text, thinking and calls in any mixture, each call begun, filled in and ended, whole or broken.
func films(t *rapid.T) []film {
	return rapid.SliceOfN(rapid.Custom(drawFilm), 1, 3).Draw(t, "answers")
}

func drawFilm(t *rapid.T) film {
	var f film
	add := func(d provider.Delta) { f.deltas = append(f.deltas, d) }
	calls := 0
	for range rapid.IntRange(0, 4).Draw(t, "pieces") {
		switch rapid.IntRange(0, 4).Draw(t, "piece") {
		case 0:
			add(provider.Delta{Type: provider.Text, Text: rapid.SampledFrom([]string{"Good.", " ", "I look."}).Draw(t, "text")})
		case 1:
			add(provider.Delta{Type: provider.Reasoning, Text: "Hm."})
			if meta := rapid.SampledFrom([]map[string]any{nil, {"anthropic": map[string]any{"signature": "s"}},
				{"openai": map[string]any{"itemId": "rs_1", "reasoningEncryptedContent": "e"}}}).Draw(t, "metadata"); meta != nil {
				add(provider.Delta{Type: provider.ReasoningEnd, Metadata: meta})
			}
		default:
			id := fmt.Sprint(rapid.SampledFrom([]string{"call_", "c"}).Draw(t, "id"), calls)
			add(provider.Delta{Type: provider.CallStart, Index: calls, CallID: id, Name: rapid.SampledFrom([]string{"noop", "noop", "write", "write", "fail", "crash", "slow", "camera", "missing"}).Draw(t, "name")})
			for _, piece := range rapid.SampledFrom([][]string{nil, {`{}`}, {`{"pa`, `th":"a"}`}, {`{"path":"b"}`}, {`[1]`}, {`{"x":`}}).Draw(t, "arguments") {
				add(provider.Delta{Type: provider.CallInput, Index: calls, Text: piece})
			}
			if rapid.Bool().Draw(t, "end") {
				add(provider.Delta{Type: provider.CallEnd, Index: calls})
			}
			calls++
		}
	}
	finish := centurion.FinishStop
	if calls > 0 {
		finish = centurion.FinishToolCalls
	}
	switch rapid.IntRange(0, 9).Draw(t, "how it ends") {
	case 0:
		f.err = &centurion.Error{Op: "call model", Kind: centurion.KindOverloaded, Msg: "oops"}
		return f
	case 1:
		return f
	case 2:
		finish = rapid.SampledFrom([]string{centurion.FinishLength, centurion.FinishFilter, centurion.FinishUnknown}).Draw(t, "finish")
	}
	f.done = finish != centurion.FinishFilter
	add(provider.Delta{Type: provider.Done, Finish: finish, Tokens: centurion.Tokens{Input: 10, Output: 2}})
	return f
}

// reel is a model that plays films, one for each request, and tells of every step at which a turn could be stopped: before
// each piece of an answer, and when a tool begins.
type reel struct {
	films []film
	asked func(n int, req provider.Request) // before the n-th film is played
	then  interface {                       // answers when all are played
		Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error]
	}

	mu   sync.Mutex // protects what follows
	next int
	step int                  // of the film that plays
	stop func(step int) error // stops a stream with its error; nil stops nothing
}

func (m *reel) hit() error {
	m.mu.Lock()
	m.step++
	step, stop := m.step, m.stop
	m.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop(step)
}

func (m *reel) steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.step
}

func (m *reel) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	m.mu.Lock()
	n := m.next
	if n < len(m.films) {
		m.next++
	}
	m.mu.Unlock()
	if m.asked != nil {
		m.asked(n, req)
	}
	if n == len(m.films) {
		return m.then.Stream(ctx, req)
	}
	m.mu.Lock()
	m.step = 0
	m.mu.Unlock()
	return func(yield func(provider.Delta, error) bool) {
		f := m.films[n]
		for _, d := range f.deltas {
			if err := m.hit(); err != nil {
				yield(provider.Delta{}, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if f.err != nil {
			yield(provider.Delta{}, f.err)
		}
	}
}

// wrong says what is wrong with a request beyond its form, or "": the calls of whole answers have to be in it, and no others,
// and what is told of them has to be what came of them. What the person said has to be in it, word by word and with its files, and
// nothing else in their name.
func wrong(req provider.Request, first provider.Request, due []string, told []string) string {
	if fault := valid(req.Messages); fault != "" {
		return fault
	}
	if fault := notTold(req, told); fault != "" {
		return fault
	}
	if req.System != first.System || fmt.Sprint(req.Tools) != fmt.Sprint(first.Tools) {
		return "the system prompt or the tools are others than before"
	}
	var names []string
	byID := map[string]provider.Call{}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			names = append(names, c.Name)
			byID[c.ID] = c
		}
		if m.Role == provider.Tool && !isResult(byID[m.CallID], m.Text) {
			return fmt.Sprintf("the result of %s is told as %q", byID[m.CallID].Name, m.Text)
		}
	}
	if !slices.Equal(names, due) {
		return fmt.Sprintf("the calls in it are %q, those of the whole answers %q", names, due)
	}
	return ""
}

var statusAtEnd = regexp.MustCompile(`(^|\n\n)<status>\ntold \d+\n</status>$`)

// notTold says where the words of a request that are in the person's name are others than those that were due, or "".
func notTold(req provider.Request, due []string) string {
	var told []string
	for _, m := range req.Messages {
		if m.Role != provider.User {
			continue
		}
		if text := statusAtEnd.ReplaceAllString(m.Text, ""); text != "" {
			told = append(told, text)
		}
		if n := strings.Count(m.Text, imageName); n != len(m.Files) {
			return fmt.Sprintf("%d files come with %q", len(m.Files), m.Text)
		}
	}
	if got, want := ofPerson(told), ofPerson(due); got != want {
		return fmt.Sprintf("told is %q, due %q", got, want)
	}
	return ""
}

// cutOff is what the host says between two answers, whether or not it had come that far when the session was killed.
const cutOff = "Your answer was cut off at the output limit. Continue exactly where it stopped."

// ofPerson joins texts without what the host has added to them.
func ofPerson(texts []string) string {
	var out []string
	for part := range strings.SplitSeq(strings.Join(texts, "\n\n"), "\n\n") {
		part = strings.TrimPrefix(part, "From the person:\n") // after a word of the host
		if part != cutOff {
			out = append(out, part)
		}
	}
	return strings.Join(out, "\n\n")
}

// isResult reports whether a text may stand as the result of a call.
func isResult(c provider.Call, text string) bool {
	want := map[string]string{"noop": "noop", "slow": "slow", "camera": "shot", "write": "written", "fail": "no", "crash": "crashed: oh", "missing": "Tool not found: missing"}[c.Name]
	return text == want || text == "Cancelled" || text == strings.TrimPrefix(lost, "!") || strings.HasPrefix(text, "Not run: the answer was cut off (") ||
		strings.HasPrefix(c.Arguments, `{"raw":`) && (strings.Contains(text, "not valid JSON") || strings.Contains(text, "has to be an object"))
}

var errCut = &centurion.Error{Op: "call model", Kind: centurion.KindStreamCut, Msg: "cut"}

var errNo = errors.New("no")
