package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A native plugin asks the program during a call, and answers with what it got.
func TestNativeFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-A"), body)
		})
		var tool int
		h := Open([]Source{native("p")}, Options{Serve: serve, Start: script(func(_ int, m sent) string {
			switch m.Do {
			case "tool":
				tool = m.ID
				return `{"n":7,"fetch":{"method":"POST","path":"/session?x=1","headers":{"X-A":"b"},"body":"hi"}}` + "\n" + `{"n":8,"fetch":{"method":"B AD","path":"/"}}`
			case "fetched":
				if m.Params.N == 8 {
					return fmt.Sprintf(`{"id":%d,"progress":{"title":%q}}`, tool, m.Params.Error)
				}
				return fmt.Sprintf(`{"id":%d,"result":{"text":"%d %d %s"}}`, tool, m.Params.N, m.Params.Status, m.Params.Body)
			}
			return usual(m)
		})})
		defer h.Close()
		r, err := h.Call(t.Context(), Call{Tool: "t"}, json.RawMessage("{}"), nil)
		if want := "7 418 POST http://centurion.invalid/session?x=1 b hi"; err != nil || r.Text != want {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A plugin that does not read its answers holds no request longer than the limit, and none is left after its process.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served, ended atomic.Int32
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			defer ended.Add(1)
			if r.URL.Path == "/waits" {
				<-r.Context().Done()
				return
			}
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", maxPart)); err != nil {
					return
				}
			}
		})
		parts, refused, gaveUp := 0, 0, make(chan string, 1)
		h := Open([]Source{native("p")}, Options{Serve: serve, Start: script(func(_ int, m sent) string {
			switch {
			case m.Do == "tool":
				var b strings.Builder
				fmt.Fprintln(&b, `{"n":1,"fetch":{"method":"GET","path":"/much"}}`)
				for n := 1; n <= maxFetches+1; n++ { // the first is one too many
					fmt.Fprintf(&b, "{\"n\":%d,\"fetch\":{\"method\":\"GET\",\"path\":\"/waits\"}}\n", n)
				}
				return b.String() + `{"n":2,"fetch":{"cancel":true}}` + "\n" + usual(m)
			case m.Do == "fetched" && m.Params.Status == http.StatusTooManyRequests:
				refused++
			case m.Do == "fetched" && m.Params.N == 1 && m.Params.Error == "":
				if parts++; parts == maxUnread {
					return `{"n":1,"fetch":{"read":2}}`
				}
			case m.Do == "fetched" && m.Params.N == 1:
				gaveUp <- m.Params.Error
			}
			return usual(m)
		})})
		began := time.Now()
		if _, err := h.Call(t.Context(), Call{Tool: "t"}, nil, nil); err != nil {
			t.Fatal(err)
		}
		failed := <-gaveUp
		synctest.Wait()
		if took := time.Since(began); took < unreadLimit || took > unreadLimit+2*time.Second || failed != "the answer was not read for 30s" {
			t.Errorf("after %s: %q", took, failed)
		}
		if parts != maxUnread+2 || refused != 1 || served.Load() != maxFetches || ended.Load() != 2 {
			t.Errorf("%d parts, %d refused, %d served, %d ended", parts, refused, served.Load(), ended.Load())
		}
		if err := h.Close(); err != nil || ended.Load() != maxFetches {
			t.Errorf("%d ended, %v", ended.Load(), err)
		}
	})
}

// A letter that is written in two pieces reaches the plugin whole, and a request whose handler crashes is answered with that.
func TestPartsOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/crash" {
				panic("no")
			}
			for _, piece := range []string{"a\xc3", "\xa9b"} {
				_, _ = io.WriteString(w, piece)
				w.(http.Flusher).Flush()
			}
		})
		var tool, got = 0, map[int]string{}
		h := Open([]Source{native("p")}, Options{Serve: serve, Start: script(func(_ int, m sent) string {
			switch {
			case m.Do == "tool":
				tool = m.ID
				return `{"n":1,"fetch":{"path":"/letter"}}`
			case m.Do == "fetched" && m.Params.More:
				got[m.Params.N] += m.Params.Body
				return " "
			case m.Do == "fetched" && m.Params.N == 1:
				got[1] += m.Params.Body
				return `{"n":2,"fetch":{"path":"/crash"}}`
			case m.Do == "fetched":
				return fmt.Sprintf(`{"id":%d,"result":{"text":%q}}`, tool, got[1]+" "+m.Params.Error)
			}
			return usual(m)
		})})
		defer h.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if r, err := h.Call(ctx, Call{Tool: "t"}, nil, nil); err != nil || !strings.HasPrefix(r.Text, "aéb ") || !strings.Contains(r.Text, "crashed: no") {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
