package demo

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"centurion"
	"centurion/store"
)

// What is judged is all that was left: every row of the journal, the tasks and calls of the latest mission, the plan and the lines.
func TestGather(t *testing.T) {
	dir := t.TempDir()
	database, project := filepath.Join(dir, "p.db"), filepath.Join(dir, "pocket")
	for name, text := range map[string]string{"plan.md": "# P\n- [x] T1 One\n- [ ] T2 Two\n", "changes/a": "lengths: done\n", "changes/b": "weights: done\n"} {
		path := filepath.Join(project, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 2*journalPage + 1
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		old := centurion.Task{ID: "tsk_0", Mission: "msn_0", Status: centurion.TaskCompleted}
		task := centurion.Task{ID: "tsk_1", Mission: "msn_1", Session: "ses_1", Status: centurion.TaskCompleted}
		ses := centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1"}}
		msg := centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleAssistant}
		said := centurion.Part{ID: "prt_1", MessageID: "msg_1", SessionID: "ses_1", Type: centurion.PartText, Text: "x"}
		call := centurion.Part{ID: "prt_2", MessageID: "msg_1", SessionID: "ses_1", Type: centurion.PartTool, Tool: "bash", State: &centurion.ToolState{Status: centurion.ToolCompleted}}
		err := errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_0"}), tx.PutMission(&centurion.Mission{ID: "msn_1", Todo: "plan.md"}),
			tx.PutTask(&old), tx.PutTask(&task), tx.PutSession(&ses), tx.PutMessage(&msg), tx.PutPart(&said), tx.PutPart(&call))
		for range rows {
			_, aerr := tx.Append(centurion.Event{Type: centurion.EventTaskQueued, Mission: "msn_1"})
			err = errors.Join(err, aerr)
		}
		return err
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	e, err := Gather(t.Context(), database, project, []centurion.Event{{Seq: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Journal) != rows || e.Journal[rows-1].Seq != rows || len(e.Told) != 1 {
		t.Errorf("%d rows of %d, %d told", len(e.Journal), rows, len(e.Told))
	}
	if len(e.Tasks) != 1 || e.Tasks[0].ID != "tsk_1" || len(e.Calls) != 1 || e.Calls[0].ID != "prt_2" {
		t.Errorf("tasks %+v, calls %+v", e.Tasks, e.Calls)
	}
	if len(e.Ticked) != 2 || !e.Ticked["T1"] || e.Ticked["T2"] || e.Changes != "lengths: done\nweights: done\n" {
		t.Errorf("ticked %v, lines %q", e.Ticked, e.Changes)
	}
	if !e.Exists("changes/a") || e.Exists("changes/c") {
		t.Error("a file is taken for another")
	}
}

// The kills are spread over the mission, each after some progress, and none is aimed after the last.
func TestAimsAreSpread(t *testing.T) {
	const kills = 5
	last := Whole * late / 100
	for seed := range uint64(200) {
		slow := &killing{KillOptions: KillOptions{Kills: kills}}
		fast := &killing{KillOptions: KillOptions{Kills: kills, Fast: true}}
		for k, r := range map[*killing]*rand.Rand{slow: rand.New(rand.NewPCG(seed, 1)), fast: rand.New(rand.NewPCG(seed, 1))} {
			k.random = r
		}
		for done := range kills + 1 {
			slow.done, fast.done = done, done
			a, b := slow.aim(), fast.aim()
			switch {
			case a.last != last || a.from != b.from || a.how != b.how || a.wait/10 != b.wait:
				t.Fatalf("seed %d, kill %d: %+v, in a hurry %+v", seed, done, a, b)
			case done == kills && a.from >= 0:
				t.Fatalf("seed %d: a kill too many at %d", seed, a.from)
			case done < kills && (a.from > last || a.from < done*last/kills) && a.from != slow.score+1 && a.how != whileBack:
				t.Fatalf("seed %d, kill %d at %d", seed, done, a.from)
			case done < kills && a.how != whileBack && a.from <= slow.score && a.from != last:
				t.Fatalf("seed %d, kill %d at %d, without progress since %d", seed, done, a.from, slow.score)
			case done == 0 && a.how == whileBack:
				t.Fatalf("seed %d: the first kill waits for a host to come back", seed)
			case a.how == intoCommand && a.wait > maxInto || a.wait > maxWhile:
				t.Fatalf("seed %d, kill %d waits for %s", seed, done, a.wait)
			}
			if done < kills {
				slow.score, fast.score = max(a.from, slow.score), max(a.from, fast.score)
			}
		}
	}
}
