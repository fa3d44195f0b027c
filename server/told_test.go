package server_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/orchestrator/retention"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
)

// fill gives every field below v a value that is not zero.
func fill(v reflect.Value, n *int) {
	*n++
	for _, whole := range []any{centurion.Time{Time: time.UnixMilli(int64(*n) * 1000).UTC()}, // what has a form of its own in JSON
		centurion.File{Mime: centurion.MimePDF, Path: "v", Data: []byte{1}}, centurion.Part{ID: "v", Type: centurion.PartText, Text: "v"}} {
		if v.Type() == reflect.TypeOf(whole) {
			v.Set(reflect.ValueOf(whole))
			return
		}
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("v", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.Type() != reflect.PointerTo(v.Type()) { // it may hold one of its own kind, and so on
				fill(field, n)
			}
		}
	}
}

// What is told of a mission and of a task is what is recorded of them, field by field, but for what concerns the host alone.
func TestNothingIsLeftOut(t *testing.T) {
	p, n := newProject(t), 0
	var m centurion.Mission
	var task centurion.Task
	fill(reflect.ValueOf(&m).Elem(), &n)
	fill(reflect.ValueOf(&task).Elem(), &n)
	m.ID, m.Status, m.Session = p.mission.ID, centurion.MissionPaused, p.session.ID
	task.ID, task.Mission, task.Session, task.Parent, task.Status = p.task.ID, p.mission.ID, p.session.ID, p.session.ID, centurion.TaskCompleted
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		return tx.PutTask(&task)
	}); err != nil {
		t.Fatal(err)
	}
	ctx, c := t.Context(), connect(t, p.local)
	recorded, err := p.store.Mission(ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	told, err := c.Mission(ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	missing := differ(recorded, told.Noun())
	if want := strings.Fields("Runs HadItems Adopted Accepted Approved Check Reopened Revert Wrote Landed Merging TakenBack Reverted"); !slices.Equal(missing, want) {
		t.Errorf("of a mission is not told: %q", missing)
	}
	one, err := c.Task(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if one.Name != task.Name() {
		t.Errorf("its name is %q", one.Name)
	}
	before, err := p.store.Task(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if missing := differ(before, one.Noun()); !slices.Equal(missing, strings.Fields("Reviews Verify Context CameBack Archived Archiving Sub Overlaps Unchanged Rejections Merging Frozen Exchanged")) {
		t.Errorf("of a task is not told: %q", missing)
	}
}

// differ names the fields in which two structs differ.
func differ[T any](a, b T) (names []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			names = append(names, x.Type().Field(i).Name)
		}
	}
	return names
}

func (r *recording) Stop(_ context.Context, id, reason string) error {
	r.calls = append(r.calls, "stop "+id+" "+reason)
	return nil
}

func (r *recording) Abort(_ context.Context, id, reason string) error {
	r.calls = append(r.calls, "abort "+id+" "+reason)
	return nil
}

func (r *recording) Pause(_ context.Context, id, reason string) error {
	r.calls = append(r.calls, "pause "+id+" "+reason)
	return nil
}

func (r *recording) Compact(_ context.Context, id, model string) error {
	r.calls = append(r.calls, "compact "+id+" "+model)
	return nil
}

func (r *recording) Tidy(_ context.Context, o retention.TidyOptions) (retention.TidyReport, error) {
	r.calls = append(r.calls, fmt.Sprintf("tidy %+v", o))
	return retention.TidyReport{}, nil
}

func (r *recording) Resume(_ context.Context, id string, o centurion.MissionOptions) (server.Mission, error) {
	r.calls = append(r.calls, fmt.Sprint("resume ", id, " ", o.MaxCost))
	return server.Mission{}, nil
}

func (r *recording) Start(_ context.Context, goal string, o centurion.MissionOptions) (server.Mission, error) {
	r.calls = append(r.calls, fmt.Sprint("start ", goal, " ", o.MaxCost))
	return server.Mission{}, nil
}

func (r *recording) Diff(_ context.Context, id string, o takeover.DiffOptions) (takeover.Change, error) {
	r.calls = append(r.calls, fmt.Sprintf("diff %s %+v", id, o))
	return takeover.Change{Patch: "p"}, nil
}

func (r *recording) Merge(_ context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	r.calls = append(r.calls, fmt.Sprintf("merge %s %+v", id, q))
	return takeover.MergeReport{Goal: "g"}, nil
}

func (r *recording) Undo(_ context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	r.calls = append(r.calls, fmt.Sprintf("undo %s %+v", id, q))
	return takeover.UndoReport{Title: "g"}, nil
}

// What a client asks for reaches the host as it was asked, with every option.
func TestEachRoute(t *testing.T) {
	r, ctx := &recording{}, t.Context()
	c := connect(t, r)
	n := 0
	var tidy retention.TidyOptions
	var merge takeover.MergeRequest
	var undo takeover.UndoRequest
	fill(reflect.ValueOf(&tidy).Elem(), &n)
	fill(reflect.ValueOf(&merge).Elem(), &n)
	fill(reflect.ValueOf(&undo).Elem(), &n)
	diff := takeover.DiffOptions{Patch: true, Color: true, Paths: []string{"a b", "c"}}
	for want, call := range map[string]func() error{
		"stop x why":                      func() error { return c.Stop(ctx, "x", "why") },
		"abort x why":                     func() error { return c.Abort(ctx, "x", "why") },
		"pause x why":                     func() error { return c.Pause(ctx, "x", "why") },
		"compact x a/b":                   func() error { return c.Compact(ctx, "x", "a/b") },
		fmt.Sprintf("tidy %+v", tidy):     func() error { _, err := c.Tidy(ctx, tidy); return err },
		"resume x 2":                      func() error { _, err := c.Resume(ctx, "x", centurion.MissionOptions{MaxCost: 2}); return err },
		"start x 2":                       func() error { _, err := c.Start(ctx, "x", centurion.MissionOptions{MaxCost: 2}); return err },
		fmt.Sprintf("merge x %+v", merge): func() error { _, err := c.Merge(ctx, "x", merge); return err },
		fmt.Sprintf("undo x %+v", undo):   func() error { _, err := c.Undo(ctx, "x", undo); return err },
		fmt.Sprintf("diff x %+v", diff):   func() error { _, err := c.Diff(ctx, "x", diff); return err },
		fmt.Sprintf("diff y %+v", takeover.DiffOptions{}): func() error { _, err := c.Diff(ctx, "y", takeover.DiffOptions{}); return err },
	} {
		r.calls = nil
		if err := call(); err != nil || !slices.Equal(r.calls, []string{want}) {
			t.Errorf("%v\n%s", err, cmp.Diff([]string{want}, r.calls))
		}
	}
}

// What runs is told as it runs where a host is; without one it is told as interrupted, whatever the store says.
func TestWhatRunsWithoutAHost(t *testing.T) {
	p, ctx := newProject(t), t.Context()
	p.mission.Status, p.mission.Reserved, p.mission.Reason = centurion.MissionRunning, centurion.Reserved{Tokens: 5}, ""
	p.task.Status = centurion.TaskRunning
	if err := p.store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.PutMission(&p.mission); err != nil {
			return err
		}
		return tx.PutTask(&p.task)
	}); err != nil {
		t.Fatal(err)
	}
	nobody := &server.Local{Store: p.store}
	for _, test := range []struct {
		l       *server.Local
		mission centurion.MissionStatus
		task    centurion.TaskStatus
		reason  string
		tokens  int64
	}{{p.local, centurion.MissionRunning, centurion.TaskRunning, "", 5}, {nobody, centurion.MissionPaused, centurion.TaskQueued, server.Interrupted, 0}} {
		m, err := test.l.Mission(ctx, p.mission.ID)
		if err != nil || m.Status != test.mission || m.Reason != test.reason || m.Reserved.Tokens != test.tokens || m.Tasks[string(test.task)] != 1 {
			t.Errorf("%+v, %v", m, err)
		}
		tasks, err := test.l.Tasks(ctx, p.mission.ID)
		if err != nil || len(tasks) != 1 || tasks[0].Status != test.task || tasks[0].Reason != test.reason {
			t.Errorf("%+v, %v", tasks, err)
		}
		if one, err := test.l.Task(ctx, p.task.ID); err != nil || one.Status != test.task {
			t.Errorf("%+v, %v", one, err)
		}
	}
	for name, err := range map[string]error{
		"diff":  func() error { _, err := nobody.Diff(ctx, p.mission.ID, takeover.DiffOptions{}); return err }(),
		"merge": func() error { _, err := nobody.Merge(ctx, p.mission.ID, takeover.MergeRequest{}); return err }(),
		"undo":  func() error { _, err := nobody.Undo(ctx, p.mission.ID, takeover.UndoRequest{}); return err }(),
		"pause": nobody.Pause(ctx, p.mission.ID, ""),
	} {
		if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), name) {
			t.Errorf("%s without a host: %v", name, err)
		}
	}
}
