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

// MissionStatus is the status of a mission.
//
//	planning ──▶ running ──▶ completed
//	   │ ▲        │  ▲  └──▶ failed
//	   ▼ │        ▼  │
//	paused / blocked ┘        any living state ──▶ cancelled
//
// Paused missions wait for a budget, a disk or a resume; blocked ones for a person's answer. Both can be resumed. An ended mission
// becomes paused when its conversation is rewound; a completed one also when its work is reverted, or, with the profile assistant, when
// it gets a message.
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

// CanBecome reports whether a mission in state s may move to state to. A failed mission may be resumed, because the cause (a key, a
// model, a network) is usually fixed outside. A mission that is over becomes paused only by a rewind of its conversation, a revert of
// its work or, with the profile assistant, a message. Only a redo completes a paused mission, if an undo has paused it.
func (s MissionStatus) CanBecome(to MissionStatus) bool { return slices.Contains(missionMoves[s], to) }

// Word is the status for people: for a completed mission it also says if nothing proves it. With the profile assistant, whose answers
// need no evidence, it is only the status.
func (s MissionStatus) Word(e Evidence, profile string) string {
	if s == MissionCompleted && e == EvidenceNone && (profile == "" || profile == "mission") {
		return "completed, not verified"
	}
	return string(s)
}

// Alive reports whether the mission is being worked on.
func (s MissionStatus) Alive() bool { return s == MissionPlanning || s == MissionRunning }

// Ended reports whether the mission is over for good: a failed one may still be resumed.
func (s MissionStatus) Ended() bool { return s == MissionCompleted || s == MissionCancelled }

// Mission is one goal in one project directory, worked on until it is proven done.
type Mission struct {
	ID        string         `json:"id"`
	Goal      string         `json:"goal"` // as typed by the person
	Status    MissionStatus  `json:"status"`
	Directory string         `json:"directory"`            // absolute path of the project
	Branch    string         `json:"branch,omitempty"`     // the branch that collects its work; empty when it works in place
	Reason    string         `json:"reason,omitempty"`     // why it is paused, blocked, failed or cancelled
	Level     int            `json:"level,omitempty"`      // 1, 2 or 3 as assessed or set; 0 if unknown
	LevelFrom string         `json:"level_from,omitempty"` // its source: LevelByPerson, LevelInferred or an agent's name
	Options   MissionOptions `json:"options"`
	Usage     Usage          `json:"usage"`
	Session   string         `json:"session,omitempty"`   // the Commander's session
	Rounds    int            `json:"rounds"`              // requests to models
	ElapsedMS int64          `json:"elapsed_ms"`          // working time until the newest answer, in milliseconds, without pauses
	Runs      int            `json:"runs,omitempty"`      // how many hosts have worked on it
	Todo      string         `json:"todo"`                // its plan, relative to the project
	HadItems  bool           `json:"had_items"`           // its plan has had items: an empty one then proves nothing
	OwnsTodo  bool           `json:"owns_todo,omitempty"` // the plan's file belongs to it: set before its first write, or when it adopts one
	Adopted   []string       `json:"adopted,omitempty"`   // unaccepted verify lines of the adopted plan
	PutAside  string         `json:"put_aside,omitempty"` // where an existing ownerless plan was moved, relative to the project
	Accepted  bool           `json:"accepted"`            // the plan was accepted by a person
	Approved  []string       `json:"approved,omitempty"`  // the verify lines accepted with the plan
	Summary   string         `json:"summary,omitempty"`   // the Commander's last words to the person
	Tally                    // as of its last stop
	Evidence  Evidence       `json:"evidence,omitempty"` // its proof at its last stop; empty before, and in records of older versions
	Check     string         `json:"check,omitempty"`    // the final check given by its own agent
	Reopened  int            `json:"reopened"`           // how often a final check reopened items
	Started   Time           `json:"started"`
	Updated   Time           `json:"updated"`

	// What a person has made of the root session: its title, if not that of the goal, and when it was archived and removed from lists.
	Title    string `json:"title,omitempty"`
	Archived Time   `json:"archived,omitzero"`
	Below    string `json:"below,omitempty"` // the session below which its root session was opened
	Removed  Time   `json:"removed,omitzero"`
	// Revert is what the person has reverted of the conversation, until its next message; nil if nothing.
	Revert *Revert `json:"revert,omitempty"`

	Confinement *Confinement `json:"confinement,omitempty"` // of its commands in its newest run; nil in records of older versions

	Isolation string    `json:"isolation,omitempty"` // worktree or shared; empty before its first run
	Base      *Base     `json:"base,omitempty"`      // the base of its work; nil without git
	Checkout  *Checkout `json:"checkout,omitempty"`  // of its own agent; nil before its first write
	Wrote     []Landed  `json:"wrote,omitempty"`     // changes by its own agent in the project's own directory: see Task.Landed
	Aside     []Aside   `json:"aside,omitempty"`     // git-ignored files written by its own agent
	Landed    []Landed  `json:"landed,omitempty"`    // its own agent's commits on its branch, oldest first, only with the files that tasks had changed before
	Merging   string    `json:"merging,omitempty"`   // the newest of these, until the branch is known to have it
	Merged    *Merged   `json:"merged,omitempty"`    // the last merge of its work; nil while it is only on its branch

	TakenBack []TakenBack `json:"taken_back,omitempty"` // undone merges that can be redone, newest last

	Reverted []Reverted `json:"reverted,omitempty"` // undos since its last run, newest last
	Was      *Mission   `json:"was,omitempty"`      // its status before the first of them: see Mission.Stands

	ToolCalls int      `json:"tool_calls"`        // run or running
	Reserved  Reserved `json:"reserved,omitzero"` // the reservations as of the newest answer; zero once it has stopped
}

