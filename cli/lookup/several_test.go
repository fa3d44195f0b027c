package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// proven is a project with these receipts.
type proven struct {
	project
	receipts []centurion.Receipt
	err      error
}

func (p proven) Receipts(context.Context, string) ([]centurion.Receipt, error) {
	return p.receipts, p.err
}

// All are listed that a list is about, not only the first.
func TestSeveral(t *testing.T) {
	ctx, api := t.Context(), small()
	blocked := func(id, reason string) server.Mission { return mission(id, centurion.MissionBlocked, reason) }
	api.missions = []server.Mission{api.missions[0], blocked("msn_2", "no plan"), blocked("msn_3", "w asks: x? (centurion answer que_11 TEXT)"), blocked("msn_4", "no space")}
	api.asks = []store.Ask{{ID: "que_1", Type: store.AskQuestion, Mission: "msn_3"}, {ID: "a", Mission: "msn_9", Task: "tsk_9"}, {ID: "b", Mission: "msn_1", Task: "tsk_1"}, {ID: "c", Mission: "msn_1", Task: "tsk_2"}}
	all, err := Waiting(ctx, api)
	var got []string
	for _, a := range all[len(api.asks):] {
		got = append(got, a.ID+": "+a.Title)
	}
	want := "[msn_2: no plan msn_3: w asks: x? (answered; continue with: centurion resume msn_3) msn_4: no space]"
	if fmt.Sprint(got) != want || err != nil {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	if got := Asking(ctx, api, api.missions[0]); !maps.Equal(got, map[string]bool{"tsk_1": true, "tsk_2": true}) {
		t.Errorf("of msn_1 %v ask", got)
	}
	if got := Messages([]server.Message{{Info: centurion.Message{ID: "msg_1"}}, {Info: centurion.Message{ID: "msg_2"}}}); got[1].ID != "msg_2" {
		t.Errorf("%+v", got)
	}
	weak := []centurion.Receipt{{Task: "tsk_1", Passed: true, Proof: centurion.ProofFlaky}, {Task: "tsk_2", Passed: true, Proof: centurion.ProofFlaky}}
	if got := Doubts(ctx, proven{receipts: weak}, "msn_1"); len(got) != 2 || got["tsk_2"] == "" {
		t.Errorf("proven too little: %v", got)
	}
	if got := Doubts(ctx, proven{receipts: weak, err: errors.New("broken pipe")}, "msn_1"); got != nil {
		t.Errorf("of receipts that cannot be read: %v", got)
	}
	if err := RefuseMission(ctx, api, "msn_4"); centurion.HintOf(err) != `write to it: centurion send msn_4 "TEXT", then: centurion resume msn_4` {
		t.Error(centurion.HintOf(err))
	}
	if m, err := ToPause(ctx, api, "msn_1"); m.ID != "msn_1" || err != nil {
		t.Errorf("the running mission that is named: %s, %v", m.ID, err)
	}
	if _, err := Checkout(ctx, api, "msn_1"); saidOf(nil, err) != "path: msn_1 has written nothing yet and has no checkout | conflict | it gets one when it first writes; until then it reads the branch centurion/msn_1" {
		t.Error(saidOf(nil, err))
	}
}
