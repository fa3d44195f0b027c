package centurion_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
)

var missionStatuses = []centurion.MissionStatus{centurion.MissionPlanning, centurion.MissionRunning, centurion.MissionPaused,
	centurion.MissionBlocked, centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled}

func TestMissionMoves(t *testing.T) {
	end := []centurion.MissionStatus{centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled}
	resume := []centurion.MissionStatus{centurion.MissionPlanning, centurion.MissionRunning, centurion.MissionCancelled}
	checkMoves(t, missionStatuses, centurion.MissionStatus.CanBecome, map[centurion.MissionStatus][]centurion.MissionStatus{
		"":                         {centurion.MissionPlanning},
		centurion.MissionPlanning:  append(end, centurion.MissionRunning, centurion.MissionPaused, centurion.MissionBlocked),
		centurion.MissionRunning:   append(end, centurion.MissionPaused, centurion.MissionBlocked),
		centurion.MissionPaused:    append(resume, centurion.MissionCompleted),
		centurion.MissionBlocked:   resume,
		centurion.MissionFailed:    {centurion.MissionRunning, centurion.MissionCancelled, centurion.MissionPaused},
		centurion.MissionCompleted: {centurion.MissionPaused},
		centurion.MissionCancelled: {centurion.MissionPaused},
	})
	for _, s := range missionStatuses {
		if want := s == centurion.MissionPlanning || s == centurion.MissionRunning; s.Alive() != want {
			t.Errorf("%s: alive is %v", s, s.Alive())
		}
		if want := s == centurion.MissionCompleted || s == centurion.MissionCancelled; s.Ended() != want {
			t.Errorf("%s: ended is %v", s, s.Ended())
		}
		m := centurion.Mission{Status: s}
		if m.HasPlan() != s.Alive() {
			t.Errorf("%s: a plan is %v", s, m.HasPlan())
		}
		owner, had := centurion.Mission{Status: s, OwnsTodo: true}, centurion.Mission{Status: s, HadItems: true}
		if !owner.HasPlan() || !had.HasPlan() {
			t.Errorf("%s: it has lost its plan", s)
		}
	}
}

func TestTaskMoves(t *testing.T) {
	end := []centurion.TaskStatus{centurion.TaskFailed, centurion.TaskCancelled, centurion.TaskBlocked}
	with := func(s ...centurion.TaskStatus) []centurion.TaskStatus { return slices.Concat(end, s) }
	checkMoves(t, centurion.TaskStatuses, centurion.TaskStatus.CanBecome, map[centurion.TaskStatus][]centurion.TaskStatus{
		"":                      {centurion.TaskQueued},
		centurion.TaskQueued:    with(centurion.TaskRunning, centurion.TaskWaiting),
		centurion.TaskWaiting:   with(centurion.TaskQueued, centurion.TaskRunning),
		centurion.TaskRunning:   with(centurion.TaskQueued, centurion.TaskWaiting, centurion.TaskVerifying, centurion.TaskMerging, centurion.TaskCompleted),
		centurion.TaskVerifying: with(centurion.TaskQueued, centurion.TaskRunning, centurion.TaskWaiting, centurion.TaskMerging, centurion.TaskCompleted),
		centurion.TaskMerging:   with(centurion.TaskQueued, centurion.TaskRunning, centurion.TaskWaiting, centurion.TaskCompleted),
		centurion.TaskBlocked:   {centurion.TaskQueued, centurion.TaskCancelled},
		centurion.TaskCompleted: nil,
		centurion.TaskFailed:    nil,
		centurion.TaskCancelled: nil,
	})
	for _, s := range centurion.TaskStatuses {
		// What has ended is not worked on unless somebody asks for it: only a blocked task can come back, by the queue.
		if s.Ended() && (s.CanBecome(centurion.TaskRunning) || s.CanBecome(centurion.TaskCompleted)) {
			t.Errorf("%s has ended and moves on", s)
		}
		if want := slices.Contains([]centurion.TaskStatus{centurion.TaskCompleted, centurion.TaskFailed, centurion.TaskCancelled, centurion.TaskBlocked}, s); s.Ended() != want {
			t.Errorf("%s: ended is %v", s, s.Ended())
		}
		if !s.Ended() && !s.CanBecome(centurion.TaskCancelled) {
			t.Errorf("%s is alive and cannot be cancelled", s)
		}
	}
}