// HasPlan reports whether the file at its Todo belongs to the mission.
func (m Mission) HasPlan() bool { return m.OwnsTodo || m.HadItems || m.Status.Alive() }

// OwnLanding is when work of its own agent was last put on its branch; zero if never.
func (m Mission) OwnLanding() time.Time {
	if len(m.Landed) == 0 {
		return time.Time{}
	}
	return m.Landed[len(m.Landed)-1].Time.Time
}

// PassedBy is the review that has passed an item of a plan.
type PassedBy struct {
	Task    string `json:"task,omitempty"`    // its id; empty in records of older versions
	Item    string `json:"item,omitempty"`    // its item, if any: a review item, or the item it was delegated to review
	Address string `json:"address,omitempty"` // of its session, such as 0/7; empty if unknown
}

// String identifies the review for a person.
func (p PassedBy) String() string { return cmp.Or(p.Address, p.Task) }

// UnmarshalJSON also reads records of older versions: the address alone, or a task's id in its place.
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

// Merged is a merge of a mission's work.
type Merged struct {
	Branch string   `json:"branch,omitempty"` // the person's; empty for a detached HEAD
	Before string   `json:"before"`           // its commit before; empty if there was none
	Commit string   `json:"commit"`           // its commit after
	From   string   `json:"from"`             // the tip of the mission's branch
	Squash bool     `json:"squash,omitempty"`
	Only   []string `json:"only,omitempty"` // the merged items; empty: all
	Time   Time     `json:"time"`

	Commits []string `json:"commits,omitempty"` // the merged commits of the mission's branch, oldest first
	Earlier *Merged  `json:"earlier,omitempty"` // the previous merge, which is still in effect
	Follows bool     `json:"follows,omitempty"` // it undid or redid one task of the previous merge
}

// Has reports whether this merge, or an earlier one still in effect, included a commit of the mission's branch.
func (m *Merged) Has(commit string) bool {
	for ; m != nil; m = m.Earlier {
		if slices.Contains(m.Commits, commit) {
			return true
		}
	}
	return false
}

// TakenBack is a merge that a person undid, until it is redone or merged again.
type TakenBack struct {
	Merge  Merged `json:"merge"`            // as recorded, with earlier ones
	Before string `json:"before,omitempty"` // the branch's commit before the undo; empty if unknown
	After  string `json:"after"`            // its commit after the undo
	Time   Time   `json:"time"`
}

// Reverted is the effect of an undo on its mission's plan. It is recorded together with the undo and applied afterwards, so that a
// crash in between loses nothing.
type Reverted struct {
	What    string   `json:"what"`              // a description: T2
	Task    string   `json:"task,omitempty"`    // the reverted task; empty for the mission
	Merge   Time     `json:"merge,omitzero"`    // of a merge: the time of its TakenBack
	Items   []string `json:"items,omitempty"`   // done items that it reopens
	Reviews []string `json:"reviews,omitempty"` // review tasks whose verdict it voids
	Word    string   `json:"word,omitempty"`    // the delivery that notifies the mission's own agent
	Marked  bool     `json:"marked,omitempty"`  // the plan and the notes reflect it
	Back    bool     `json:"back,omitempty"`    // it was redone, but the plan and the notes do not reflect that yet
}

