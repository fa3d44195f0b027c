package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"centurion"
	"centurion/store"
	"centurion/workspace/todo"
)

// damage counts the findings of a check.
type damage struct{ lost, twice int }

// check checks the invariants of a project after a trial: I1 to I5 (I6 belongs to each command, see [project.Told]). Violations fail
// the trial; the counts are for its figures. No process of the project may be running any more.
func check(t *T, p *project, acknowledged []centurion.Event) damage {
	if left := p.gone(goneLimit); len(left) > 0 {
		t.Failf("I5 %d processes are left behind: %q", len(left), left)
	}
	if m := p.Model; m != nil {
		if v := m.Violations(); len(v) > 0 {
			t.Failf("I3 the model was sent %d requests that a strict provider refuses, first %+v", len(v), v[0])
		}
	}
	var d damage
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), waitLimit)
	defer cancel()
	path := p.Database()
	if path == "" {
		if len(acknowledged) > 0 {
			t.Failf("I1 %d facts were told and there is no state file", len(acknowledged))
		}
		return damage{lost: len(acknowledged)}
	}
	s, err := store.Open(ctx, path)
	if err != nil {
		t.Failf("I1 the state cannot be opened: %v", err)
		return damage{lost: len(acknowledged)}
	}
	defer s.Close()
	facts, err := allEvents(ctx, s)
	if err != nil {
		t.Failf("I1 the journal cannot be read: %v", err)
	}
	d.lost = checkTold(t, facts, acknowledged)
	d.twice = checkOnce(t, facts)
	missions, err := s.Missions(ctx)
	t.Must(err)
	for _, m := range missions {
		d.twice += checkTasks(ctx, t, s, m)
		checkHistories(ctx, t, s, m)
		checkPlan(t, p, m)
	}
	return d
}

// allEvents reads the whole journal.
func allEvents(ctx context.Context, s *store.Store) ([]centurion.Event, error) {
	var all []centurion.Event
	for after := int64(0); ; {
		page, err := s.Events(ctx, store.EventQuery{After: after})
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
}

// checkTold is I1 and the journal's part of I3: what was reported is there unchanged, and no number is missing.
func checkTold(t *T, facts, told []centurion.Event) (lost int) {
	bySeq := map[int64]centurion.Event{}
	for i, e := range facts {
		bySeq[e.Seq] = e
		if e.Seq != int64(i+1) {
			t.Failf("I3 the journal's row %d has the number %d", i+1, e.Seq)
			break
		}
	}
	for _, e := range told {
		if e.Seq == 0 {
			continue // a delta
		}
		if now := bySeq[e.Seq]; now.Type != e.Type || now.Mission != e.Mission || now.Task != e.Task || !equalJSON(now.Data, e.Data) {
			lost++
			t.Failf("I1 told as %d: %s %s; in the journal: %s %s", e.Seq, e.Type, centurion.Clip(string(e.Data), 300), now.Type, centurion.Clip(string(now.Data), 300))
		}
	}
	return lost
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes()) {
		return true
	}
	var v, w any // the same letter can be written in two ways
	return json.Unmarshal(a, &v) == nil && json.Unmarshal(b, &w) == nil && reflect.DeepEqual(v, w)
}

// checkOnce is the journal's part of I2: no task ends twice, and no call starts or ends twice.
func checkOnce(t *T, facts []centurion.Event) (twice int) {
	seen := map[string]int64{}
	for _, e := range facts {
		key := ""
		switch e.Type {
		case centurion.EventTaskCompleted, centurion.EventTaskDelivered:
			key = string(e.Type) + " " + e.Task
		case centurion.EventToolStarted, centurion.EventToolCompleted:
			var d struct{ Call string }
			if err := json.Unmarshal(e.Data, &d); err != nil || d.Call == "" {
				t.Failf("I3 event %d has no call: %s", e.Seq, e.Data)
				continue
			}
			key = string(e.Type) + " " + e.Session + " " + d.Call
		default:
			continue
		}
		if before := seen[key]; before != 0 {
			twice++
			t.Failf("I2 %s stands twice in the journal, as %d and %d", key, before, e.Seq)
		}
		seen[key] = e.Seq
	}
	return twice
}

