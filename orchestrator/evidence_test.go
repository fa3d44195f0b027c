package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/provider/scripted"
)

// What a mission has as evidence: the weakest of its items; without items, what the strongest check of the first source says that names one.
func TestMissionGrade(t *testing.T) {
	const n, c, r, p = centurion.EvidenceNone, centurion.EvidenceChecked, centurion.EvidenceReviewed, centurion.EvidenceProven
	type all = []centurion.Evidence
	for _, tt := range []struct {
		name     string
		items    all
		checks   []all // of the goal, of the Commander, of the configuration
		reviewed bool
		want     centurion.Evidence
	}{
		{"nothing", nil, nil, false, n},
		{"a review of all", nil, nil, true, r},
		{"all items proven", all{p, p}, nil, false, p},
		{"one of them by a review", all{p, r}, nil, false, r},
		{"one of them only checked", all{p, c, r}, nil, false, c},
		{"one of them by nothing", all{p, n}, []all{{p}}, true, n},
		{"the goal's check", nil, []all{{p}, nil, nil}, false, p},
		{"the better of two of the goal", nil, []all{{c, p}, nil, nil}, false, p},
		{"the goal's before the Commander's own", nil, []all{{c}, {p}, {p}}, false, c},
		{"the Commander's before the project's", nil, []all{nil, {n}, {c}}, false, n},
		{"the project's", nil, []all{nil, nil, {c}}, false, c},
		{"an empty check and a review", nil, []all{{n}, nil, nil}, true, r},
		{"a proof and a review", nil, []all{{p}, nil, nil}, true, p},
	} {
		if got := missionGrade(tt.items, tt.checks, tt.reviewed); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// What a receipt shows: nothing where its command can only pass, where no test ran, where checks were weakened, or where it is flaky.
func TestGrade(t *testing.T) {
	green := func(r centurion.Receipt) centurion.Receipt { r.Passed = true; return r }
	for name, tt := range map[string]struct {
		r    centurion.Receipt
		want centurion.Evidence
	}{
		"red":          {centurion.Receipt{Command: "make test", Proof: centurion.ProofProven}, centurion.EvidenceNone},
		"green":        {green(centurion.Receipt{Command: "make test"}), centurion.EvidenceChecked},
		"proven":       {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofProven}), centurion.EvidenceProven},
		"regression":   {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofRegression}), centurion.EvidenceChecked},
		"unproven":     {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofUnproven}), centurion.EvidenceChecked},
		"flaky":        {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofFlaky}), centurion.EvidenceNone},
		"true":         {green(centurion.Receipt{Command: "true"}), centurion.EvidenceNone},
		"or true":      {green(centurion.Receipt{Command: "make test || true"}), centurion.EvidenceNone},
		"no test":      {green(centurion.Receipt{Command: "go test -run X", Output: "testing: warning: no tests to run\nok  \tx\t0.1s [no tests to run]\n"}), centurion.EvidenceNone},
		"no test, run": {green(centurion.Receipt{Command: "go test", Runs: []centurion.CheckRun{{Kind: centurion.RunGreen, Passed: true, Empty: "no tests"}}}), centurion.EvidenceNone},
		"weakened":     {green(centurion.Receipt{Command: "make test", Weakened: []string{"x"}}), centurion.EvidenceNone},
	} {
		if got := grade(tt.r); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// goes starts a mission with a goal and runs it to its end.
func (r *rig) goes(goal string, opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Start(r.ctx, goal, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.run(m.ID)
}

// evidence asserts what a mission has as evidence, also in its last event.
func (r *rig) evidence(m centurion.Mission, want centurion.Evidence) {
	r.t.Helper()
	all := r.events(m.ID)
	d, err := event.Decode[event.MissionEnd](all[len(all)-1])
	if err != nil || m.Evidence != want || d.Evidence != want {
		r.t.Errorf("evidence %q, in the last event %q (%v); want %q", m.Evidence, d.Evidence, err, want)
	}
}

// A command that the goal names is run at the end, however the mission's own agent ends it: a red one is told, and no such mission is
// complete. The shell's command "sh …" of these tests is its own: "sh false it" fails.
func TestGoalCheck(t *testing.T) {
	for name, last := range map[string]scripted.Answer{"by text": say("already done"), "by mission_complete": complete()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return last }}, func(r *rig) {
				m := r.goes("Build it, so that `false it` passes.", centurion.MissionOptions{})
				r.is(m, centurion.MissionBlocked, "The final checks have failed 4 times")
				equal(t, "runs of the check", r.shell.times("false it"), 4)
				has(t, r.requests("commander")[1].Last(), "the final check failed: `false it` ended with exit code")
			})
		})
	}
	t.Run("green", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			m := r.goes("Build it, so that `test it` passes.", centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			r.evidence(m, centurion.EvidenceChecked)
			equal(t, "requests", len(r.model.Requests()), 1)
		})
	})
	t.Run("may not run", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			r.asksForShell()
			r.is(r.goes("Build it, so that `test it` passes.", centurion.MissionOptions{Ask: "deny"}), centurion.MissionBlocked, "the acceptance command `test it` may not run")
			equal(t, "runs", r.shell.times("test it"), 0)
		})
	})
}