// Tally counts the done items of a plan with and without proof, and names those in doubt and the cancelled ones.
type Tally struct {
	Verified   int      `json:"verified"` // done items with a passed check or review
	Unverified int      `json:"unverified"`
	Unproven   []string `json:"unproven,omitempty"` // done items without evidence that their check can fail
	Flaky      []string `json:"flaky,omitempty"`    // done items whose check ended differently when run again
	// Reviewed are the items that count as verified because of a passed review, with that review. Items of Unproven and Flaky that are
	// not in it count as unverified.
	Reviewed       map[string]PassedBy `json:"reviewed,omitempty"`
	CancelledItems []string            `json:"cancelled_items,omitempty"`
}

// Stands copies a mission's status and the figures of its end from another record.
func (m *Mission) Stands(as Mission) {
	m.Status, m.Reason, m.Summary, m.Reopened = as.Status, as.Reason, as.Summary, as.Reopened
	m.Tally, m.Evidence, m.Check = as.Tally, as.Evidence, as.Check
}

// Sources of a mission's level other than an agent.
const (
	LevelByPerson = "person"
	LevelInferred = "inferred" // derived from the plan by the host
)

// The modes of isolation between a mission's writers, and the options for a person.
const (
	IsolationAuto     = "auto"     // option only: worktree if possible, otherwise shared
	IsolationShared   = "shared"   // all write in the project's own directory
	IsolationWorktree = "worktree" // each writer has a checkout of its own
)

// MissionOptions are the options of a mission; a resume may raise its limits. Zero limits mean none.
type MissionOptions struct {
	Agent       string   `json:"agent,omitempty"` // the root session's agent
	Model       string   `json:"model,omitempty"` // provider/model
	PlanOnly    bool     `json:"plan_only,omitempty"`
	ShowPlan    bool     `json:"show_plan,omitempty"`  // wait for a person before the plan runs
	PlanFirst   bool     `json:"plan_first,omitempty"` // likewise, and the mission's own agent writes nothing before, either
	Level       int      `json:"level,omitempty"`      // set by the person instead of assessed
	MaxCost     float64  `json:"max_cost,omitempty"`   // USD
	MaxTokens   int64    `json:"max_tokens,omitempty"`
	MaxDuration int64    `json:"max_duration_ms,omitempty"`
	MaxRounds   int      `json:"max_rounds,omitempty"`
	MaxWorkers  int      `json:"max_workers,omitempty"`
	MaxPerAgent int      `json:"max_per_agent,omitempty"`
	Ask         string   `json:"ask,omitempty"`          // ask, deny or allow: the answer to permission asks without a rule, and to questions
	Unattended  bool     `json:"unattended,omitempty"`   // no one watches: if all agents wait for answers, it stops as blocked
	Verify      []string `json:"verify,omitempty"`       // the project's own checks from the configuration
	TrustVerify bool     `json:"trust_verify,omitempty"` // the plan's verify lines need no permission
	Request     string   `json:"request,omitempty"`      // the name of the request that started it: a repeated request with the same name starts no second mission
	Detached    bool     `json:"detached,omitempty"`     // it runs in a background host, independent of the terminal

	MaxToolCalls int `json:"max_tool_calls,omitempty"`

	Isolation string   `json:"isolation,omitempty"` // auto, shared or worktree; "" is auto
	Dirty     string   `json:"dirty,omitempty"`     // include or ignore uncommitted work; "" is include
	Setup     []string `json:"setup,omitempty"`     // commands that prepare a fresh checkout, as configured
	// TrustSetup means that these commands are the person's own, or trusted, and need no permission.
	TrustSetup bool `json:"trust_setup,omitempty"`
	Merge      bool `json:"merge,omitempty"` // merge the finished work into the person's branch without asking
	// RequireProof blocks an end with [EvidenceNone].
	RequireProof bool `json:"require_proof,omitempty"`

	Profile string `json:"profile,omitempty"` // mission or assistant; "" is mission
	// Session is the id of an opened session that the mission begins, "" for a new one.
	Session string `json:"session,omitempty"`
	// Files are attached to the goal. They are stored in the first message, not here.
	Files []File `json:"files,omitempty"`
	// Parts are the first message when it is more than the goal with Files after it, and Message is its id, "" for a new one. They are
	// stored as that message, not here.
	Parts   []Part `json:"parts,omitempty"`
	Message string `json:"message,omitempty"`
	// Typed is the slash command that the goal was made of; nil for none.
	Typed *Typed `json:"typed,omitempty"`
	// Attached is the labelled text of files attached to the goal. It is stored as a separate part of the first message, not here.
	Attached string `json:"attached,omitempty"`
	// Plan is a file of the project, relative to it, to be carried out as the mission's plan. If empty, the mission writes its own, and
	// an ownerless todo.md is moved aside.
	Plan string `json:"plan,omitempty"`
	// AskVerify means that Verify came with the project and is not trusted: each command needs a rule or an answer of a person's.
	AskVerify bool `json:"ask_verify,omitempty"`
}

