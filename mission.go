package centurion

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MissionStatus is where a mission stands.
//
//	planning ──▶ running ──▶ completed
//	   │ ▲        │  ▲  └──▶ failed
//	   ▼ │        ▼  │
//	paused / blocked ┘        any living state ──▶ cancelled
//
// Paused missions wait for a budget, a disk or a resume; blocked ones for a person's answer. Both can be resumed. One that
// has ended is paused again when its conversation is taken back to an older message, a completed one when its work is
// reverted, and a completed one of the profile assistant when somebody writes to it.
type MissionStatus string

// The states of a mission.
const (
	MissionPlanning  MissionStatus = "planning"
	MissionRunning   MissionStatus = "running"
	MissionPaused    MissionStatus = "paused"
	MissionBlocked   MissionStatus = "blocked"
	MissionCompleted MissionStatus = "completed"
	MissionFailed    MissionStatus = "failed"
	MissionCancelled MissionStatus = "cancelled"
)

var missionMoves = map[MissionStatus][]MissionStatus{
	"":               {MissionPlanning},
	MissionPlanning:  {MissionRunning, MissionPaused, MissionBlocked, MissionCompleted, MissionFailed, MissionCancelled},
	MissionRunning:   {MissionPaused, MissionBlocked, MissionCompleted, MissionFailed, MissionCancelled},
	MissionPaused:    {MissionPlanning, MissionRunning, MissionCancelled, MissionCompleted},
	MissionBlocked:   {MissionPlanning, MissionRunning, MissionCancelled},
	MissionFailed:    {MissionRunning, MissionCancelled, MissionPaused},
	MissionCompleted: {MissionPaused},
	MissionCancelled: {MissionPaused},
}

// CanBecome reports whether a mission in state s may move to state to. A failed mission may be resumed, because what
// made it fail (a key, a model, a network) is usually mended outside. One that is over is paused when its conversation is
// rewound, when its work is reverted or, in the profile assistant, when it is written to, and by nothing else. Only a redo
// completes a paused mission, which an undo has paused.
func (s MissionStatus) CanBecome(to MissionStatus) bool { return slices.Contains(missionMoves[s], to) }

// Word is what people read: the state, and of a completed mission whether nothing shows that it is done. In the profile assistant, where an
// answer needs no evidence, it is the state alone.
func (s MissionStatus) Word(e Evidence, profile string) string {
	if s == MissionCompleted && e == EvidenceNone && (profile == "" || profile == "mission") {
		return "completed, not verified"
	}
	return string(s)
}

// Alive reports whether the mission is being worked on.
func (s MissionStatus) Alive() bool { return s == MissionPlanning || s == MissionRunning }

// Ended reports whether the mission will not be worked on again: a failed one may still be resumed.
func (s MissionStatus) Ended() bool { return s == MissionCompleted || s == MissionCancelled }

