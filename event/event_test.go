package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeJournal keeps facts in memory. Its sequence numbers have holes, as a filtered stream has.
type fakeJournal struct {
	mu      sync.Mutex
	facts   []centurion.Event
	changed chan struct{}
	err     error
	reads   int
}

func (j *fakeJournal) commit(e centurion.Event) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Seq = 2*int64(len(j.facts)) + 2
	j.facts = append(j.facts, e)
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
	return e.Seq
}

func (j *fakeJournal) Events(ctx context.Context, after int64, limit int) ([]centurion.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reads++
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if j.err != nil {
		return nil, j.err
	}
	var found []centurion.Event
	for _, e := range j.facts {
		if e.Seq > after && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}

func (j *fakeJournal) LastSeq() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return 2 * int64(len(j.facts))
}

func (j *fakeJournal) Changed() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.changed == nil {
		j.changed = make(chan struct{})
	}
	return j.changed
}

func delta(after int64, session, part, text string) centurion.Event {
	return centurion.Event{After: after, Type: centurion.EventDelta, Mission: "msn_1", Session: session,
		Data: Data(DeltaData{Part: part, Field: "text", Delta: text})}
}

func show(e centurion.Event) string {
	if e.Type != centurion.EventDelta {
		return fmt.Sprintf("%d:%s", e.Seq, e.Type)
	}
	var d DeltaData
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err.Error()
	}
	if d.Gap {
		return "gap"
	}
	return fmt.Sprintf("%d+%s/%s", e.After, e.Session, d.Delta)
}

func TestFilter(t *testing.T) {
	fact := centurion.Event{Type: centurion.EventTaskQueued, Mission: "m", Session: "s", Task: "t"}
	piece := centurion.Event{Type: centurion.EventDelta, Mission: "m", Session: "s"}
	gap := centurion.Event{Type: centurion.EventDelta, Data: Data(DeltaData{Gap: true})}
	for _, c := range []struct {
		name string
		f    Filter
		e    centurion.Event
		want bool
	}{
		{"everything", Filter{}, fact, true},
		{"its mission", Filter{Mission: "m"}, fact, true},
		{"another mission", Filter{Mission: "n"}, fact, false},
		{"another session", Filter{Mission: "m", Session: "r"}, fact, false},
		{"its session", Filter{Session: "s"}, fact, true},
		{"its task, not its session", Filter{Session: "t"}, fact, false},
		{"its task", Filter{Task: "t"}, fact, true},
		{"another task", Filter{Task: "u"}, fact, false},
		{"its type", Filter{Types: []centurion.EventType{centurion.EventTodoUpdated, centurion.EventTaskQueued}}, fact, true},
		{"another type", Filter{Types: []centurion.EventType{centurion.EventTodoUpdated}}, fact, false},
		{"no deltas", Filter{}, piece, false},
		{"deltas", Filter{Deltas: true}, piece, true},
		{"deltas beside types", Filter{Deltas: true, Types: []centurion.EventType{centurion.EventTodoUpdated}}, piece, true},
		{"deltas of another session", Filter{Deltas: true, Session: "r"}, piece, false},
		{"a gap concerns everybody", Filter{Deltas: true, Session: "r", Mission: "m"}, gap, true},
		{"a gap without deltas", Filter{Session: "r"}, gap, false},
	} {
		if got := c.f.Match(c.e); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// OPAL-14, OPAL-72
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, h := &fakeJournal{}, &Hub{}
		for range page + 3 { // more than one page
			j.commit(centurion.Event{Type: centurion.EventTaskQueued})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			for e, err := range Follow(ctx, j, h, 4, Filter{Deltas: true, Types: []centurion.EventType{centurion.EventTaskQueued}}) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, show(e))
			}
		})
		synctest.Wait()
		if len(got) != page+1 || got[0] != "6:task.queued" || got[page] != fmt.Sprintf("%d:task.queued", 2*(page+3)) {
			t.Fatalf("caught up with %d facts: %v", len(got), got)
		}
		got = nil
		last, reads := j.LastSeq(), j.reads
		h.Publish(delta(last, "ses_1", "prt_1", "a"))
		synctest.Wait()
		if j.reads != reads {
			t.Error("a delta alone makes its reader query the journal")
		}
		h.Publish(delta(last+2, "ses_1", "prt_1", "b")) // of a fact that is not committed yet
		h.Publish(delta(last+2, "ses_1", "prt_1", "c"))
		synctest.Wait()
		j.commit(centurion.Event{Type: centurion.EventTaskQueued})
		synctest.Wait()
		j.commit(centurion.Event{Type: centurion.EventTodoUpdated}) // not asked for
		synctest.Wait()
		j.commit(centurion.Event{Type: centurion.EventTaskQueued})
		synctest.Wait()
		want := []string{fmt.Sprintf("%d+ses_1/a", last), fmt.Sprintf("%d:task.queued", last+2),
			fmt.Sprintf("%d+ses_1/bc", last+2), fmt.Sprintf("%d:task.queued", last+6)}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}

		reads = j.reads
		synctest.Wait()
		if j.reads != reads {
			t.Error("an idle follower reads")
		}
		cancel()
		wg.Wait()
		if len(h.subs) != 0 {
			t.Error("the subscription outlives its reader")
		}
	})
}