// checkTasks is the tasks' part of I2: one task for each call, and no result waits for a parent that has ended.
func checkTasks(ctx context.Context, t *T, s *store.Store, m centurion.Mission) (twice int) {
	tasks, err := s.Tasks(ctx, m.ID)
	t.Must(err)
	calls, items := map[string]string{}, map[string]string{}
	for _, task := range tasks {
		call := task.Parent + " " + task.Call
		if other := calls[call]; other != "" {
			twice++
			t.Failf("I2 the call %s made two tasks, %s and %s", call, other, task.ID)
		}
		calls[call] = task.ID
		if task.Item == "" || task.Status != centurion.TaskCompleted {
			continue
		}
		if other := items[task.Item]; other != "" {
			twice++
			t.Failf("I2 the item %s was completed twice, by %s and %s", task.Item, other, task.ID)
		}
		items[task.Item] = task.ID
	}
	if m.Status != centurion.MissionCompleted {
		return twice
	}
	all, err := s.Deliveries(ctx, m.ID)
	t.Must(err)
	for _, d := range all {
		word := d.Task == "" && d.Origin == centurion.OriginHost && !d.Wake // it waits for the next request, which need not come
		if d.Taken.IsZero() && !word {
			t.Failf("I1 the mission is complete and the result of %s was never delivered", d.Task)
		}
	}
	return twice
}

// checkHistories is the messages' part of I3: they are in order, and each call has exactly one answer.
func checkHistories(ctx context.Context, t *T, s *store.Store, m centurion.Mission) {
	sessions, err := s.Sessions(ctx, m.ID)
	t.Must(err)
	for _, one := range sessions {
		msgs, err := s.Messages(ctx, one.ID)
		t.Must(err)
		if !slices.IsSortedFunc(msgs, func(a, b centurion.Message) int { return int(a.Time.Created - b.Time.Created) }) {
			t.Failf("I3 the messages of %s are out of order", one.ID)
		}
		calls := map[string]bool{}
		for _, msg := range msgs {
			for _, part := range msg.Parts {
				if part.Type != centurion.PartTool {
					continue
				}
				if calls[part.CallID] {
					t.Failf("I3 the call %s stands twice in %s", part.CallID, one.ID)
				}
				calls[part.CallID] = true
				if m.Status == centurion.MissionCompleted && (part.State == nil || !part.State.Ended()) {
					t.Failf("I3 the mission is complete and the call %s (%s) of %s has no answer", part.CallID, part.Tool, one.ID)
				}
			}
		}
	}
}

// checkPlan is I4: the plan is readable, and in a complete mission everything is done or cancelled.
func checkPlan(t *T, p *project, m centurion.Mission) {
	if m.Todo == "" { // it answers without a plan
		return
	}
	b, err := os.ReadFile(filepath.Join(p.Dir, filepath.FromSlash(m.Todo)))
	if os.IsNotExist(err) && !m.HadItems {
		return
	}
	if err != nil {
		t.Failf("I4 %s: %v", m.Todo, err)
		return
	}
	doc, err := todo.Parse(b)
	if err == nil && len(doc.Problems()) > 0 {
		err = fmt.Errorf("%v", doc.Problems())
	}
	if err != nil {
		t.Failf("I4 %s is torn: %v; it holds:\n%s", m.Todo, err, b)
		return
	}
	if c := doc.Counts(); m.Status == centurion.MissionCompleted && c.Open+c.Running+c.Blocked > 0 {
		t.Failf("I4 the mission is complete and its plan is not: %+v", c)
	}
	if stray, _ := filepath.Glob(filepath.Join(p.Dir, ".opencode", "*tmp*")); m.Status == centurion.MissionCompleted && len(stray) > 0 {
		t.Logf("left beside the plan: %q", stray)
	}
}

// Told returns what a finished run or resume has reported, after checking that its exit code and its last line agree (I6). A killed one
// owes nothing.
func (p *project) Told(c *process) []centurion.Event {
	told, err := c.Events()
	if err != nil {
		p.t.Failf("I6 %v", err)
	}
	last := centurion.EventType("nothing")
	if len(told) > 0 {
		last = told[len(told)-1].Type
	}
	want := map[int][]centurion.EventType{
		0: {centurion.EventMissionCompleted}, 1: {centurion.EventMissionFailed}, 3: {centurion.EventMissionPaused},
		4: {centurion.EventMissionBlocked}, 5: {centurion.EventMissionCancelled}, 130: {centurion.EventMissionPaused},
	}
	code := c.Code()
	if types, known := want[code]; known && !slices.Contains(types, last) {
		p.t.Failf("I6 it exited with %d and the last line is %s; standard error: %s", code, last, lastLines(c.Stderr(), 3))
	}
	return told
}

// goneLimit is how long ending processes may take to disappear. What a trial looks for stays much longer.
const goneLimit = 20 * time.Second

// gone waits until no process of the project is left, and returns those that stay.
func (p *project) gone(limit time.Duration) []string {
	deadline := time.Now().Add(limit)
	for {
		left := p.left()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(20 * time.Millisecond) // a killed process takes a moment to disappear
	}
}
