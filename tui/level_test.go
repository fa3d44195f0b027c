package tui

import (
	"bytes"
	"testing"

	"centurion"
	"centurion/event"
)

// ORCH-8: a level is told when it changes, with who it is from unless it is the Commander's own assessment.
func TestLevelIsTold(t *testing.T) {
	s := newStage().
		at(centurion.EventMissionStarted, "ses_0", "", event.MissionData{Goal: "build it", Level: 3, LevelFrom: centurion.LevelByPerson}).
		at(centurion.EventMissionUpdated, "ses_0", "", event.MissionData{Level: 3, LevelFrom: centurion.LevelByPerson}).
		at(centurion.EventMissionUpdated, "ses_0", "", event.MissionData{Level: 3, LevelFrom: centurion.LevelByPerson}).
		at(centurion.EventMissionUpdated, "ses_0", "", event.MissionData{Level: 2, LevelFrom: centurion.LevelInferred}).
		at(centurion.EventMissionUpdated, "ses_0", "", event.MissionData{Level: 1, LevelFrom: "commander", Note: "a note"})
	var out bytes.Buffer
	if err := RunPlain(t.Context(), &out, s.seqOf()); err != nil {
		t.Fatal(err)
	}
	for said, times := range map[string]int{
		"level 3 · planned first, workers in waves, reviewed last · set\n": 1,
		"level 2 · a few independent items · inferred\n":                   1,
		"level 1 · one step: the Commander does it itself\n":               1,
		"a note\n": 1, "level": 3,
	} {
		if n := bytes.Count(out.Bytes(), []byte(said)); n != times {
			t.Errorf("%q is told %d times:\n%s", said, n, out.String())
		}
	}
}
