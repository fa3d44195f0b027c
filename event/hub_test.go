package event

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"centurion"
)

// LOOP-81, LOOP-82, C-6: a subscriber that does not read costs the publisher nothing, keeps the first 64 events and learns
// what it has missed.
func TestHubSlowSubscriber(t *testing.T) {
	if deltaBuffer != 64 {
		t.Errorf("%d events wait for a subscriber", deltaBuffer)
	}
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		slow, fast := h.Subscribe(ctx), h.Subscribe(ctx)
		n := 0
		publish := func() {
			h.Publish(delta(7, "ses_1", "prt_1", fmt.Sprint(n)))
			n++
			<-fast
		}
		for range deltaBuffer + 10 {
			publish()
		}
		var got []string
		for range deltaBuffer / 2 {
			got = append(got, show(<-slow))
		}
		publish()
		got = append(got, drain(slow)...)
		for range deltaBuffer + 10 { // what is lost after it has caught up is told again
			publish()
		}
		if again := drain(slow); len(again) != deltaBuffer+1 || again[deltaBuffer] != "gap" {
			t.Errorf("after a second loss it got %d events, the last is %s", len(again), again[len(again)-1])
		}

		var want []string
		for i := range deltaBuffer {
			want = append(want, fmt.Sprintf("7+ses_1/%d", i))
		}
		want = append(want, "gap", fmt.Sprintf("7+ses_1/%d", deltaBuffer+10))
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// The mark of a gap says after which fact and when the first event was lost, and names no session.
func TestHubGapIsMarked(t *testing.T) {
	var h Hub
	c := h.Subscribe(t.Context())
	for i := range deltaBuffer + 2 {
		e := delta(int64(i), "ses_1", "prt_1", "x")
		e.Time = centurion.MillisTime(int64(1000 + i))
		e.Seq = int64(1000 + i)
		h.Publish(e)
	}
	for range deltaBuffer {
		<-c
	}
	want := centurion.Event{After: deltaBuffer, Time: centurion.MillisTime(1000 + deltaBuffer), Type: centurion.EventDelta, Data: []byte(`{"gap":true}`)}
	if got := <-c; got.After != want.After || got.Time != want.Time || got.Seq != 0 || got.Type != want.Type || string(got.Data) != string(want.Data) || got.Mission+got.Session != "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func drain(c <-chan centurion.Event) (got []string) {
	for {
		select {
		case e := <-c:
			got = append(got, show(e))
		default:
			return got
		}
	}
}

// Who reads on slowly after a loss is told of the next one as well.
func TestHubGapAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := h.Subscribe(ctx)
		publish := func(n int) {
			for i := range n {
				h.Publish(delta(1, "ses_1", "prt_1", fmt.Sprint(i)))
			}
		}
		gaps := 0
		read := func(n int) {
			for range n {
				if show(<-c) == "gap" {
					gaps++
				}
			}
		}
		for range 3 {
			publish(2 * deltaBuffer)
			read(deltaBuffer / 2)
		}
		read(len(c))
		if gaps != 3 {
			t.Errorf("told of %d losses of 3", gaps)
		}
	})
}

// A gap at the very end is told as well: nothing more has to be published for it.
func TestHubGapAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := h.Subscribe(ctx)
		for range deltaBuffer + 1 {
			h.Publish(delta(1, "ses_1", "prt_1", "x"))
		}
		if got := drain(c); len(got) != deltaBuffer+1 || got[deltaBuffer] != "gap" {
			t.Errorf("%d events, the last is %s", len(got), got[len(got)-1])
		}
	})
}

