package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
)

// The newest run says whether a check passes, and the newest proof what a pass is worth; what is told as the run on the finished work is
// told once.
func TestCheckOf(t *testing.T) {
	t.Parallel()
	r := func(id string, sec int, passed, final bool, proof centurion.Proof) centurion.Receipt {
		return centurion.Receipt{ID: id, Command: "c", Time: at(sec), Passed: passed, Final: final, Proof: proof}
	}
	for name, x := range map[string]struct {
		receipts       []centurion.Receipt
		receipt, final string
		standing       Standing
	}{
		"proven, then green":         {[]centurion.Receipt{r("a", 1, true, false, centurion.ProofProven), r("b", 2, true, false, "")}, "a", "", Proven},
		"proven, then red":           {[]centurion.Receipt{r("a", 1, true, false, centurion.ProofProven), r("b", 2, false, false, "")}, "b", "", Failed},
		"one on the finished work":   {[]centurion.Receipt{r("a", 1, true, true, "")}, "a", "", Passed},
		"another on finished work":   {[]centurion.Receipt{r("a", 1, true, false, centurion.ProofProven), r("b", 2, true, true, "")}, "a", "b", Proven},
		"a grade of a later version": {[]centurion.Receipt{r("a", 1, true, false, "certain")}, "a", "", Unproven},
		"two in the same moment":     {[]centurion.Receipt{r("a", 1, true, false, ""), r("b", 1, false, false, "")}, "b", "", Failed},
		"an older one that is later": {[]centurion.Receipt{r("a", 2, false, false, ""), r("b", 1, true, false, "")}, "a", "", Failed},
	} {
		got := checkOf("c", x.receipts, func(centurion.Receipt) bool { return true })
		final := ""
		if got.Final != nil {
			final = got.Final.ID
		}
		if got.Receipt.ID != x.receipt || final != x.final || got.Standing != x.standing || got.Times != len(x.receipts) {
			t.Errorf("%s: %s, final %q, %s, %d times", name, got.Receipt.ID, final, got.Standing, got.Times)
		}
	}
}

// What was not checked is doubted once it is claimed to be done, and no review speaks for a check that failed.
func TestDoubtsOfWhatIsDone(t *testing.T) {
	t.Parallel()
	for status, want := range map[string][]string{"done": {"not run T1", "unchecked T2"}, "open": nil, "running": nil, "cancelled": nil, "blocked": nil} {
		for _, m := range []centurion.MissionStatus{centurion.MissionRunning, centurion.MissionCompleted} {
			d := Data{Mission: centurion.Mission{Status: m}, Checks: []string{"make"}, Items: []PlanItem{{ID: "T1", Status: status, Verify: []string{"v"}}, {ID: "T2", Status: status}}}
			var got []string
			for _, x := range New(d).Doubts {
				got = append(got, strings.TrimSpace(x.Kind+" "+x.Item))
			}
			all := want
			if m == centurion.MissionCompleted {
				all = append(slices.Clone(want), "not run")
			}
			if !slices.Equal(got, all) {
				t.Errorf("%s in a mission that is %s: %q, want %q", status, m, got, all)
			}
		}
	}
	d := Data{Items: []PlanItem{{ID: "T1", Status: "done", Verify: []string{"v"}}}, Reviews: map[string]Review{"T1": {Item: "T1", Name: "T1"}},
		Receipts: []centurion.Receipt{{Item: "T1", Command: "v", Why: "red"}}}
	if got := New(d).Doubts; len(got) != 1 || !slices.Equal(got[0].Why, []string{"red"}) {
		t.Errorf("%+v", got)
	}
}

// A check of the mission is no former one, whose item ever it ran for, and neither is what ran on the finished work.
func TestFormerOnlyWhatIsGone(t *testing.T) {
	t.Parallel()
	d := Data{Checks: []string{"make"}, Items: []PlanItem{{ID: "T1", Verify: []string{"v"}}},
		Receipts: []centurion.Receipt{{Item: "T9", Command: "make", Passed: true}, {Item: "T9", Command: "old", Passed: true}, {Item: "T1", Command: "last", Final: true, Passed: true}}}
	r := New(d)
	for _, c := range r.Checks {
		if (c.Former != nil) != (c.Command == "old") && c.Command != "last" {
			t.Errorf("%s: former %+v", c.Command, c.Former)
		}
	}
	if n := len(r.Items[0].Checks); n != 1 {
		t.Errorf("T1 has %d checks: %+v", n, r.Items[0].Checks)
	}
}

