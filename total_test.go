package centurion

import "testing"

// LOOP-61: a session's total holds its children's at any depth, whoever has failed, and nobody else's.
func TestSpentBy(t *testing.T) {
	s := func(id, parent string, n int64, usd float64) Session {
		return Session{ID: id, ParentID: parent, Cost: usd, Tokens: Tokens{Input: n, Output: 1}}
	}
	sessions := []Session{s("root", "", 1, 0.1), s("a", "root", 20, 0.2), s("b", "root", 300, 0.3), s("aa", "a", 4000, 0.4), s("other", "", 50_000, 9)}
	tasks := []Task{{Session: "a", ElapsedMS: 20}, {Session: "a", ElapsedMS: 5, Status: TaskFailed}, {Session: "aa", ElapsedMS: 4000}, {Session: "b", ElapsedMS: 300}}
	m := Mission{Session: "root", ElapsedMS: 1}
	for _, test := range []struct {
		id         string
		own, total int64
		ms, allMS  int64
		usd        float64
	}{{"root", 2, 4325, 1, 4326, 1.0}, {"a", 21, 4022, 25, 4025, 0.6}, {"aa", 4001, 4001, 4000, 4000, 0.4}, {"nobody", 0, 0, 0, 0, 0}} {
		own, total := SpentBy(test.id, m, sessions, tasks)
		if own.Tokens.Total() != test.own || total.Tokens.Total() != test.total || own.ElapsedMS != test.ms || total.ElapsedMS != test.allMS || total.USD != test.usd {
			t.Errorf("%s: own %+v, total %+v", test.id, own, total)
		}
	}
	sessions[3].Metadata.Unpriced = true
	if own, total := SpentBy("root", m, sessions, tasks); own.Unpriced || !total.Unpriced {
		t.Error("what has no price has vanished")
	}
	sessions[0].ParentID = "aa" // damaged: it ends all the same
	if _, total := SpentBy("root", m, sessions, tasks); total.Tokens.Total() != 4325 {
		t.Errorf("%+v", total)
	}
}
