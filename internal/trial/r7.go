package trial

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"centurion"
)

const (
	// r7Small is the maximum length, in bytes, of a stream that is played to a session cut at every byte. Longer ones are cut at every
	// byte only for the client, and for a session at the ends of lines and inside each; all of them with -full.
	r7Small = 1200
	// r7Long is the maximum length of a stream that is cut at every byte without -full: each cut plays everything before it, which takes
	// quadratic time. Longer ones use a [selection].
	r7Long = 6_000
	// r7Asks is how many requests a session may make for an answer that breaks: the broken one, the next one, and one with the results
	// of its calls.
	r7Asks = 3
)

// r7 plays recorded answers through the real client and the real session.
func r7(ctx context.Context, t *T) {
	var from fs.FS = must(fs.Sub(recordings, "recordings"))
	if dir := t.bench.recordings; dir != "" {
		from = os.DirFS(dir)
	}
	all, skipped, err := readRecordings(from)
	t.Must(err)
	for _, name := range skipped {
		t.Logf("%s is of a kind that has no client here", name)
	}
	sums := make([]r7Sum, len(all))
	before := runtime.NumGoroutine()
	t.InParallel(len(all), runtime.NumCPU(), func(i int) {
		r, sum, begun := all[i], &sums[i], time.Now()
		p := newPlayer(t, filepath.Join(t.Dir, strconv.Itoa(i)+".db"))
		sum.whole(t, p, r)
		of := selectionOf(r.lines, len(r.body(r.lines)), t.Full)
		sum.cut(ctx, t, p, r, of)
		sum.reordered(ctx, t, p, r, of)
		p.close()
		sum.sessions = p.sessions
		t.Logf("%s: %d lines, %d calls, ended with %v, %s, %s", r.name, len(r.lines), len(r.heard.calls), r.heard.err, of, time.Since(begun).Round(time.Millisecond))
	})
	if left := settled(before); left > 0 {
		t.Failf("%d goroutines are left", left)
	}
	var sum r7Sum
	for _, s := range sums {
		sum.add(s)
	}
	t.Figure("answers", len(all))
	t.Figure("not playable yet", len(skipped))
	t.Figure("cuts", sum.cuts)
	if sum.left > 0 { // of long recordings; -full cuts these too
		t.Figure("bytes not cut at", sum.left)
	}
	t.Figure("twice or out of order", sum.mixed)
	t.Figure("sessions", sum.sessions)
	t.Figure("calls run of cut answers", sum.ran)
	t.Figure("calls run that were not recorded", sum.foreign)
	if len(all) == 0 || sum.cuts == 0 {
		t.Failf("nothing was played")
	}
}

func must[V any](v V, err error) V {
	if err != nil {
		panic(err) // of embedded files
	}
	return v
}

// settled returns how many goroutines have been added, after waiting for the ending ones.
func settled(before int) int {
	if soon(context.Background(), goneLimit, func() bool { return runtime.NumGoroutine() <= before }) {
		return 0 // they have ended by themselves
	}
	return runtime.NumGoroutine() - before
}

type r7Sum struct{ cuts, left, mixed, sessions, ran, foreign int }

func (s *r7Sum) add(o r7Sum) {
	s.cuts, s.left, s.mixed = s.cuts+o.cuts, s.left+o.left, s.mixed+o.mixed
	s.sessions, s.ran, s.foreign = s.sessions+o.sessions, s.ran+o.ran, s.foreign+o.foreign
}

// whole checks that an answer is read as recorded.
func (s *r7Sum) whole(t *T, p *player, r *recording) {
	text, calls := r.written()
	for i := range calls {
		calls[i] = compactCall(calls[i])
	}
	got := p.play(r, r.body(r.lines))
	if r.heard.err != nil {
		if !isCut(r.heard.err) || got.first == nil || len(got.ran) > 0 {
			t.Failf("%s: recorded is the error %v; the session ended with %v and ran %q", r.name, r.heard.err, got.first, got.ran)
		}
		return
	}
	if text == "" && len(calls) == 0 && centurion.KindOf(got.first) == centurion.KindNoAnswer {
		return // the requested tool is missing, and the session says so
	}
	if got.first != nil || r.heard.text != text || got.text != text && text != "" {
		t.Failf("%s: recorded is the text %.200q; heard was %.200q, stored %.200q (%v)", r.name, text, r.heard.text, got.text, got.first)
	}
	if !slices.Equal(got.ran, calls) {
		t.Failf("%s: recorded are the calls %q; run were %q", r.name, calls, got.ran)
	}
}

// cut cuts an answer at every byte of the selection.
func (s *r7Sum) cut(ctx context.Context, t *T, p *player, r *recording, of selection) {
	body := r.body(r.lines)
	whole := p.play(r, body)
	line, at := 0, 0 // where it began, and which one it is
	for n := range len(body) {
		if ctx.Err() != nil {
			return
		}
		if n > 0 && body[n-1] == '\n' {
			if line = n; body[n] != '\n' {
				at++
			}
		}
		border := (body[n] == '\n' || n == line+20) && of.looked(at)
		if !border && !of.whole(at) {
			s.left++
			continue
		}
		s.cuts++
		h := ask(r.client(body[:n]))
		if h.err == nil && !h.same(r.heard) || h.err != nil && len(h.calls) > 0 {
			t.Failf("%s cut at %d of %d: %+v", r.name, n, len(body), h)
		}
		if h.err != nil && !isCut(h.err) {
			t.Failf("%s cut at %d of %d: no clear end: %v", r.name, n, len(body), h.err)
		}
		if !t.Full && len(body) > r7Small && !border {
			continue
		}
		got := p.play(r, body[:n])
		if got.first != nil && len(got.ran) > 0 {
			s.ran += len(got.ran)
			t.Failf("%s cut at %d of %d: %q was run although the answer broke: %v", r.name, n, len(body), got.ran, got.first)
		}
		if got.first == nil && !slices.Equal(got.ran, whole.ran) {
			t.Failf("%s cut at %d of %d: %q was run, whole %q", r.name, n, len(body), got.ran, whole.ran)
		}
		s.bounded(t, r, got)
	}
}

// reordered repeats every event of the selection, and swaps every two.
func (s *r7Sum) reordered(ctx context.Context, t *T, p *player, r *recording, of selection) {
	whole := p.play(r, r.body(r.lines))
	for i := range r.lines {
		if ctx.Err() != nil {
			return
		}
		if !of.looked(i) {
			continue
		}
		mixed := [][]string{slices.Insert(slices.Clone(r.lines), i, r.lines[i])}
		if i > 0 {
			swapped := slices.Clone(r.lines)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			mixed = append(mixed, swapped)
		}
		for _, lines := range mixed {
			s.mixed++
			got := p.play(r, r.body(lines))
			s.bounded(t, r, got)
			if got.first != nil && len(got.ran) > 0 {
				t.Failf("%s with line %d twice or moved: %q was run although the answer broke: %v", r.name, i, got.ran, got.first)
			}
			for _, call := range got.ran {
				if slices.Contains(whole.ran, call) {
					continue
				}
				s.foreign++
				// Over chat completions a repeated piece cannot be detected; its arguments are then invalid JSON, or seem valid.
				if r.kind == "responses" {
					t.Failf("%s with line %d twice or moved: %q was run, recorded are %q", r.name, i, call, whole.ran)
				}
			}
		}
	}
}

func (s *r7Sum) bounded(t *T, r *recording, got played) {
	if got.asks > r7Asks {
		t.Failf("%s: %d requests for one broken answer", r.name, got.asks)
	}
}