// OPAL-3, OPAL-16, OPAL-86, LOOP-83: subscriptions come and go while others publish; a channel ends with its context.
func TestHubRace(t *testing.T) {
	var h Hub
	h.Publish(delta(1, "ses_1", "prt_1", "nobody hears this"))
	stop := make(chan struct{})
	var publishers, subscribers sync.WaitGroup
	for range 2 {
		publishers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					h.Publish(delta(1, "ses_1", "prt_1", "x"))
				}
			}
		})
	}
	for range 8 {
		subscribers.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				c := h.Subscribe(ctx)
				if e := <-c; strings.Contains(string(e.Data), "nobody") {
					t.Error("a late subscriber got an old event")
				}
				cancel()
				for range c { // until it is closed
				}
			}
		})
	}
	subscribers.Wait()
	close(stop)
	publishers.Wait()
	if len(h.subs) != 0 {
		t.Errorf("%d subscriptions are left", len(h.subs))
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

func TestData(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, `{}`},
		{TodoCounts{Open: 1, Done: 2}, `{"open":1,"running":0,"done":2,"cancelled":0,"blocked":0}`},
		{DeltaData{Gap: true}, `{"gap":true}`},
		{ToolData{Tool: "bash", Call: "c1"}, `{"tool":"bash","call":"c1"}`},
		{MissionEnd{Tasks: map[string]int{"completed": 2}, DurationMS: 5, Tally: centurion.Tally{Verified: 1}, Cost: 0.5},
			`{"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0.5,"duration_ms":5,"tasks":{"completed":2},"verified":1,"unverified":0}`},
		{math.NaN(), `{"error":"json: unsupported value: NaN"}`},
		{panics{}, `{"error":"the data of this event could not be written"}`},
		{ToolData{Input: json.RawMessage(`{"half`)}, `{"error":"`},
	} {
		got := Data(c.v)
		if !json.Valid(got) || !strings.HasPrefix(string(got), c.want) {
			t.Errorf("Data(%v) = %s, want %s", c.v, got, c.want)
		}
	}
}

func FuzzShort(f *testing.F) {
	f.Add("ok")
	f.Add(strings.Repeat("ä", toolOutput))
	f.Add(strings.Repeat("x", toolOutput) + "€")
	f.Fuzz(func(t *testing.T, s string) {
		got := Short(s)
		if len(got) > toolOutput || len(s) <= toolOutput && got != s {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Error("a character was cut in two")
		}
		if !strings.HasSuffix(s, strings.TrimPrefix(got, "…")) {
			t.Error("it is not the tail")
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	var h Hub
	ctx, cancel := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	defer func() { cancel(); readers.Wait() }()
	for range 3 {
		c := h.Subscribe(ctx)
		readers.Go(func() {
			for range c {
			}
		})
	}
	e := delta(1, "ses_1", "prt_1", "a token")
	for b.Loop() {
		h.Publish(e)
	}
}

// R14: 200 subscribers, 50 of which never read, while 800 pieces are published and 40 facts committed. Who does not read
// costs a bounded buffer, everybody else sees every fact and is told that pieces were missed.
func TestManySubscribers(t *testing.T) {
	const readers, sleepers, facts, pieces = 150, 50, 40, 20
	synctest.Test(t, func(t *testing.T) {
		j, h := &fakeJournal{}, &Hub{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var asleep []<-chan centurion.Event
		for range sleepers {
			asleep = append(asleep, h.Subscribe(ctx))
		}
		before := heap()
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() { followTogether(t, Follow(ctx, j, h, 0, Filter{Deltas: true}), facts) })
		}
		for n := range facts {
			part := fmt.Sprintf("prt_%d", n)
			var text strings.Builder
			for i := range pieces {
				piece := fmt.Sprintf("%d of %d %s ", i, n, strings.Repeat("x", 2000))
				text.WriteString(piece)
				h.Publish(delta(j.LastSeq(), "ses_1", part, piece))
			}
			j.commit(centurion.Event{Type: centurion.EventPartUpdated, Session: "ses_1", Data: Data(PartData{Part: part, Text: text.String()})})
		}
		wg.Wait()
		if grown := heap() - before; grown > 64<<20 {
			t.Errorf("it holds %d MB more than before", grown>>20)
		}
		for _, c := range asleep {
			if got := drain(c); len(got) != deltaBuffer+1 || got[deltaBuffer] != "gap" {
				t.Fatalf("who never read has %d events", len(got))
			}
		}
	})
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// PartData is what these tests tell of a part.
type PartData struct {
	Part string `json:"part"`
	Text string `json:"text"`
}