// checkMoves compares every pair of states with what the table allows, and finds states that nothing leads to.
func checkMoves[S ~string](t *testing.T, all []S, can func(from, to S) bool, want map[S][]S) {
	t.Helper()
	for _, from := range append([]S{"", "unheard of"}, all...) {
		for _, to := range append([]S{"", "unheard of"}, all...) {
			if got := can(from, to); got != slices.Contains(want[from], to) {
				t.Errorf("from %q to %q: %v", from, to, got)
			}
		}
	}
	reached := []S{""}
	for i := 0; i < len(reached); i++ {
		for _, to := range all {
			if can(reached[i], to) && !slices.Contains(reached, to) {
				reached = append(reached, to)
			}
		}
	}
	for _, s := range all {
		if !slices.Contains(reached, s) {
			t.Errorf("nothing leads to %s", s)
		}
	}
}

// Only a mission that was to be proven is told as not verified.
func TestMissionWord(t *testing.T) {
	for _, tt := range []struct {
		status   centurion.MissionStatus
		evidence centurion.Evidence
		profile  string
		want     string
	}{
		{centurion.MissionCompleted, centurion.EvidenceNone, "", "completed, not verified"},
		{centurion.MissionCompleted, centurion.EvidenceNone, "mission", "completed, not verified"},
		{centurion.MissionCompleted, centurion.EvidenceNone, "assistant", "completed"},
		{centurion.MissionCompleted, centurion.EvidenceChecked, "mission", "completed"},
		{centurion.MissionCompleted, "", "", "completed"}, // an older version's
		{centurion.MissionFailed, centurion.EvidenceNone, "", "failed"},
	} {
		if got := tt.status.Word(tt.evidence, tt.profile); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// What an undo keeps of how a mission had ended is all that its redo needs.
func TestStands(t *testing.T) {
	was := centurion.Mission{Status: centurion.MissionCompleted, Reason: "r", Summary: "s", Reopened: 1, Tally: centurion.Tally{Verified: 2, Unverified: 3, Unproven: []string{"T4"}, Flaky: []string{"T5"},
		Reviewed: map[string]centurion.PassedBy{"T1": {}}, CancelledItems: []string{"T6"}}, Evidence: centurion.EvidenceProven, Check: "make"}
	var m centurion.Mission
	if m.Stands(was); !reflect.DeepEqual(m, was) {
		t.Errorf("%+v", m)
	}
}

// A commit is merged if the merge or an earlier one that it stands on has put it there.
func TestMergedHas(t *testing.T) {
	m := &centurion.Merged{Commits: []string{"c"}, Earlier: &centurion.Merged{Commits: []string{"a", "b"}}}
	for commit, want := range map[string]bool{"a": true, "b": true, "c": true, "d": false, "": false} {
		if m.Has(commit) != want || (*centurion.Merged)(nil).Has(commit) {
			t.Errorf("%q", commit)
		}
	}
}

// A mission's own work was last landed with its newest commit, if at all; a task was returned for the causes that its record has.
func TestLandedAndReturned(t *testing.T) {
	first, last := centurion.MillisTime(1000), centurion.MillisTime(2000)
	if got := (centurion.Mission{Landed: []centurion.Landed{{Time: first}, {Time: last}}}).OwnLanding(); !got.Equal(last.Time) {
		t.Errorf("last landed at %v", got)
	}
	if got := (centurion.Mission{}).OwnLanding(); !got.IsZero() {
		t.Errorf("landed at %v", got)
	}
	task := centurion.Task{Rejections: []centurion.Rejection{{Cause: "conflict"}, {Cause: "checks"}}}
	if !task.RejectedFor("checks") || !task.RejectedFor("conflict") || task.RejectedFor("empty") {
		t.Errorf("%+v", task.Rejections)
	}
}

func TestTaskName(t *testing.T) {
	for want, task := range map[string]centurion.Task{"T2": {ID: "tsk_1", Item: "T2", Number: 7}, "w7": {ID: "tsk_1", Number: 7}, "tsk_1": {ID: "tsk_1"}} {
		if got := task.Name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUncommitted(t *testing.T) {
	for want, b := range map[string]centurion.Base{
		"":                          {},
		" with 3 uncommitted files": {Dirty: 3},
		", without a.bin and 1 more (4 KB untracked; git add them to include them)":                         {LeftOut: []string{"a.bin", "b"}, LeftOutBytes: 4096},
		", without a.bin (2 KB untracked; git add it to include it)":                                        {LeftOut: []string{"a.bin"}, LeftOutBytes: 2048},
		" with 1 uncommitted file, without a.bin and 2 more (4 KB untracked; git add them to include them)": {Dirty: 1, LeftOut: []string{"a.bin", "b", "c"}, LeftOutBytes: 4096},
	} {
		if got := b.Uncommitted(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	files := []centurion.FileChange{{Path: "c", Old: "z"}, {Path: "b", Old: "a"}, {Path: "a"}}
	if got := centurion.Paths(files); !slices.Equal(got, []string{"a", "b", "c", "z"}) {
		t.Errorf("%q", got)
	}
}

// Evidence is ordered; what nobody has shown is the weakest.
func TestEvidence(t *testing.T) {
	none, checked, reviewed, proven := centurion.EvidenceNone, centurion.EvidenceChecked, centurion.EvidenceReviewed, centurion.EvidenceProven
	for _, tt := range []struct {
		of                []centurion.Evidence
		weakest, stronges centurion.Evidence
	}{{nil, none, none}, {[]centurion.Evidence{proven, checked, reviewed}, checked, proven}, {[]centurion.Evidence{reviewed, none}, none, reviewed}} {
		if w, s := centurion.Weakest(tt.of), centurion.Strongest(tt.of); w != tt.weakest || s != tt.stronges {
			t.Errorf("%v: %s to %s", tt.of, w, s)
		}
	}
	for e, want := range map[centurion.Evidence]string{none: "no check, proof or review", checked: "checked: a check passed, nothing shows", reviewed: "reviewed: a review passed", proven: "proven: the check fails without"} {
		if got := e.Words(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is told as %q", e, got)
		}
	}
	for p, want := range map[centurion.Proof]bool{centurion.ProofProven: true, centurion.ProofRegression: true, centurion.ProofUnproven: false, centurion.ProofFlaky: false, "": false} {
		if p.Solid() != want {
			t.Errorf("%q is solid: %v", p, p.Solid())
		}
	}
}

// A session's own model outlasts what stands in for it.
func TestOwnModel(t *testing.T) {
	usual, other := centurion.Session{}, centurion.Session{}
	if got := usual.Own(); got != (centurion.ModelRef{}) {
		t.Errorf("%v", got)
	}
	if err := json.Unmarshal([]byte(`{"model":{"providerID":"p","id":"m"}}`), &usual); err != nil {
		t.Fatal(err)
	}
	other = usual
	other.Metadata.OwnModel = usual.Model
	other.Model = nil
	for _, s := range []centurion.Session{usual, other} {
		if got := s.Own(); got.String() != "p/m" {
			t.Errorf("%v", got)
		}
	}
}

func TestEndsMission(t *testing.T) {
	for typ, want := range map[centurion.EventType]bool{
		centurion.EventMissionCompleted: true, centurion.EventMissionFailed: true, centurion.EventMissionPaused: true,
		centurion.EventMissionBlocked: true, centurion.EventMissionCancelled: true,
		centurion.EventMissionStarted: false, centurion.EventMissionResumed: false, centurion.EventMissionUpdated: false,
		centurion.EventTaskFailed: false, centurion.EventSessionIdle: false, centurion.EventBudgetExceeded: false, "": false,
	} {
		if typ.EndsMission() != want {
			t.Errorf("%q: %v", typ, !want)
		}
	}
}

// TRIAL R15: what is left of a wait is never less than nothing and never more than the whole of it, whatever the clock says.
func TestRetryLeft(t *testing.T) {
	now := centurion.Now()
	const year = 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		at     time.Duration // from now
		waitMS int64
		want   time.Duration
	}{
		"at its beginning":               {5 * time.Second, 5000, 5 * time.Second},
		"in its middle":                  {2 * time.Second, 5000, 2 * time.Second},
		"at its end":                     {0, 5000, 0},
		"over":                           {-time.Second, 5000, 0},
		"the clock went an hour forward": {2*time.Second - time.Hour, 5000, 0},
		"the clock went an hour back":    {2*time.Second + time.Hour, 5000, 5 * time.Second},
		"a year forward":                 {2*time.Second - year, 5000, 0},
		"a year back":                    {2*time.Second + year, 5000, 5 * time.Second},
		"a wait of nothing":              {time.Hour, 0, 0},
		"a damaged wait":                 {time.Hour, -5000, 0},
	} {
		r := &centurion.Retry{At: centurion.Time{Time: now.Add(test.at)}, WaitMS: test.waitMS}
		if got := r.Left(now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := (*centurion.Retry)(nil).Left(now); got != 0 {
		t.Errorf("no wait: %s", got)
	}
	if got := (&centurion.Retry{WaitMS: 5000}).Left(now); got != 0 {
		t.Errorf("a wait without a time: %s", got)
	}
}

// Many files that git ignores are counted by the directory at the top.
func TestAsideString(t *testing.T) {
	few := centurion.Aside{Dir: "/d", Files: []string{"out/a", ".env"}}
	if got, want := few.String(), "git ignores out/a, .env: not merged, kept in /d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	three := centurion.Aside{Dir: "/d", Files: []string{"out/a", "out/b", "c"}}
	if got, want := three.String(), "git ignores out/a, out/b, c: not merged, kept in /d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	alike := centurion.Aside{Dir: "/d", Files: []string{"out/a", "out/b", "out/c", "out/d"}}
	if got, want := alike.String(), "git ignores out/ (4 files): not merged, kept in /d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tops := centurion.Aside{Dir: "/d", Files: []string{"x/a", "y/b", "z/c", "z/d"}}
	if got, want := tops.String(), "git ignores x/, y/, z/ (2 files): not merged, kept in /d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	many := centurion.Aside{Dir: "/d", Files: []string{".env", "out/a", "out/b", "x/y/z", "q", "r"}}
	if got, want := many.String(), "git ignores .env, out/ (2 files), x/, 2 more: not merged, kept in /d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A mission that an older version has stored can be read: its reviews were told by an address, or by a task's id.
func TestPassedByOfOlderVersions(t *testing.T) {
	var m centurion.Mission
	if err := json.Unmarshal([]byte(`{"reviewed":{"T1":"0/5","T2":"tsk_1","T4":"0/tsk_1","T3":{"task":"tsk_2","item":"T7","address":"0/6"}}}`), &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]centurion.PassedBy{"T1": {Address: "0/5"}, "T2": {Task: "tsk_1"}, "T4": {Address: "0/tsk_1"}, "T3": {Task: "tsk_2", Item: "T7", Address: "0/6"}}
	if !reflect.DeepEqual(m.Reviewed, want) {
		t.Errorf("read %+v, want %+v", m.Reviewed, want)
	}
	if said := fmt.Sprint(m.Reviewed); said != "map[T1:0/5 T2:tsk_1 T3:0/6 T4:0/tsk_1]" {
		t.Errorf("said %s", said)
	}
	if err := json.Unmarshal([]byte(`{"reviewed":{"T1":7}}`), &m); err == nil {
		t.Error("a number was read")
	}
}
