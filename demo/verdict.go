package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/host"
)

// KillData is the data of the last line of `centurion demo --kill --format json`.
type KillData struct {
	Kills       int      `json:"kills"`
	Lost        int      `json:"lost"`
	Twice       int      `json:"twice"`
	Found       []string `json:"found,omitempty"` // what was lost or done twice, in words
	Events      int      `json:"events"`          // reported and in the journal
	Torn        int      `json:"torn"`            // lines cut off by a kill
	Retried     int      `json:"retried"`         // tasks tried again
	Interrupted int      `json:"interrupted"`     // calls answered as interrupted
	RecoveryMS  int64    `json:"recovery_ms"`     // the longest time from a kill to the next host's first line
	Seed        uint64   `json:"seed"`
}

// verdict prints the last line, with the counts.
func (k *killing) verdict(ctx context.Context) (ok bool, err error) {
	e, err := Gather(ctx, host.Place{State: k.stage.State}.Database(), k.stage.Project, k.told)
	if err != nil {
		return false, err
	}
	v := Judge(e)
	found := slices.Concat(v.Lost, v.Twice)
	ok = k.whole(found, len(k.stage.Model.Violations()))
	kept := len(k.told) - countPrefix(v.Lost, "event ")
	if k.Out == nil {
		line := centurion.Event{After: k.seq(), Time: centurion.Now(), Type: "demo.kill", Mission: k.told[0].Mission, Data: event.Data(KillData{
			Kills: k.done, Lost: len(v.Lost), Twice: len(v.Twice), Found: found, Events: kept, Torn: k.torn, Retried: k.tried,
			Interrupted: k.lost, RecoveryMS: k.slow.Milliseconds(), Seed: k.Seed})}
		return ok, k.Show(ctx, func(yield func(centurion.Event, error) bool) { yield(line, nil) })
	}
	k.line("\nLook at what was made: %s", k.stage.Project)
	k.line("%s of %d told by %s in the journal as they were told · %s tried again · %s answered as interrupted · back after %d ms at most",
		centurion.Count(kept, "event"), len(k.told), centurion.Count(k.done+1, "host"), centurion.Count(k.tried, "task"),
		centurion.Count(k.lost, "call"), k.slow.Milliseconds())
	for _, f := range found {
		k.line("%s %s", k.paint(red, "✗"), f)
	}
	for _, bad := range k.stage.Model.Violations() {
		k.line("%s the model was sent a request that a strict provider refuses: %v", k.paint(red, "✗"), bad)
	}
	if k.done < k.Kills {
		k.line("the mission was over before kill %d; try another --seed than %d", k.done+1, k.Seed)
	}
	_, err = fmt.Fprintf(k.Out, "%d kills · %d lost · %d done twice\n", k.done, len(v.Lost), len(v.Twice))
	return ok, err
}

// whole reports whether everything requested came, and nothing was lost, done twice or refused by the model.
func (k *killing) whole(found []string, refused int) bool {
	return len(found) == 0 && k.done >= k.Kills && refused == 0
}

func countPrefix(list []string, prefix string) (n int) {
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}