// Mission is one goal in one project directory, worked on until it is proven done.
type Mission struct {
	ID         string         `json:"id"`
	Goal       string         `json:"goal"` // as the person typed it
	Status     MissionStatus  `json:"status"`
	Directory  string         `json:"directory"`            // absolute path of the project
	Branch     string         `json:"branch,omitempty"`     // where the work is put together; empty when it is done in place
	Reason     string         `json:"reason,omitempty"`     // why it is paused, blocked, failed or cancelled
	Level      int            `json:"level,omitempty"`      // 1, 2 or 3 as assessed or set; 0 while unknown
	LevelFrom  string         `json:"level_from,omitempty"` // who said it: LevelByPerson, LevelInferred or an agent's name
	Options    MissionOptions `json:"options"`
	Usage      Usage          `json:"usage"`
	Session    string         `json:"session,omitempty"`   // the Commander's session
	Rounds     int            `json:"rounds"`              // requests made to models
	ElapsedMS  int64          `json:"elapsed_ms"`          // time alive until the newest answer, in milliseconds, without the time paused
	Runs       int            `json:"runs,omitempty"`      // times a host has begun to work on it
	Todo       string         `json:"todo"`                // its plan, relative to the project
	HadItems   bool           `json:"had_items"`           // its plan has had items: an empty one is then no proof of anything
	OwnsTodo   bool           `json:"owns_todo,omitempty"` // the plan's file is its own: recorded before it first writes it, or when it adopts one
	Adopted    []string       `json:"adopted,omitempty"`   // verify lines of the plan that it adopted: nobody has accepted them yet
	PutAside   string         `json:"put_aside,omitempty"` // where the plan was put that it found and that no mission owned, relative to the project
	Accepted   bool           `json:"accepted"`            // the plan was accepted by a person
	Approved   []string       `json:"approved,omitempty"`  // the verify lines that were accepted with it
	Summary    string         `json:"summary,omitempty"`   // the Commander's last words to the person
	Verified   int            `json:"verified"`            // items done with a passed check, at the end
	Unverified int            `json:"unverified"`          // items done on an agent's word alone, at the end
	Unproven   []string       `json:"unproven,omitempty"`  // items done of which nothing shows that their check can fail, at the end
	Flaky      []string       `json:"flaky,omitempty"`     // items done whose check ended otherwise when it was run once more, at the end
	// Reviewed are the items that count as verified because a review has passed them, at the end: by item, that review.
	Reviewed map[string]PassedBy `json:"reviewed,omitempty"`
	Evidence Evidence            `json:"evidence,omitempty"` // what shows that it is done, when it stopped last; empty before, and in what older versions have written
	Check    string              `json:"check,omitempty"`    // the command that its own agent gave for the end
	Reopened int                 `json:"reopened"`           // times a final check sent items back
	Started  Time                `json:"started"`
	Updated  Time                `json:"updated"`

	Isolation string    `json:"isolation,omitempty"` // worktree or shared; empty before it was first worked on
	Base      *Base     `json:"base,omitempty"`      // what its work starts from; nil without git
	Checkout  *Checkout `json:"checkout,omitempty"`  // where its own agent works; nil before that first writes
	Wrote     []Landed  `json:"wrote,omitempty"`     // what its own agent has changed in the project's own directory: see Task.Landed
	Aside     []Aside   `json:"aside,omitempty"`     // what its own agent has written and git ignores
	Landed    []Landed  `json:"landed,omitempty"`    // its own agent's commits on its branch, oldest first, without their files
	Merging   string    `json:"merging,omitempty"`   // the newest of these, as long as it is not known that the branch has it
	Merged    *Merged   `json:"merged,omitempty"`    // where its work was put last; nil while it stands on its branch only

	TakenBack []TakenBack `json:"taken_back,omitempty"` // merges that were taken back and can be brought back, the newest last

	Reverted []Reverted `json:"reverted,omitempty"` // undos since it was worked on last, the newest last
	Was      *Mission   `json:"was,omitempty"`      // how it had ended before the first of them: see Mission.Stands

	ToolCalls int      `json:"tool_calls"`        // that were run, or are running
	Reserved  Reserved `json:"reserved,omitzero"` // of its limits, as it was at the newest answer; nothing once it has stopped
}

// HasPlan reports whether the file at its Todo belongs to the mission.
func (m Mission) HasPlan() bool { return m.OwnsTodo || m.HadItems || m.Status.Alive() }

// OwnLanding is when work of its own agent was put on its branch last; zero if none was.
func (m Mission) OwnLanding() time.Time {
	if len(m.Landed) == 0 {
		return time.Time{}
	}
	return m.Landed[len(m.Landed)-1].Time.Time
}

// PassedBy is the review that has passed an item of a plan.
type PassedBy struct {
	Task    string `json:"task,omitempty"`    // its id; empty in what older versions have written
	Item    string `json:"item,omitempty"`    // the item that it worked on, if any: one of its own, or the one that it was handed to look at
	Address string `json:"address,omitempty"` // of its session, such as 0/7; empty if that was not kept
}