// O7: an end with neither change nor check is questioned once, however it comes; a second one is accepted, and called what it is.
func TestBareEndIsQuestionedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		steps    []scripted.Answer
		evidence centurion.Evidence
		asked    int
		told     bool
	}{
		"text, and the same again":   {[]scripted.Answer{say("done"), say("it needs none")}, centurion.EvidenceNone, 2, true},
		"a claim, and the same":      {[]scripted.Answer{complete(), complete()}, centurion.EvidenceNone, 2, true},
		"a claim, then text":         {[]scripted.Answer{complete(), say("it needs none")}, centurion.EvidenceNone, 2, true},
		"text, then a check":         {[]scripted.Answer{say("done"), completeWith("test it")}, centurion.EvidenceChecked, 2, true},
		"a check at once":            {[]scripted.Answer{completeWith("test it")}, centurion.EvidenceChecked, 1, false},
		"a check that can only pass": {[]scripted.Answer{completeWith("true"), completeWith("true")}, centurion.EvidenceNone, 2, true},
		"a red check, then another":  {[]scripted.Answer{completeWith("false it"), completeWith("test it")}, centurion.EvidenceChecked, 2, false},
		"a change":                   {[]scripted.Answer{do(call("write", args{"filePath": "a.txt", "content": "a\n"})), say("done")}, centurion.EvidenceNone, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(q scripted.Request) scripted.Answer { return tt.steps[min(q.Turn, len(tt.steps))-1] }
			bubble(t, map[string]script{"commander": answer}, func(r *rig) {
				m := r.goes("build it", centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				r.evidence(m, tt.evidence)
				asked := slices.DeleteFunc(r.model.Requests(), func(q scripted.Request) bool { return q.Agent() != "commander" })
				equal(t, "requests", len(asked), tt.asked)
				equal(t, "questioned", strings.Contains(asked[len(asked)-1].Last(), loop.BareWord), tt.told)
			})
		})
	}
}

// A check that the Commander has given and that is red keeps the mission from an end by text, too.
func TestGivenCheckStays(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if q.Step() == 1 {
			return completeWith("false it")
		}
		return say("all is done")
	}}, func(r *rig) {
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionBlocked, "The final checks have failed 4 times")
	})
}

// Where proof is required, an end without evidence blocks the mission; resumed, it ends with a check. The assistant is held to it, too.
func TestRequireProof(t *testing.T) {
	answer := say("done")
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if strings.Contains(q.Last(), loop.BareWord) {
			return answer
		}
		return say("done")
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{RequireProof: true})
		r.is(m, centurion.MissionBlocked, "proof is required")
		r.evidence(m, centurion.EvidenceNone)
		answer = completeWith("test it")
		if m = r.run(m.ID); m.Status != centurion.MissionCompleted || m.Evidence != centurion.EvidenceChecked {
			t.Errorf("resumed: %s (%s), %s", m.Status, m.Reason, m.Evidence)
		}
	})
	for goal, want := range map[string]centurion.MissionStatus{"What is it?": centurion.MissionBlocked, "Make `test it` pass": centurion.MissionCompleted, "Make `false it` pass": centurion.MissionBlocked} {
		t.Run(goal, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				m := r.goes(goal, centurion.MissionOptions{RequireProof: true, Profile: "assistant"})
				r.is(m, want, "")
			})
		})
	}
}