// Typed is a slash command as it was typed.
type Typed struct {
	Command   string `json:"command"` // without the slash
	Arguments string `json:"arguments"`
}

// TaskStatus is the status of a delegated piece of work.
//
//	queued ──▶ running ──▶ verifying ──▶ merging ──▶ completed
//	  ▲ │        │ ▲ │         │
//	  │ └▶waiting┘ │ └─────────┴──▶ failed · blocked
//	  └────────────┘ (retry)         any living state ──▶ cancelled
type TaskStatus string

// The states of a task. Waiting means for the subject of its Reason: a predecessor, files, a retry time, a person.
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

// CanBecome reports whether a task in state s may move to state to. A completed, failed or cancelled task never moves again; a blocked
// one is queued again when a person has answered.
func (s TaskStatus) CanBecome(to TaskStatus) bool { return slices.Contains(taskMoves[s], to) }

// Ended reports whether the task has stopped for good, unless a person resumes it.
func (s TaskStatus) Ended() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled || s == TaskBlocked
}

// TaskStatuses lists every state in the order of a task's life, as on the board.
var TaskStatuses = []TaskStatus{TaskQueued, TaskRunning, TaskWaiting, TaskVerifying, TaskMerging, TaskCompleted,
	TaskFailed, TaskCancelled, TaskBlocked}