// String names the review as a person can look for it.
func (p PassedBy) String() string { return cmp.Or(p.Address, p.Task) }

// UnmarshalJSON also reads what older versions have written: the address alone, or a task's id in its place.
func (p *PassedBy) UnmarshalJSON(b []byte) error {
	var old string
	if json.Unmarshal(b, &old) == nil {
		*p = PassedBy{Address: old}
		if strings.HasPrefix(old, string(PrefixTask)+"_") {
			*p = PassedBy{Task: old}
		}
		return nil
	}
	type plain PassedBy
	return json.Unmarshal(b, (*plain)(p))
}

// Merged is where the work of a mission was put.
type Merged struct {
	Branch string   `json:"branch,omitempty"` // the person's; empty for a detached HEAD
	Before string   `json:"before"`           // its commit before; empty in a repository that had none
	Commit string   `json:"commit"`           // its commit after
	From   string   `json:"from"`             // the tip of the mission's branch
	Squash bool     `json:"squash,omitempty"`
	Only   []string `json:"only,omitempty"` // the items that were merged; empty: all
	Time   Time     `json:"time"`

	Commits []string `json:"commits,omitempty"` // of the mission's branch that it put there, oldest first
	Earlier *Merged  `json:"earlier,omitempty"` // the merge before it, whose work still stands there
	Follows bool     `json:"follows,omitempty"` // it took back, or brought back, one task of the merge before it
}

// Has reports whether this merge, or one before it that still stands, has put a commit of the mission's branch where it is.
func (m *Merged) Has(commit string) bool {
	for ; m != nil; m = m.Earlier {
		if slices.Contains(m.Commits, commit) {
			return true
		}
	}
	return false
}

// TakenBack is a merge that a person took back, as long as it is neither brought back nor merged again.
type TakenBack struct {
	Merge  Merged `json:"merge"`            // as it was recorded, with what it stood on
	Before string `json:"before,omitempty"` // where the branch stood before it was taken back; empty if nobody knows
	After  string `json:"after"`            // where it stood then
	Time   Time   `json:"time"`
}

// Reverted is what the undo of some work means for the plan of its mission. It is recorded together with the undo and carried
// out after that, so that a crash in between loses nothing.
type Reverted struct {
	What    string   `json:"what"`              // in words: T2
	Task    string   `json:"task,omitempty"`    // whose work was reverted; empty for the mission's
	Merge   Time     `json:"merge,omitzero"`    // of a merge: the time of its TakenBack
	Items   []string `json:"items,omitempty"`   // items that were done, and are open because of it
	Reviews []string `json:"reviews,omitempty"` // tasks whose verdict does not count because of it
	Word    string   `json:"word,omitempty"`    // the delivery that tells the mission's own agent
	Marked  bool     `json:"marked,omitempty"`  // the plan and the notes say it
	Back    bool     `json:"back,omitempty"`    // it was brought back, and the plan and the notes do not say so yet
}

// Stands copies from another record how a mission stands: its state and what was counted at its end.
func (m *Mission) Stands(as Mission) {
	m.Status, m.Reason, m.Summary, m.Reopened = as.Status, as.Reason, as.Summary, as.Reopened
	m.Verified, m.Unverified, m.Unproven, m.Flaky, m.Reviewed = as.Verified, as.Unverified, as.Unproven, as.Flaky, as.Reviewed
	m.Evidence, m.Check = as.Evidence, as.Check
}

// Who said the level of a mission, if no agent did.
const (
	LevelByPerson = "person"
	LevelInferred = "inferred" // the host read it from the plan
)

// How the writers of a mission are kept apart, and what a person may ask for.
const (
	IsolationAuto     = "auto"     // asked for: worktree where that is possible, else shared
	IsolationShared   = "shared"   // all write in the project's own directory
	IsolationWorktree = "worktree" // each writer in a checkout of its own
)

