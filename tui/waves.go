package tui

import (
	"slices"

	"centurion/event"
	"centurion/event/view"
)

// The types of a view's data.
type (
	Board = view.Board
	Task  = view.Task
	Ask   = view.Ask
	Retry = view.Retry
)

// Item is one item of a plan. No status means open; done and cancelled items block no others.
type Item = event.PlanItem

// Waves sorts items into waves: an item is in the first wave after the waves of all its predecessors. Within a wave the order of the
// plan is kept. stuck are the items that can never start, because they wait in a cycle, for themselves, for a missing item, or for one
// of these.
func Waves(items []Item) (waves [][]Item, stuck []Item) {
	waveOf := make(map[string]int, len(items))
	left := slices.Clone(items)
	for wave := 0; len(left) > 0; wave++ {
		var now, later []Item
		for _, it := range left {
			if ready(it, waveOf) {
				now = append(now, it)
			} else {
				later = append(later, it)
			}
		}
		if len(now) == 0 {
			return waves, later
		}
		for _, it := range now {
			waveOf[it.ID] = wave
		}
		waves = append(waves, now)
		left = later
	}
	return waves, nil
}

func ready(it Item, waveOf map[string]int) bool {
	return !slices.ContainsFunc(it.After, func(id string) bool {
		_, placed := waveOf[id]
		return !placed
	})
}
