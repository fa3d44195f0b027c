package mail

import (
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/store"
	"centurion/store/storetest"
)

// A message is stored once for a receiver that will read it, however often it is sent; nobody else gets one.
func TestSend(t *testing.T) {
	t.Parallel()
	const completed, paused, cancelled = centurion.MissionCompleted, centurion.MissionPaused, centurion.MissionCancelled
	for name, c := range map[string]struct {
		status  centurion.MissionStatus
		profile string
		post    Post
		kind    centurion.Kind
		session string                  // of the stored message
		becomes centurion.MissionStatus // afterwards
	}{
		"to the mission's own agent":   {paused, "", Post{To: "msn_1", Text: "one"}, "", "ses_1", paused},
		"to a task":                    {paused, "", Post{To: "tsk_1", Text: "one", Queue: true}, "", "ses_2", paused},
		"to one without a session":     {paused, "", Post{To: "tsk_2", Text: "one"}, "", "tsk_2", paused},
		"to a task that has ended":     {paused, "", Post{To: "tsk_3", Text: "one"}, centurion.KindConflict, "", paused},
		"to nobody":                    {paused, "", Post{To: "tsk_9", Text: "one"}, centurion.KindNotFound, "", paused},
		"without a text":               {paused, "", Post{To: "msn_1", Text: " \n"}, centurion.KindUsage, "", paused},
		"as long as may be":            {paused, "", Post{To: "msn_1", Text: strings.Repeat("a", MaxPost)}, "", "ses_1", paused},
		"too long":                     {paused, "", Post{To: "msn_1", Text: strings.Repeat("a", MaxPost+1)}, centurion.KindUsage, "", paused},
		"to a complete mission":        {completed, "", Post{To: "msn_1", Text: "one"}, centurion.KindConflict, "", completed},
		"to a complete run":            {completed, agents.ProfileAssistant, Post{To: "msn_1", Text: "one"}, "", "ses_1", paused},
		"to a task of a complete run":  {completed, agents.ProfileAssistant, Post{To: "tsk_1", Text: "one"}, centurion.KindConflict, "", completed},
		"to a run that was cancelled":  {cancelled, agents.ProfileAssistant, Post{To: "msn_1", Text: "one"}, centurion.KindConflict, "", cancelled},
		"to a mission that has failed": {centurion.MissionFailed, "", Post{To: "msn_1", Text: "one"}, "", "ses_1", centurion.MissionFailed},
	} {
		st := storetest.Open(t)
		m := centurion.Mission{ID: "msn_1", Session: "ses_1", Status: c.status, Options: centurion.MissionOptions{Profile: c.profile}}
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutMission(&m), tx.PutSession(&centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}),
				tx.PutSession(&centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/0", Task: "tsk_1"}}),
				tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: m.ID, Session: "ses_2", Status: centurion.TaskRunning}),
				tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: m.ID, Status: centurion.TaskWaiting}), tx.PutTask(&centurion.Task{ID: "tsk_3", Mission: m.ID, Status: centurion.TaskFailed}))
		})
		if err != nil {
			t.Fatal(err)
		}
		c.post.ID = "del_1"
		d := New(st, nil, func(string) *agent.Sessions { return nil })
		var sent []store.Delivery
		for range 2 {
			if _, err := d.Send(t.Context(), c.post); centurion.KindOf(err) != c.kind {
				t.Errorf("%s: %v, want %q", name, err, c.kind)
			}
		}
		for _, to := range []string{"ses_1", "ses_2", "tsk_2"} {
			got, err := st.PendingDeliveries(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, got...)
		}
		told, err := st.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventMessageQueued}})
		now, merr := st.Mission(t.Context(), m.ID)
		if err != nil || merr != nil || now.Status != c.becomes || len(sent) != len(told) || (len(sent) == 1) != (c.kind == "") {
			t.Errorf("%s: %d stored, %d told, the mission is %s: %v, %v", name, len(sent), len(told), now.Status, err, merr)
		}
		if len(sent) == 1 && (sent[0].Session != c.session || sent[0].Text != c.post.Text || sent[0].Queue != c.post.Queue || !sent[0].Wake || sent[0].Origin != centurion.OriginPerson) {
			t.Errorf("%s: stored %+v", name, sent[0])
		}
	}
}