// MissionOptions is what a mission was started with; a resume may raise its limits. Zero limits mean none.
type MissionOptions struct {
	Agent       string   `json:"agent,omitempty"` // the root session's agent
	Model       string   `json:"model,omitempty"` // provider/model
	PlanOnly    bool     `json:"plan_only,omitempty"`
	ShowPlan    bool     `json:"show_plan,omitempty"` // wait for a person before the plan runs
	Level       int      `json:"level,omitempty"`     // set by the person instead of assessed
	MaxCost     float64  `json:"max_cost,omitempty"`  // USD
	MaxTokens   int64    `json:"max_tokens,omitempty"`
	MaxDuration int64    `json:"max_duration_ms,omitempty"`
	MaxRounds   int      `json:"max_rounds,omitempty"`
	MaxWorkers  int      `json:"max_workers,omitempty"`
	MaxPerAgent int      `json:"max_per_agent,omitempty"`
	Ask         string   `json:"ask,omitempty"`          // ask, deny or allow: what happens to a permission ask that no rule answers, and to a question
	Unattended  bool     `json:"unattended,omitempty"`   // nobody watches: where everybody waits for the answer to a question, it stops as blocked
	Verify      []string `json:"verify,omitempty"`       // the project's own checks from the configuration
	TrustVerify bool     `json:"trust_verify,omitempty"` // the plan's verify lines need no ask of their own
	Request     string   `json:"request,omitempty"`      // names the request that started it: asked again with the same name, it starts no second one
	Detached    bool     `json:"detached,omitempty"`     // it runs in a background host, whatever becomes of the terminal

	MaxToolCalls int `json:"max_tool_calls,omitempty"`

	Isolation string   `json:"isolation,omitempty"` // auto, shared or worktree; "" is auto
	Dirty     string   `json:"dirty,omitempty"`     // include or ignore uncommitted work; "" is include
	Setup     []string `json:"setup,omitempty"`     // commands that make a fresh checkout usable, as configured
	// TrustSetup says that these commands are a person's own and need no permission.
	TrustSetup bool `json:"trust_setup,omitempty"`
	Merge      bool `json:"merge,omitempty"` // the finished work is put on the person's branch without asking
	// RequireProof blocks an end with [EvidenceNone].
	RequireProof bool `json:"require_proof,omitempty"`

	Profile string `json:"profile,omitempty"` // who works on it: mission or assistant; "" is mission
	// Files go with the goal. They are kept in the first message, not here.
	Files []File `json:"files,omitempty"`
	// Attached is the text of files that go with the goal, each labelled. It is kept as a part of its own in the first
	// message, not here.
	Attached string `json:"attached,omitempty"`
	// Plan is a file of the project, relative to it, that the person wants carried out as the mission's plan. Empty: the
	// mission writes its own, and a todo.md that no mission owns is put aside.
	Plan string `json:"plan,omitempty"`
	// AskVerify says that Verify came with the project: each command goes by the rules of a shell command.
	AskVerify bool `json:"ask_verify,omitempty"`
}

// TaskStatus is where a delegated piece of work stands.
//
//	queued ──▶ running ──▶ verifying ──▶ merging ──▶ completed
//	  ▲ │        │ ▲ │         │
//	  │ └▶waiting┘ │ └─────────┴──▶ failed · blocked
//	  └────────────┘ (retry)         any living state ──▶ cancelled
type TaskStatus string

// The states of a task. Waiting means for something named in its Reason: a predecessor, files, a retry time, a person.
const (
	TaskQueued    TaskStatus = "queued"
	TaskRunning   TaskStatus = "running"
	TaskWaiting   TaskStatus = "waiting"
	TaskVerifying TaskStatus = "verifying"
	TaskMerging   TaskStatus = "merging"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCancelled TaskStatus = "cancelled"
	TaskBlocked   TaskStatus = "blocked"
)