// The clock of a mission that was paused and is at work again runs on, and a mission that has no branch but files can be taken back.
func TestWallAndNext(t *testing.T) {
	t.Parallel()
	d := Data{Mission: centurion.Mission{ID: "m", Status: centurion.MissionRunning, Started: at(0), Updated: at(70)}, Now: at(100),
		Events: []centurion.Event{fact(50, centurion.EventMissionPaused, "", "", event.MissionEnd{}), fact(60, centurion.EventMissionResumed, "", "", event.MissionData{})}}
	if got := New(d).WallMS; got != 100_000 {
		t.Errorf("%d ms at work, want 100000", got)
	}
	lines := func() (all []string) {
		for _, c := range New(d).Next {
			all = append(all, c.Line)
		}
		return all
	}
	if slices.Contains(lines(), "centurion undo m") {
		t.Error("there is nothing to take back")
	}
	if d.Files = []centurion.FileDiff{{FileChange: centurion.FileChange{Path: "a"}}}; !slices.Contains(lines(), "centurion undo m") {
		t.Error("it cannot be taken back")
	}
}

// What a person may do now follows from where the mission and its work stand.
func TestNext(t *testing.T) {
	t.Parallel()
	branch := func(s centurion.MissionStatus) centurion.Mission {
		return centurion.Mission{ID: "m", Status: s, Branch: "b"}
	}
	merged := branch(centurion.MissionCompleted)
	merged.Merged = &centurion.Merged{Commit: "c"}
	dying := branch(centurion.MissionCompleted)
	dying.Merged = &centurion.Merged{}
	for name, tt := range map[string]struct {
		m    centurion.Mission
		want string
	}{
		"running":                     {centurion.Mission{ID: "m", Status: centurion.MissionRunning}, "attach pause show"},
		"planning":                    {branch(centurion.MissionPlanning), "attach pause diff merge undo show"},
		"paused":                      {branch(centurion.MissionPaused), "resume diff merge undo show"},
		"failed":                      {centurion.Mission{ID: "m", Status: centurion.MissionFailed}, "resume show"},
		"blocked":                     {centurion.Mission{ID: "m", Status: centurion.MissionBlocked}, "asks resume show"},
		"completed":                   {branch(centurion.MissionCompleted), "diff merge undo show"},
		"completed, with a base only": {centurion.Mission{ID: "m", Status: centurion.MissionCompleted, Base: &centurion.Base{}}, "diff merge show"},
		"merged":                      {merged, "diff undo show"},
		"a host died at the merge":    {dying, "diff merge undo show"},
	} {
		var got []string
		for _, c := range next(&Report{Mission: tt.m}) {
			got = append(got, strings.Fields(c.Line)[1])
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " "), tt.want)
		}
	}
	for want, m := range map[string]centurion.Mission{
		"The work stands on the branch b. It is not on yours.": dying,
		"The work was done in the project itself.":             {},
		"": {Base: &centurion.Base{}},
	} {
		if got := (&Report{Mission: m}).where(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	merged.Merged.Squash, merged.Merged.Only = true, []string{"T1", "T2"}
	if got := (&Report{Mission: merged}).where(); !strings.HasPrefix(got, "Merged into a detached HEAD at ") || !strings.HasSuffix(got, "as commit c, as one commit; only T1, T2.") {
		t.Error(got)
	}
	merged.Merged.Squash, merged.Merged.Only = false, nil
	if got := (&Report{Mission: merged}).where(); !strings.HasSuffix(got, "as commit c.") {
		t.Error(got)
	}
}

// A complete mission is coloured as doubted where nothing shows that it is done, or something of it does not.
func TestTone(t *testing.T) {
	t.Parallel()
	m := func(s centurion.MissionStatus, e centurion.Evidence, profile string) centurion.Mission {
		m := centurion.Mission{Status: s, Evidence: e}
		m.Options.Profile = profile
		return m
	}
	doubt := []Doubt{{}}
	for _, tt := range []struct {
		m          centurion.Mission
		doubts     []Doubt
		tone, head string
	}{
		{m(centurion.MissionCompleted, centurion.EvidenceProven, ""), nil, "completed", "Complete · "},
		{m(centurion.MissionCompleted, centurion.EvidenceNone, ""), nil, "doubted", "Complete, not verified · "},
		{m(centurion.MissionCompleted, centurion.EvidenceNone, "assistant"), nil, "completed", "Complete · "},
		{m(centurion.MissionCompleted, centurion.EvidenceProven, ""), doubt, "doubted", "Complete · "},
		{m(centurion.MissionPaused, centurion.EvidenceNone, ""), doubt, "paused", "Paused · "},
	} {
		r := &Report{Mission: tt.m, Doubts: tt.doubts}
		if got := r.tone(); got != tt.tone {
			t.Errorf("%+v: %s", tt, got)
		}
		if got := r.headline(); !strings.HasPrefix(got, tt.head) || strings.Contains(got, "item") {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	r := &Report{Mission: m(centurion.MissionCompleted, centurion.EvidenceReviewed, "")}
	if got := r.proofs(); got != "The plan had no items: reviewed: a review passed." {
		t.Error(got)
	}
	r.Mission.Status = centurion.MissionPaused
	if got := r.proofs(); got != "The plan had no items: there was nothing to verify." {
		t.Error(got)
	}
	r.Mission.ElapsedMS = 100_000
	for wall, told := range map[int64]bool{160_000: false, 161_000: true} { // less than a minute beside the work is not told
		if r.WallMS = wall; strings.Contains(r.headline(), " by the clock") != told {
			t.Errorf("%d ms by the clock: %s", wall, r.headline())
		}
	}
	r.Counts = Counts{Items: 2, Done: 1}
	if got := r.headline(); !strings.Contains(got, "1 of 2 items done") {
		t.Error(got)
	}
}

// Items are as the plan says, else as their tasks; what was reverted is told as that while it is open, and of which tasks it was the last.
func TestItemsOfTheEvents(t *testing.T) {
	t.Parallel()
	plan := fact(1, centurion.EventTodoUpdated, "", "", map[string]any{"items": []PlanItem{{ID: "T1"}, {ID: "T2"}, {ID: "T3"}}})
	marks := fact(2, centurion.EventTodoUpdated, "", "", map[string]any{"open": 3})
	task := func(item string, s centurion.TaskStatus, undone centurion.Time) centurion.Task {
		return centurion.Task{ID: "tsk_" + item, Item: item, Status: s, Undone: undone}
	}
	d := Data{Events: []centurion.Event{plan, marks}, Tasks: []centurion.Task{task("T1", centurion.TaskCompleted, centurion.Time{}), task("T2", centurion.TaskCompleted, at(9)), task("T3", centurion.TaskFailed, centurion.Time{})}}
	told := func() string {
		var out []string
		for _, it := range New(d).Items {
			out = append(out, strings.TrimSpace(it.ID+" "+it.Status+" "+string(it.Standing)))
		}
		return strings.Join(out, ", ")
	}
	if got := told(); got != "T1 done unchecked, T2  reverted, T3  unchecked" {
		t.Error(got)
	}
	d.Tasks = append(d.Tasks, task("T2", centurion.TaskCompleted, centurion.Time{}))
	if got := told(); got != "T1 done unchecked, T2 done unchecked, T3  unchecked" {
		t.Errorf("done again: %s", got)
	}
	d.Mission.Status = centurion.MissionCompleted
	if got := told(); got != "T1 done unchecked, T2 done unchecked, T3 done unchecked" {
		t.Errorf("a complete mission: %s", got)
	}
	if n := count(New(Data{Items: []PlanItem{{ID: "T1", Status: "open", Verify: []string{"v"}}}}).Items).NotRun; n != 1 {
		t.Errorf("%d checks were not run", n)
	}
}

// A patch the other way round has its ranges, names and lines swapped.
func TestReversedPatch(t *testing.T) {
	t.Parallel()
	in := "diff --git a/x b/y\nindex 1..2\n--- a/x\n+++ b/y\n@@ -1,3 +1,2 @@ f()\n same\n-old\n-more\n+new\n\\ No newline at end of file\n@@ -9 +8 @@\n-a\n+b\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"
	want := "diff --git a/x b/y\nindex 1..2\n--- a/y\n+++ b/x\n@@ -1,2 +1,3 @@ f()\n same\n-new\n\\ No newline at end of file\n+old\n+more\n@@ -8 +9 @@\n-b\n+a\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-n\n"
	if got := reversed(in); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if back := reversed(want); back != in && !strings.Contains(back, "@@ -1,3 +1,2 @@ f()") {
		t.Errorf("back\n%s", back)
	}
	for s, want := range map[string]string{"a\nb\n": "a\nb", strings.Repeat("x", 800): strings.Repeat("x", 800), "first\n" + strings.Repeat("y", 799): "…\n" + strings.Repeat("y", 799), strings.Repeat("z", 801): "…\n" + strings.Repeat("z", 800)} {
		if got := tail(s, 800); got != want {
			t.Errorf("%.20q: %.20q of %d bytes", s, got, len(got))
		}
	}
	if got := wholeLines("ab\ncd\n", 6); got != "ab\ncd\n" {
		t.Errorf("%q", got)
	}
	if got := wholeLines("ab\ncd\nef", 7); got != "ab\ncd\n" {
		t.Errorf("%q", got)
	}
}

// Whose check it was that changed is told only where a reviewer changed the plan between.
func TestWhoChangedACheck(t *testing.T) {
	t.Parallel()
	told := func(verify ...string) centurion.Event {
		return fact(1, centurion.EventTodoUpdated, "", "", map[string]any{"items": []PlanItem{{ID: "T1", Verify: verify}}})
	}
	edit := func(task string) centurion.Event {
		return fact(1, centurion.EventToolCompleted, task, "", map[string]any{"tool": "update_todo"})
	}
	tasks := []centurion.Task{{ID: "r", Agent: reviewer}, {ID: "w", Agent: "worker"}}
	for name, tt := range map[string]struct {
		events []centurion.Event
		want   string
	}{
		"by a reviewer":            {[]centurion.Event{told("v"), edit("r"), told("w")}, reviewer},
		"by a worker":              {[]centurion.Event{told("v"), edit("w"), told("w")}, ""},
		"by nobody that was seen":  {[]centurion.Event{told("v"), told("w")}, ""},
		"before it was there":      {[]centurion.Event{edit("r"), told("v"), told("w")}, ""},
		"before it was told again": {[]centurion.Event{told("v"), edit("r"), told("v"), told("w")}, ""},
		"it stands":                {[]centurion.Event{told("v"), edit("r")}, reviewer},
	} {
		if got := changedBy(Data{Events: tt.events, Tasks: tasks}, "T1", "v"); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	gone := []centurion.Task{{ID: "a", Item: "T1", Title: "Do", Status: centurion.TaskCompleted, Undone: at(5)}, {ID: "b", Item: "T2", Status: centurion.TaskCompleted}}
	if got := reverted(gone); len(got) != 1 || got[0].What != "T1 was reverted" || got[0].Then != "it has not been done again" || got[0].Where != "T1 Do" {
		t.Errorf("%+v", got)
	}
	again := append(gone, centurion.Task{ID: "c", Item: "T1", Status: centurion.TaskCompleted}, centurion.Task{ID: "d", Agent: "reviewer", Item: "T2", Reviews: true, Status: centurion.TaskCompleted, Undone: at(5)})
	if got := reverted(again); len(got) != 2 || got[0].Then != "it was done again" || !strings.HasPrefix(got[1].What, "the work that it judged") {
		t.Errorf("%+v", got)
	}
	if got := undone(gone); len(got) != 1 || !strings.HasPrefix(got[0], "T1 Do, at ") {
		t.Errorf("%q", got)
	}
	big := centurion.Usage{USD: 1, Tokens: centurion.Tokens{Input: 5, Output: 5, Reasoning: 5, Cache: centurion.CacheUsage{Read: 5, Write: 5}}}
	small := centurion.Usage{USD: 3, Tokens: centurion.Tokens{Input: 7, Output: 2, Reasoning: 1, Cache: centurion.CacheUsage{Read: 3, Write: 9}}}
	if got := minus(big, small); got != (centurion.Usage{Tokens: centurion.Tokens{Output: 3, Reasoning: 4, Cache: centurion.CacheUsage{Read: 2}}}) {
		t.Errorf("%+v", got)
	}
}

// The first lines name a dozen agents, and say that nothing was verified.
func TestFirstLines(t *testing.T) {
	t.Parallel()
	r := &Report{Counts: Counts{Items: 2, Unproven: 2}, Mission: centurion.Mission{Tally: centurion.Tally{Unverified: 2}}}
	if got := r.proofs(); !strings.Contains(got, ", 0 verified") {
		t.Error(got)
	}
	for i := range maxNamed + 2 {
		r.Timeline.Lanes = append(r.Timeline.Lanes, Lane{Agent: fmt.Sprint("a", i), Task: "t"})
	}
	if got := r.who(); !strings.HasSuffix(got, "a11 (1 task) and 2 more.") {
		t.Error(got)
	}
	for l, role := range rolesOf(r.Timeline.Lanes) {
		if role < 4 || role > 7 {
			t.Errorf("%s has the colour %d", l, role)
		}
	}
	if got := fmt.Sprint(rolesOf([]Lane{{Agent: "a"}, {Agent: "worker"}, {Agent: "a"}, {Agent: "b"}})); got != "map[a:4 b:5 worker:2]" {
		t.Errorf("an agent of two lanes takes two colours: %s", got)
	}
}

// What is said once more is told once, as it ended last; what an agent read is not read by another message of the same words; the sum has
// what costs money without tokens; and of all patches there is no more than the page can take.
func TestSums(t *testing.T) {
	t.Parallel()
	d := Data{Tasks: []centurion.Task{{ID: "t"}}, Events: []centurion.Event{
		fact(1, centurion.EventTaskRetrying, "t", "", event.RetryData{Error: "cut", WaitMS: 1000}),
		fact(2, centurion.EventTaskRetrying, "t", "", event.RetryData{Error: "cut", WaitMS: 9000})}}
	if got := troubles(d); len(got) != 1 || got[0].Repeat != 1 || got[0].Then != "tried again after 9s" {
		t.Errorf("%+v", got)
	}
	agents, _ := spending(Data{Mission: centurion.Mission{Usage: centurion.Usage{USD: 2}}})
	if len(agents) != 1 || agents[0].USD != 2 {
		t.Errorf("%+v", agents)
	}
	agents, _ = spending(Data{Mission: centurion.Mission{Usage: centurion.Usage{Tokens: centurion.Tokens{Output: 7}, Unpriced: true}}}) // and tokens without a price
	if len(agents) != 1 || agents[0].Tokens.Output != 7 {
		t.Errorf("%+v", agents)
	}
	line := strings.Repeat("x", 99) + "\n"
	var all []centurion.FileDiff
	for range 60 {
		all = append(all, centurion.FileDiff{Hunks: []centurion.Hunk{{Text: strings.Repeat(line, 50)}}})
	}
	n, cut := 0, 0
	for _, f := range files(all) {
		if n += len(f.Patch); f.Cut {
			cut++
		}
	}
	if n > maxPatches || n < maxPatches-6000 || cut == 0 {
		t.Errorf("%d bytes of patches, %d cut", n, cut)
	}
	same := func(sec int, typ centurion.EventType) centurion.Event {
		return fact(sec, typ, "", "ses", map[string]any{"origin": "person", "text": "go on"})
	}
	got := said(Data{Events: []centurion.Event{same(1, centurion.EventMessageQueued), same(2, centurion.EventMessageQueued), same(3, centurion.EventMessageCreated), same(4, centurion.EventMessageCreated)}})
	if len(got) != 2 || got[0].Read != at(3) || got[1].Read != at(4) {
		t.Errorf("%+v", got)
	}
	if l := redLine("=== RUN X\n--- FAIL: TestX (0.0s)\n  x_test.go:3: want 1\nFAIL\n"); l != "x_test.go:3: want 1" {
		t.Errorf("the line that tells most is %q", l)
	}
}

// A check that runs during a merge or while the mission's own agent is told something changes nothing of what is drawn, and a task that goes
// on after it was blocked has not ended.
func TestLanesBetween(t *testing.T) {
	t.Parallel()
	got := Lanes(Data{Mission: centurion.Mission{Session: "root", Status: centurion.MissionRunning}, Now: at(30), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{Agent: "commander"}),
		moved(1, centurion.EventTaskStarted, "a", centurion.TaskRunning, 1, ""),
		moved(3, centurion.EventTaskUpdated, "a", centurion.TaskMerging, 1, ""),
		fact(4, centurion.EventVerifyStarted, "a", "", event.VerifyData{}),
		fact(5, centurion.EventVerifyPassed, "a", "", event.VerifyData{}),
		moved(6, centurion.EventTaskBlocked, "a", centurion.TaskBlocked, 1, "asks"),
		moved(8, centurion.EventTaskUpdated, "a", centurion.TaskRunning, 1, ""),
		fact(10, centurion.EventVerifyStarted, "", "root", event.VerifyData{}),
		fact(12, centurion.EventMessageUpdated, "", "root", map[string]any{}),
		fact(14, centurion.EventVerifyPassed, "", "root", event.VerifyData{})}})
	want := []string{"commander: work 0-10 verify 10-14 wait 14-30", "a: work 1-3 merge 3-6 work 8-30 !fail 6"}
	if all := told(got); !slices.Equal(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
	if got.Lanes[1].End != "" {
		t.Errorf("it goes on, and it is said that it ended: %s", got.Lanes[1].End)
	}
	// The host dies while a check runs: the check begins anew, and its end is the end of the only one.
	got = Lanes(Data{Mission: centurion.Mission{Session: "root", Status: centurion.MissionRunning}, Now: at(30), Events: []centurion.Event{
		fact(0, centurion.EventMissionStarted, "", "root", event.MissionData{Agent: "commander"}),
		fact(5, centurion.EventVerifyStarted, "", "root", event.VerifyData{}),
		fact(10, centurion.EventMissionResumed, "", "root", event.MissionData{}),
		fact(12, centurion.EventVerifyStarted, "", "root", event.VerifyData{}),
		fact(15, centurion.EventVerifyPassed, "", "root", event.VerifyData{})}})
	if all := told(got); !slices.Equal(all, []string{"commander: work 0-5 work 10-12 verify 12-15 wait 15-30", "restart 5-10"}) {
		t.Errorf("after a restart: %q", all)
	}
}

// A number stands for so many things that happened: what only says what came of the one before it is told with that, and counted with it.
func TestMarksTogether(t *testing.T) {
	t.Parallel()
	mark := func(sec int, k MarkKind) Mark { return Mark{Kind: k, Time: at(sec)} }
	tl := Timeline{From: at(0), To: at(1000)}
	for _, x := range []struct {
		marks []Mark
		kind  MarkKind
		count int
	}{
		{[]Mark{mark(1, MarkRed), mark(1, MarkReturn)}, MarkRed, 1},
		{[]Mark{mark(1, MarkConflict), mark(2, MarkReturn)}, MarkConflict, 1},
		{[]Mark{mark(1, MarkMerge), mark(1, MarkDone)}, MarkMerge, 1},
		{[]Mark{mark(1, MarkRed), mark(2, MarkReturn), mark(3, MarkRed), mark(4, MarkReturn), mark(5, MarkMerge), mark(6, MarkDone)}, MarkRed, 3},
		{[]Mark{mark(1, MarkReturn), mark(2, MarkReturn)}, MarkReturn, 2},
		{[]Mark{mark(1, MarkRetry), mark(2, MarkKill), mark(3, MarkRetry)}, MarkKill, 3},
	} {
		got := marks(tl, Lane{Marks: x.marks}, 0, func(c centurion.Time) float64 { return tl.at(c).Seconds() })
		if len(got) != 1 || got[0].Kind != x.kind || got[0].Count != x.count || strings.Count(got[0].Title, "\n") != len(x.marks)-1 {
			t.Errorf("%+v: %+v", x.marks, got)
		}
	}
}

// The words of the last tick end within the picture, and so does the number of a mark.
func TestWordsStayInside(t *testing.T) {
	t.Parallel()
	for hours := range 240 {
		for _, k := range ticks(time.Duration(hours+1)*time.Hour, picLabels, picWidth-picRight) {
			if half := float64(len(k.Label)) * letter / 2; k.Anchor == "middle" && k.X+half > picWidth {
				t.Errorf("of %d hours: %q at %g reaches out", hours+1, k.Label, k.X)
			}
		}
	}
	tl := Timeline{From: at(0), To: at(100)}
	var many []Mark
	for range 120 {
		many = append(many, Mark{Kind: MarkRetry, Time: at(1)})
	}
	for x, room := range map[float64]bool{picWidth - 30: false, picWidth - 40: true} {
		if got := marks(tl, Lane{Marks: many}, 0, func(centurion.Time) float64 { return x }); got[0].Room != room {
			t.Errorf("at %g: %+v", x, got[0].Room)
		}
	}
}