// A delta stands before the facts that were committed after it, however late the reader is.
func TestFollowOrder(t *testing.T) {
	j, h := &fakeJournal{}, &Hub{}
	j.commit(centurion.Event{Type: centurion.EventSessionCreated})
	var got []string
	for e, err := range Follow(t.Context(), j, h, 0, Filter{Deltas: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, show(e))
		if e.Seq == 2 { // while the reader is busy with the first fact
			h.Publish(delta(2, "ses_1", "prt_1", "a"))
			h.Publish(delta(2, "ses_2", "prt_2", "x"))
			h.Publish(delta(2, "ses_1", "prt_1", "b"))
			j.commit(centurion.Event{Type: centurion.EventPartUpdated})
			h.Publish(delta(4, "ses_1", "prt_3", "c"))
			j.commit(centurion.Event{Type: centurion.EventSessionIdle})
		}
		if e.Seq == 6 {
			break
		}
	}
	want := []string{"2:session.created", "2+ses_1/ab", "2+ses_2/x", "4:message.part.updated", "4+ses_1/c", "6:session.idle"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(h.subs) != 0 {
		t.Error("the subscription outlives its reader")
	}
}

// A reader may leave after any event, and nothing more is yielded to it then.
func TestFollowIsLeft(t *testing.T) {
	for n := range 8 {
		j, h := &fakeJournal{}, &Hub{}
		j.commit(centurion.Event{Type: centurion.EventSessionCreated})
		got := 0
		for e, err := range Follow(t.Context(), j, h, 0, Filter{Deltas: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if got++; got == 1 {
				for _, part := range []string{"prt_1", "prt_2", "prt_3"} {
					h.Publish(delta(2, "ses_1", part, "a"))
				}
				j.commit(centurion.Event{Type: centurion.EventPartUpdated})
				h.Publish(delta(4, "ses_1", "prt_4", "a"))
				h.Publish(delta(4, "ses_1", "prt_5", "a"))
				j.commit(centurion.Event{Type: centurion.EventSessionIdle})
			}
			if got > n || e.Seq == 6 {
				break
			}
		}
		if got != n+1 || len(h.subs) != 0 {
			t.Errorf("got %d events of %d; %d subscriptions are left", got, n+1, len(h.subs))
		}
	}
}

// A fact that comes by the hub, since a full disk keeps it from being stored, is no piece of a text: none is joined with another.
func TestFollowFactsOfTheHub(t *testing.T) {
	j, h := &fakeJournal{}, &Hub{}
	j.commit(centurion.Event{Type: centurion.EventSessionCreated})
	var got []string
	for e := range Follow(t.Context(), j, h, 0, Filter{Deltas: true}) {
		if got = append(got, show(e)); len(got) == 1 {
			h.Publish(centurion.Event{Type: centurion.EventSessionIdle, Data: Data(nil)})
			h.Publish(centurion.Event{Type: centurion.EventSessionError, Data: Data(nil)})
			j.commit(centurion.Event{Type: centurion.EventTodoUpdated})
		}
		if len(got) == 4 {
			break
		}
	}
	if want := []string{"2:session.created", "0:session.idle", "0:session.error", "4:todo.updated"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFollowEnds(t *testing.T) {
	broken := errors.New("the disk is gone")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want []error
	}{
		{"an error of the journal is told once", t.Context(), broken, []error{broken}},
		{"the end of the context is no error", ended, nil, nil},
		{"nor is what the journal says of it", ended, broken, nil},
	} {
		var got []error
		for _, err := range Follow(c.ctx, &fakeJournal{err: c.err}, nil, 0, Filter{Deltas: true}) {
			got = append(got, err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// OPAL-91, ORCH-14: several readers, started at different times, see the same facts, and each session's deltas between
// its own facts. What is not marked as a gap is complete.
func TestFollowTogether(t *testing.T) {
	j, h := &fakeJournal{}, &Hub{}
	const sessions, parts, pieces = 8, 20, 30
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers, readers sync.WaitGroup
	for n := range sessions {
		writers.Go(func() {
			session := fmt.Sprintf("ses_%d", n)
			for p := range parts {
				part := fmt.Sprintf("%s_%d", session, p)
				var text strings.Builder
				for i := range pieces {
					piece := fmt.Sprintf("%d ", i)
					text.WriteString(piece)
					h.Publish(delta(j.LastSeq(), session, part, piece))
				}
				j.commit(centurion.Event{Type: centurion.EventPartUpdated, Session: session, Data: Data(PartData{Part: part, Text: text.String()})})
			}
		})
	}
	for range 3 {
		readers.Go(func() { followTogether(t, Follow(ctx, j, h, 0, Filter{Deltas: true}), sessions*parts) })
	}
	writers.Wait()
	readers.Go(func() { followTogether(t, Follow(ctx, j, h, 0, Filter{Deltas: true}), sessions*parts) })
	readers.Wait()
}

func followTogether(t *testing.T, events func(func(centurion.Event, error) bool), facts int) {
	text := map[string]string{} // by part
	finished := map[string]bool{}
	var last int64
	gaps := false
	for e, err := range events {
		if err != nil {
			t.Error(err)
			return
		}
		if e.Type == centurion.EventDelta {
			d, err := Decode[DeltaData](e)
			switch {
			case err != nil:
				t.Error(err)
			case d.Gap:
				gaps = true
			case finished[d.Part]:
				t.Errorf("a piece of %s after its end", d.Part)
			case e.After > last:
				t.Errorf("a piece that comes after fact %d, told after fact %d", e.After, last)
			default:
				text[d.Part] += d.Delta
			}
			continue
		}
		if e.Seq <= last {
			t.Errorf("fact %d after fact %d", e.Seq, last)
		}
		last = e.Seq
		p, err := Decode[PartData](e)
		if err != nil {
			t.Error(err)
		}
		finished[p.Part] = true
		if !gaps && text[p.Part] != "" && !strings.HasSuffix(p.Text, text[p.Part]) {
			t.Errorf("part %s: pieces %q of %q, and no gap was told", p.Part, text[p.Part], p.Text)
		}
		if facts--; facts == 0 {
			return
		}
	}
}

func FuzzCoalesce(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0x80, 3, 0, 0, 9})
	f.Add([]byte{0, 0x10, 0x20, 0}) // one part, after different facts
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, seed []byte) {
		var run []centurion.Event
		for i, b := range seed {
			if b >= 0x80 {
				run = append(run, centurion.Event{Type: centurion.EventDelta, Data: Data(DeltaData{Gap: true})})
				continue
			}
			run = append(run, delta(int64(b>>4), fmt.Sprintf("ses_%d", b&1), fmt.Sprintf("prt_%d", b>>1&1), string(rune('a'+i%26))))
		}
		// Between two gaps every part has the same text, whether or not its pieces were joined.
		if got, want := texts(t, coalesce(slices.Clone(run))), texts(t, run); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func texts(t *testing.T, run []centurion.Event) string {
	var all []string
	parts := map[string]string{}
	end := func() {
		all = append(all, fmt.Sprint(parts))
		clear(parts)
	}
	for _, e := range run {
		d, err := Decode[DeltaData](e)
		if err != nil {
			t.Fatal(err)
		}
		if d.Gap {
			end()
		}
		parts[fmt.Sprint(e.After, e.Session, d.Part)] += d.Delta
	}
	end()
	return strings.Join(all, "|")
}
