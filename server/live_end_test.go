package server_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator"
	"centurion/orchestrator/mail"
	"centurion/store"
	"centurion/workspace"
)

// errBegun ends a test's wait for an answer that nobody gives.
var errBegun = errors.New("it was begun")

type refusing struct{ *bench }

func (refusing) Launch(string) error { return errBegun }

// OPAL-36: a run of the profile assistant that is at work when it is written to, and ends before the message is stored, is begun
// anew. One that a person has paused meanwhile is not.
func TestPromptMeetsTheEnd(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	file, err := centurion.NewFile("a.png", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for status, begun := range map[centurion.MissionStatus]bool{centurion.MissionCompleted: true, centurion.MissionPaused: false} {
		t.Run(string(status), func(t *testing.T) {
			p := newProject(t)
			ws, err := workspace.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			stands := func(s centurion.MissionStatus) {
				err := p.store.Update(t.Context(), func(tx *store.Tx) error {
					m, err := tx.Mission(p.mission.ID)
					m.Status, m.Options.Profile = s, agents.ProfileAssistant
					return errors.Join(err, tx.PutMission(&m))
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			var host *orchestrator.Host
			host = orchestrator.New(orchestrator.Config{Store: p.store, Workspace: ws, Model: func(string) (orchestrator.Model, error) {
				if !host.Mail.Attended(p.mission.ID) { // the run, which has no model
					return orchestrator.Model{}, errBegun
				}
				stands(centurion.MissionCompleted) // in the middle of the prompt, while its file is looked at
				_, err := host.Run(t.Context(), p.mission.ID)
				stands(status)
				return orchestrator.Model{Media: centurion.Media{Image: true}}, err
			}})
			p.local.Host, p.local.Work = host, refusing{newBench()}
			stands(centurion.MissionRunning)
			p.session.Model = &centurion.SessionModel{ID: "m", Provider: "custom"}
			if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&p.session) }); err != nil {
				t.Fatal(err)
			}
			host.Mail.Expect(p.mission.ID)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err = p.local.Prompt(ctx, mail.Post{To: p.session.ID, Text: "well?", Files: []centurion.File{file}})
			if begun != errors.Is(err, errBegun) || !begun && centurion.KindOf(err) != centurion.KindConflict {
				t.Errorf("%v", err)
			}
		})
	}
}
