package task

import (
	"fmt"
	"testing"

	"centurion"
	"centurion/guard"
)

// ORCH-75: what waits while tasks are being written is taken a few at a time, in order; nothing twice and nothing left behind.
func TestBatches(t *testing.T) {
	ds := &recorder{}
	for i := range 10 {
		ds.waiting = append(ds.waiting, &delegation{tasks: []centurion.Task{{Title: fmt.Sprint(i)}}})
	}
	n := 0
	for _, want := range []int{batch, batch, 10 - 2*batch, 0} {
		next := ds.next()
		if len(next) != want {
			t.Fatalf("%d are written together, want %d", len(next), want)
		}
		for _, d := range next {
			if d.tasks[0].Title != fmt.Sprint(n) {
				t.Errorf("%q is number %d", d.tasks[0].Title, n)
			}
			n++
		}
	}
}

// A delegation has its place as soon as it waits: the next call of an answer is not held up until others are written.
func TestRecordBeginsBeforeItIsWritten(t *testing.T) {
	ts := &Tasks{}
	ts.recorder.writing.Lock()
	var g guard.Group
	begun := make(chan int)
	g.Go("delegate", func() error {
		got, err := ts.Record(centurion.Task{Title: "one"}, func() { begun <- ts.Unrecorded() })
		if got.Title != "one recorded" {
			t.Errorf("%q", got.Title)
		}
		return err
	})
	if n := <-begun; n != 1 {
		t.Errorf("%d delegations wait", n)
	}
	for _, d := range ts.recorder.next() { // another one writes it
		d.tasks[0].Title, d.done = "one recorded", true
	}
	ts.recorder.writing.Unlock()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
