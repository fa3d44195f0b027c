package task

import (
	"fmt"
	"testing"

	"centurion"
)

// ORCH-75: what waits while tasks are being written is taken a few at a time, in order; nothing twice and nothing left behind.
func TestBatches(t *testing.T) {
	ds := &recorder{}
	for i := range 10 {
		ds.waiting = append(ds.waiting, &delegation{task: centurion.Task{Title: fmt.Sprint(i)}})
	}
	n := 0
	for _, want := range []int{batch, batch, 10 - 2*batch, 0} {
		next := ds.next()
		if len(next) != want {
			t.Fatalf("%d are written together, want %d", len(next), want)
		}
		for _, d := range next {
			if d.task.Title != fmt.Sprint(n) {
				t.Errorf("%q is number %d", d.task.Title, n)
			}
			n++
		}
	}
}
