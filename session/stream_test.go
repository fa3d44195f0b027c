package session_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
)

// LOOP-24: also where the store takes longer than the model.
func TestRowBeforeFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Say: "Hello."}))
		var seen []centurion.Message
		r.cfg.Publish = func(centurion.Event) {
			if seen == nil {
				seen = r.messages()
			}
		}
		r.cfg.Fence = func(*store.Tx) error {
			time.Sleep(time.Minute)
			return nil
		}
		r.reopen()
		r.turn()
		if len(seen) != 2 || seen[1].Role != centurion.RoleAssistant || seen[1].Finish != "" || seen[1].Text() != "" || seen[1].ParentID != seen[0].ID {
			t.Fatalf("when the first piece of the answer was told there was stored: %+v", seen)
		}
		if id := r.last().ID; id != seen[1].ID {
			t.Errorf("the answer went to %s instead of %s", id, seen[1].ID)
		}
	})
}

// LOOP-33, IKI-34
func TestPartialTextIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "The quick brown fox jumps over the lazy dog, again and again and again."
		r := newRigOf(t, scripted.Config{Pace: 30 * time.Millisecond, Chunk: 2, Func: func(scripted.Request) scripted.Answer {
			return scripted.Answer{Reasoning: "Hm, I wonder.", Say: text, Calls: call(`noop {"a":"0123456789"}`).Calls}
		}}, tool{name: "noop"})
		stop := r.background()

		began := time.Now()
		const lag = 130 * time.Millisecond // 100 ms, and one more pause of the stream
		for range 8 {
			time.Sleep(170 * time.Millisecond)
			synctest.Wait()
			m := r.last()
			var got strings.Builder
			for _, p := range m.Parts {
				if p.Type == centurion.PartTool {
					got.WriteString(p.State.Raw)
				}
				got.WriteString(p.Text)
			}
			// The first chunk names the role only.
			least := 2 * int((time.Since(began)-lag)/(30*time.Millisecond)-1)
			if whole := "Hm, I wonder." + text; !strings.HasPrefix(whole, got.String()) || got.Len() < least || m.Finish != "" {
				t.Fatalf("after %v %q is stored (finish %q), of which %d bytes are due", time.Since(began), got.String(), m.Finish, least)
			}
		}
		if err := stop(centurion.ErrCancelled); centurion.KindOf(err) != centurion.KindCancelled {
			t.Error(err)
		}
	})
}

// LOOP-8, LOOP-33
func TestPartialTextIsStoredInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Say: "Well, it depends.", Chunk: 5, Stall: time.Minute}))
		stop := r.background()
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if got := r.last().Text(); got != "Well," {
			t.Errorf("%q is stored while the model is silent", got)
		}
		if err := stop(centurion.ErrCancelled); centurion.KindOf(err) != centurion.KindCancelled {
			t.Error(err)
		}
	})
}

// LOOP-11: whoever watches is told every piece of an answer.
func TestDeltasArePublished(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Reasoning: "Let me think.", Say: "A longer text in pieces."}))
	got := map[string]string{}
	r.cfg.Publish = func(e centurion.Event) {
		var d struct{ Part, Message, Field, Delta string }
		if err := json.Unmarshal(e.Data, &d); err != nil || e.Type != centurion.EventDelta || e.Session != r.id || e.Mission != "msn_1" || d.Part == "" || e.After == 0 {
			t.Errorf("%+v %v", e, err)
		}
		got[d.Field] += d.Delta
	}
	r.reopen()
	r.turn()
	if got["text"] != "A longer text in pieces." || got["reasoning"] != "Let me think." {
		t.Errorf("published: %v", got)
	}
}