var taskMoves = map[TaskStatus][]TaskStatus{
	"":            {TaskQueued},
	TaskQueued:    {TaskRunning, TaskWaiting, TaskFailed, TaskCancelled, TaskBlocked},
	TaskWaiting:   {TaskQueued, TaskRunning, TaskFailed, TaskCancelled, TaskBlocked},
	TaskRunning:   {TaskQueued, TaskWaiting, TaskVerifying, TaskMerging, TaskCompleted, TaskFailed, TaskCancelled, TaskBlocked},
	TaskVerifying: {TaskQueued, TaskRunning, TaskWaiting, TaskMerging, TaskCompleted, TaskFailed, TaskCancelled, TaskBlocked},
	TaskMerging:   {TaskQueued, TaskRunning, TaskWaiting, TaskCompleted, TaskFailed, TaskCancelled, TaskBlocked},
	TaskBlocked:   {TaskQueued, TaskCancelled},
	TaskCompleted: nil,
	TaskFailed:    nil,
	TaskCancelled: nil,
}

// CanBecome reports whether a task in state s may move to state to. A completed, failed or cancelled task never
// moves again; a blocked one is queued again when a person has answered.
func (s TaskStatus) CanBecome(to TaskStatus) bool { return slices.Contains(taskMoves[s], to) }

// Ended reports whether the task will not be worked on again by itself.
func (s TaskStatus) Ended() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled || s == TaskBlocked
}

// TaskStatuses lists every state in the order of a task's life, as the board shows them.
var TaskStatuses = []TaskStatus{TaskQueued, TaskRunning, TaskWaiting, TaskVerifying, TaskMerging, TaskCompleted,
	TaskFailed, TaskCancelled, TaskBlocked}

// Task is a delegated piece of work. It outlives the sessions that try it: each attempt has its own session and a
// higher Attempt number, which fences off what an older attempt still says.
type Task struct {
	ID      string     `json:"id"`
	Mission string     `json:"mission"`
	Parent  string     `json:"parent"` // the session that delegated it
	Call    string     `json:"call"`   // the tool call that created it; one task for each call
	Agent   string     `json:"agent"`
	Title   string     `json:"title"`
	Prompt  string     `json:"prompt"`
	Number  int        `json:"number,omitempty"`  // counts the mission's tasks from 1, never reused; 0 in what an earlier version recorded
	Item    string     `json:"item,omitempty"`    // the todo item it works on
	Reviews bool       `json:"reviews,omitempty"` // its item was done before it: it judges that work and does none of it
	Verify  []string   `json:"verify,omitempty"`  // its item's acceptance commands when work on it began
	Context bool       `json:"context,omitempty"` // its session is given the project's shared context
	Status  TaskStatus `json:"status"`
	Reason  string     `json:"reason,omitempty"` // what it waits for
	Attempt int        `json:"attempt"`
	Returns int        `json:"returns,omitempty"` // times in a row that its work was sent back: it begins anew when a person has it tried on
	// CameBack is how often its work was sent back in all.
	CameBack int        `json:"came_back,omitempty"`
	Session  string     `json:"session,omitempty"`
	Resumes  string     `json:"resumes,omitempty"` // the task before it in the same session, whose conversation it goes on with
	Result   string     `json:"result,omitempty"`
	Error    *TaskError `json:"error,omitempty"`
	Files    []string   `json:"files,omitempty"` // paths it changed, relative to the project
	Usage    Usage      `json:"usage"`
	Created  Time       `json:"created"`
	Started  Time       `json:"started,omitzero"`
	Ended    Time       `json:"ended,omitzero"`
	// Archived is when its record was written to the archive. Archiving says that it is on its way there: after a crash
	// nobody knows whether it has arrived.
	Archived  Time `json:"archived,omitzero"`
	Archiving bool `json:"archiving,omitempty"`

	Budget    TaskBudget `json:"budget,omitzero"`
	Rounds    int        `json:"rounds,omitempty"`     // requests made to models
	ToolCalls int        `json:"tool_calls,omitempty"` // that were run, or are running
	ElapsedMS int64      `json:"elapsed_ms,omitempty"` // at work until its newest answer or its end, in milliseconds

	Sub *SubAgent `json:"sub,omitempty"` // it is a sub-agent's; nil for what was delegated

	Checkout *Checkout `json:"checkout,omitempty"` // where it works; nil before its first write, after its end, and where there is no isolation
	Landed   []Landed  `json:"landed,omitempty"`   // its commits on the mission's branch, oldest first; with shared isolation one at most, of trees
	Claims   []string  `json:"claims,omitempty"`   // paths outside of its item's files that it has written
	Overlaps []string  `json:"overlaps,omitempty"` // who else works on which path, "T2 a/b.go", as far as it was told; earlier versions had paths only
	Outside  []string  `json:"outside,omitempty"`  // files that it has changed, or merged, and that its item's `files:` did not name when it ended
	Undone   Time      `json:"undone,omitzero"`    // when a person took its work back
	Aside    []Aside   `json:"aside,omitempty"`    // what its tools have written and git ignores, at its end

	Unchanged bool `json:"unchanged,omitempty"` // a review: when it began, the mission had changed nothing that it could judge

	Rejections []Rejection `json:"rejections,omitempty"` // why its work was sent back, oldest first
	Merging    string      `json:"merging,omitempty"`    // the newest commit in Landed, as long as it is not known that the branch has it

	Exchanged []Exchange `json:"exchanged,omitempty"` // acceptance commands that it has changed after work on them had begun, oldest first
}