// Task is a delegated piece of work. It outlives its sessions: each attempt has its own session and a higher Attempt number, which
// fences off late writes of older attempts.
type Task struct {
	ID      string     `json:"id"`
	Mission string     `json:"mission"`
	Parent  string     `json:"parent"` // the session that delegated it
	Call    string     `json:"call"`   // the tool call that created it; one task per call
	Agent   string     `json:"agent"`
	Title   string     `json:"title"`
	Prompt  string     `json:"prompt"`
	Number  int        `json:"number,omitempty"`  // counts the mission's tasks from 1, never reused; 0 in records of an earlier version
	Item    string     `json:"item,omitempty"`    // its todo item
	Reviews bool       `json:"reviews,omitempty"` // its item was done before: it only reviews that work
	Verify  []string   `json:"verify,omitempty"`  // its item's acceptance commands at the begin of its work
	Context bool       `json:"context,omitempty"` // its session gets the project's shared context
	Status  TaskStatus `json:"status"`
	Reason  string     `json:"reason,omitempty"` // why it waits or has ended
	Attempt int        `json:"attempt"`
	Returns int        `json:"returns,omitempty"` // consecutive returns of its work; reset when a person requests another try
	// CameBack is how often its work was returned in total.
	CameBack int        `json:"came_back,omitempty"`
	Session  string     `json:"session,omitempty"`
	Resumes  string     `json:"resumes,omitempty"` // the previous task in the same session, whose conversation it continues
	Result   string     `json:"result,omitempty"`
	Error    *TaskError `json:"error,omitempty"`
	Files    []string   `json:"files,omitempty"` // changed paths, relative to the project
	Usage    Usage      `json:"usage"`
	Created  Time       `json:"created"`
	Started  Time       `json:"started,omitzero"`
	Ended    Time       `json:"ended,omitzero"`
	// Archived is when its record was written to the archive. Archiving means that the write has begun: after a crash its success is
	// unknown.
	Archived  Time `json:"archived,omitzero"`
	Archiving bool `json:"archiving,omitempty"`

	Budget    TaskBudget `json:"budget,omitzero"`
	Rounds    int        `json:"rounds,omitempty"`     // requests to models
	ToolCalls int        `json:"tool_calls,omitempty"` // run or running
	ElapsedMS int64      `json:"elapsed_ms,omitempty"` // working time until its newest answer or its end, in milliseconds

	Sub  *SubAgent `json:"sub,omitempty"`  // set for a sub-agent; nil for delegated tasks
	Race *Race     `json:"race,omitempty"` // set if others try the same item beside it

	Checkout *Checkout `json:"checkout,omitempty"` // its checkout; nil before its first write, after its end, and without isolation
	Landed   []Landed  `json:"landed,omitempty"`   // its commits on the mission's branch, oldest first; with shared isolation at most one, of trees
	Claims   []string  `json:"claims,omitempty"`   // written paths outside of its item's files
	Overlaps []string  `json:"overlaps,omitempty"` // who else works on which path, "T2 a/b.go", as far as announced; earlier versions had only paths
	Outside  []string  `json:"outside,omitempty"`  // changed or merged files that were not in its item's `files:` when it ended
	Undone   Time      `json:"undone,omitzero"`    // when a person undid its work
	Aside    []Aside   `json:"aside,omitempty"`    // git-ignored files written by its tools, at its end

	Unchanged bool `json:"unchanged,omitempty"` // a review: when it began, there were no changes for it to judge

	Rejections []Rejection `json:"rejections,omitempty"` // why its work was returned, oldest first
	Merging    string      `json:"merging,omitempty"`    // the newest commit in Landed, until the branch is known to have it

	Frozen    *Frozen    `json:"frozen,omitempty"`    // the checks of its item that count; nil in records of an earlier version
	Exchanged []Exchange `json:"exchanged,omitempty"` // acceptance commands that it changed after work on them had begun, oldest first
}

// Name is the task's name in all commands and views, for its whole life: its item (T2), in a race with the number of its try (T2/1),
// otherwise its number (w7). A task without an item, recorded by an earlier version, has its id.
func (t Task) Name() string {
	if t.Race != nil {
		return t.Item + "/" + strconv.Itoa(t.Race.Try)
	}
	if t.Item == "" && t.Number > 0 {
		return "w" + strconv.Itoa(t.Number)
	}
	return cmp.Or(t.Item, t.ID)
}

// Aside is a directory of git-ignored files that an agent wrote in its checkout: no merge includes them.
type Aside struct {
	Dir   string   `json:"dir"`   // absolute
	Files []string `json:"files"` // relative to Dir, as formerly to the repository's top
}

// String describes it, with many files of one directory only counted.
func (a Aside) String() string {
	const most = 3 // named individually
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

// MaxRejectionFiles limits the files named by a Rejection: a notice has room for a few, and the row is rewritten at each answer.
const MaxRejectionFiles = 10

// Rejection is the reason why a task's work was returned to its session.
type Rejection struct {
	Cause   string   `json:"cause"`             // one of the causes in package event
	Files   []string `json:"files,omitempty"`   // the affected files, relative to the project; the first MaxRejectionFiles
	Command string   `json:"command,omitempty"` // the command that failed or proves nothing
}

// RejectedFor reports whether its work was ever returned for a cause.
func (t Task) RejectedFor(cause string) bool {
	return slices.ContainsFunc(t.Rejections, func(r Rejection) bool { return r.Cause == cause })
}

// Exchange is a replacement of acceptance commands, which only a review may make once work on the item has begun.
type Exchange struct {
	Item string   `json:"item,omitempty"` // empty for the mission's own checks
	From []string `json:"from"`           // the acceptance commands before
	To   []string `json:"to"`
}

// Frozen are the checks that count whatever the plan's file says: those of the hand-out, or those that replaced them with the consent of
// the reviewer or a person.
type Frozen struct {
	Verify []string `json:"verify,omitempty"` // of the item
	Proof  string   `json:"proof,omitempty"`  // of the item
	Own    []string `json:"own,omitempty"`    // of the mission
}

// TaskError is the error of a failed task.
type TaskError struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the next step for a person
}
