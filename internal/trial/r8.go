package trial

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"centurion/provider"
)

const (
	r8Memory = 64 << 20    // bytes an answer may cost beyond its own
	r8Limit  = time.Minute // in which every stream has ended: they take milliseconds
	r8Quick  = 20_000      // streams with random damage
	r8Full   = 2_000_000
)

// r8 sends what no provider should.
func r8(ctx context.Context, t *T) {
	all, _, err := readRecordings(must(fs.Sub(recordings, "recordings")))
	t.Must(err)
	most, before := uint64(0), runtime.NumGoroutine()
	written := r8Written()
	for _, one := range written {
		for _, kind := range kinds {
			r := &recording{name: one.name, kind: kind}
			cost, h := r8Cost(r, one.body)
			most = max(most, cost)
			if cost > r8Memory {
				t.Failf("%s over %s took %d MB", one.name, kind, cost>>20)
			}
			if h.err != nil && (!isCut(h.err) || len(h.calls) > 0) {
				t.Failf("%s over %s: ended with %v and %d calls", one.name, kind, h.err, len(h.calls))
			}
		}
	}
	damaged, broke := 0, 0
	for ctx.Err() == nil && damaged < t.Scale(r8Quick, r8Full) {
		r := all[damaged%len(all)]
		body := r8Damage(t, []byte(r.body(r.lines)))
		begun := time.Now()
		h := ask(r.client(string(body)))
		damaged++
		if h.err != nil {
			broke++
		}
		if h.err != nil && (!isCut(h.err) || len(h.calls) > 0) || time.Since(begun) > r8Limit {
			t.Failf("%s with damage %d ended after %s with %v and %d calls: %q", r.name, damaged, time.Since(begun), h.err, len(h.calls), body)
		}
	}
	if left := settled(before); left > 0 {
		t.Failf("%d goroutines are left", left)
	}
	t.Figure("written streams", len(kinds)*len(written))
	t.Figure("with random damage", damaged)
	t.Figure("of them told as broken", broke)
	t.Figure("most memory", fmt.Sprintf("%d MB", most>>20))
}

// r8Cost returns the total allocations for reading an answer, which are more than it held at any time.
func r8Cost(r *recording, body string) (uint64, heard) {
	var before, after runtime.MemStats
	c := r.client(body)
	runtime.ReadMemStats(&before)
	var h heard
	for d, err := range c.Stream(context.Background(), provider.Request{}) {
		if err != nil {
			h.err = err
		}
		if d.Type == provider.CallEnd {
			h.calls = append(h.calls, provider.Call{})
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, h
}

type r8Stream struct{ name, body string }

func r8Written() []r8Stream {
	line := func(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }
	const mb = 1 << 20
	x := strings.Repeat("x", 10*mb)
	deep := strings.Repeat("[", 1*mb) + strings.Repeat("]", 1*mb)
	delta := func(s string) string { return `{"choices":[{"delta":` + s + `}]}` }
	many := strings.Repeat(`{"index":0,"function":{"name":"f","arguments":"{}"}},`, 1000)
	return []r8Stream{
		{"bad JSON", line(`{"choices":[{]`)},
		{"bad UTF-8", line(delta("{\"content\":\"\xff\xfe\xc3\"}"), "{\"type\":\"response.output_text.delta\",\"delta\":\"\xff\xfe\xc3\"}")},
		{"10 MB of text in a line", line(delta(`{"content":"`+x+`"}`), `{"type":"response.output_text.delta","delta":"x"}`)},
		{"10 MB of text in an event", line(`{"type":"response.output_text.delta","delta":"` + x + `"}`)},
		{"10 MB that mean nothing", line(`{"x":"` + x + `"}`)},
		{"10 MB of arguments", line(`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"` + x + `"}`)},
		{"17 MB without an end of line", "data: " + strings.Repeat("x", 17*mb)},
		{"20 MB of a comment", ":" + x + x + "\n\n"},
		{"a million empty lines", strings.Repeat("\n", mb)},
		{"deep nesting", line(`{"choices":` + deep + `}`)},
		{"deep nesting of an item", line(`{"type":"response.output_item.added","item":` + deep + `}`)},
		{"one index a thousand times", line(delta(`{"tool_calls":[`+strings.TrimSuffix(many, ",")+`]}`), `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)},
		{"calls without ids", line(delta(`{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"g"}}]}`), `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)},
		{"items without ids", line(`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"g","arguments":"{}"}}`, `{"type":"response.completed","response":{"status":"completed"}}`)},
		{"wrong types", line(`{"choices":{"delta":7},"usage":"many","type":[],"item":3,"response":"x","output_index":"0","error":false}`, `[1,"a",null,[]]`, `7`, `"a"`, `null`)},
		{"huge numbers", line(`{"choices":[{"delta":{"tool_calls":[{"index":9223372036854775807,"function":{"name":"f","arguments":"{}"}},{"index":-1e300}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1e300}}`)},
		{"NUL bytes", strings.Repeat("\x00", 100_000)},
		{"another protocol", "HTTP/1.1 200 OK\r\n\r\n<html>"},
	}
}

// r8Damage changes a stream at a few random places.
func r8Damage(t *T, b []byte) []byte {
	for range 1 + t.Rand.IntN(4) {
		i := t.Rand.IntN(len(b))
		j := min(len(b), i+1+t.Rand.IntN(40))
		switch t.Rand.IntN(5) {
		case 0:
			b[i] = byte(t.Rand.IntN(256))
		case 1:
			b = append(b[:i:i], b[j:]...)
		case 2:
			b = append(b[:j:j], b[i:]...) // repeat a piece of it
		case 3:
			b[i] ^= 1 << t.Rand.IntN(8)
		case 4:
			b = append(append(b[:i:i], []string{`"`, "{", "]", "\n", "\\u", "null", "1e999"}[t.Rand.IntN(7)]...), b[i:]...)
		}
		if len(b) == 0 {
			return []byte("\n")
		}
	}
	return b
}