// Name is what people call the task in every command and view, from its first event to its end: its item (T2), else its number (w7).
// A task that an earlier version recorded without an item has its id.
func (t Task) Name() string {
	if t.Item == "" && t.Number > 0 {
		return "w" + strconv.Itoa(t.Number)
	}
	return cmp.Or(t.Item, t.ID)
}

// Aside is a directory with files that an agent has written in its checkout and that git ignores: no merge takes them along.
type Aside struct {
	Dir   string   `json:"dir"`   // absolute
	Files []string `json:"files"` // relative to Dir, as they were to the repository's top
}

// String says it in a phrase, with files of one directory counted where there are many.
func (a Aside) String() string {
	const most = 3 // that are named one by one
	names := a.Files
	if len(names) > most {
		count := map[string]int{}
		names = nil
		for _, f := range a.Files {
			top, _, below := strings.Cut(f, "/")
			if below {
				top += "/"
			}
			if count[top]++; count[top] == 1 {
				names = append(names, top)
			}
		}
		for i, top := range names {
			if count[top] > 1 {
				names[i] = fmt.Sprintf("%s (%s)", top, Count(count[top], "file"))
			}
		}
		if len(names) > most {
			names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
		}
	}
	return fmt.Sprintf("git ignores %s: not merged, kept in %s", strings.Join(names, ", "), a.Dir)
}

// MaxRejectionFiles is how many files a Rejection names: a notice has room for a few, and the row is written at each answer.
const MaxRejectionFiles = 10

// Rejection is why a task's work was sent back to its session.
type Rejection struct {
	Cause   string   `json:"cause"`             // one of the causes in package event
	Files   []string `json:"files,omitempty"`   // that it is about, relative to the project; the first MaxRejectionFiles
	Command string   `json:"command,omitempty"` // that failed, or proves nothing
}

// RejectedFor reports whether its work was ever sent back for a cause.
func (t Task) RejectedFor(cause string) bool {
	return slices.ContainsFunc(t.Rejections, func(r Rejection) bool { return r.Cause == cause })
}

// Exchange is a change of what has to be proven, which only a review may make once work on it has begun.
type Exchange struct {
	Item string   `json:"item,omitempty"` // empty for the mission's own checks
	From []string `json:"from"`           // the acceptance commands before
	To   []string `json:"to"`
}

// TaskError is why a task failed.
type TaskError struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the next step for a person
}
