package event

import (
	"encoding/json"

	"centurion"
)

// toolOutput is how many bytes of a tool's output an event repeats; the part holds all of what was kept.
const toolOutput = 2 << 10

// Data marshals the data of an event. Data that cannot be marshalled becomes {"error":"…"}, so that no fact is lost because of it. A
// nil v becomes {}.
func Data(v any) (data json.RawMessage) {
	if v == nil {
		return json.RawMessage("{}")
	}
	defer func() {
		if recover() != nil {
			data = json.RawMessage(`{"error":"the data of this event could not be written"}`)
		}
	}()
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return b
}

// Decode reads the data of an event as T. It ignores unknown fields.
func Decode[T any](e centurion.Event) (T, error) {
	var v T
	err := json.Unmarshal(e.Data, &v)
	return v, err
}

// Short cuts a text to the 2 KB that an event repeats: its tail, where a command says how it ended, starting at a whole character.
func Short(s string) string {
	if len(s) <= toolOutput {
		return s
	}
	const mark = "…"
	s = s[len(s)-toolOutput+len(mark):]
	for s != "" && s[0]&0xc0 == 0x80 {
		s = s[1:]
	}
	return mark + s
}

// MissionData is the data of mission.started, mission.resumed and mission.updated. An update holds only the changes.
type MissionData struct {
	Goal      string                  `json:"goal,omitempty"`
	Directory string                  `json:"directory,omitempty"`
	Status    centurion.MissionStatus `json:"status,omitempty"`
	Agent     string                  `json:"agent,omitempty"`
	Model     string                  `json:"model,omitempty"`
	Level     int                     `json:"level,omitempty"`
	LevelFrom string                  `json:"level_from,omitempty"`   // person, inferred, or the agent that assessed it
	Note      string                  `json:"note,omitempty"`         // what the host did, for people
	Countdown int64                   `json:"countdown_ms,omitempty"` // until the host asks for one more turn
	Usage     *centurion.Usage        `json:"usage,omitempty"`
	MaxCost   float64                 `json:"max_cost,omitempty"` // USD
	MaxTokens int64                   `json:"max_tokens,omitempty"`
	Reason    string                  `json:"reason,omitempty"`
	Isolation string                  `json:"isolation,omitempty"` // worktree or shared
	Branch    string                  `json:"branch,omitempty"`    // where the work is collected
	Base      *centurion.Base         `json:"base,omitempty"`      // where the work starts from

	Confinement *centurion.Confinement `json:"confinement,omitempty"` // of its commands
}

// MissionEnd is the data of the event that ends a run of a mission.
type MissionEnd struct {
	Tokens     centurion.Tokens `json:"tokens"`
	Cost       float64          `json:"cost"` // USD
	Unpriced   bool             `json:"unpriced,omitempty"`
	DurationMS int64            `json:"duration_ms"` // without the time paused
	Tasks      map[string]int   `json:"tasks"`       // by status, or "continued": blocked or failed, and continued by another
	centurion.Tally
	Evidence centurion.Evidence `json:"evidence,omitempty"`
	Branch   string             `json:"branch,omitempty"`  // with the work; "" with shared isolation
	Merged   bool               `json:"merged,omitempty"`  // some of the work is on the user's branch
	Profile  string             `json:"profile,omitempty"` // who worked on it: mission or assistant; "" is mission
	Reason   string             `json:"reason,omitempty"`
	Summary  string             `json:"summary,omitempty"` // the Commander's last words
}

// TodoCounts is the data of todo.updated: how many items are in each state.
type TodoCounts struct {
	Open      int `json:"open"`
	Running   int `json:"running"`
	Done      int `json:"done"`
	Cancelled int `json:"cancelled"`
	Blocked   int `json:"blocked"`
}

// Total returns the number of items without the cancelled ones.
func (t TodoCounts) Total() int { return t.Open + t.Running + t.Done + t.Blocked }

// TodoData is the data of todo.updated: the counts, and the items if the plan is new or was replaced.
type TodoData struct {
	TodoCounts
	Title string     `json:"title,omitempty"`
	Items []PlanItem `json:"items,omitempty"`
}

// PlanItem is an item of the plan.
type PlanItem struct {
	ID     string   `json:"id"`
	Title  string   `json:"title"`
	Agent  string   `json:"agent,omitempty"`
	After  []string `json:"after,omitempty"`
	Files  []string `json:"files,omitempty"`
	Verify []string `json:"verify,omitempty"`
	Status string   `json:"status"`
}

// TaskData is the data of the task events.
type TaskData struct {
	Agent   string               `json:"agent"`
	Title   string               `json:"title"`
	Status  centurion.TaskStatus `json:"status"`
	Attempt int                  `json:"attempt"`
	Parent  string               `json:"parent,omitempty"` // the session that delegated it
	Call    string               `json:"call,omitempty"`   // message/call: the parent's call that made it
	Session string               `json:"session,omitempty"`
	Name    string               `json:"name,omitempty"` // its name for people: T2, w7
	Item    string               `json:"item,omitempty"`
	Reason  string               `json:"reason,omitempty"` // what it waits for, or why it was retried or cancelled
	Result  string               `json:"result,omitempty"` // shortened
	Error   *centurion.TaskError `json:"error,omitempty"`
	Files   []string             `json:"files,omitempty"`
	Claims  []string             `json:"claims,omitempty"` // paths it holds beyond its item's files
	Usage   *centurion.Usage     `json:"usage,omitempty"`
	WaitMS  int64                `json:"wait_ms,omitempty"` // until the next attempt
}

// SessionData is the data of session.created, session.idle and session.error.
type SessionData struct {
	Agent   string           `json:"agent,omitempty"`
	Address string           `json:"address,omitempty"`
	Parent  string           `json:"parent,omitempty"`
	Title   string           `json:"title,omitempty"`
	Model   string           `json:"model,omitempty"`
	Finish  string           `json:"finish,omitempty"`
	Kind    centurion.Kind   `json:"kind,omitempty"` // of an error
	Error   string           `json:"error,omitempty"`
	Usage   *centurion.Usage `json:"usage,omitempty"`
}

// ModelData is the data of session.model, and with names of agents in From and To of session.agent.
type ModelData struct {
	Agent  string         `json:"agent,omitempty"`
	From   string         `json:"from"` // provider/model
	To     string         `json:"to"`
	Kind   centurion.Kind `json:"kind,omitempty"` // of the failure
	Reason string         `json:"reason"`
	Error  string         `json:"error,omitempty"`
}

// QueuedData is the data of message.queued. The message itself follows when the receiver takes it in.
type QueuedData struct {
	ID      string           `json:"id"`
	Address string           `json:"address,omitempty"` // of the receiver; empty for a task that has no session yet
	Origin  centurion.Origin `json:"origin"`
	Queue   bool             `json:"queue,omitempty"` // waits for the end of the receiver's turn
	Text    string           `json:"text"`            // shortened
	Files   []string         `json:"files,omitempty"` // the attachments, in words
}

// DeltaData is the data of message.part.delta: a piece of a part's text, or with Gap the place of lost pieces.
type DeltaData struct {
	Message string `json:"message,omitempty"`
	Part    string `json:"part,omitempty"`
	Field   string `json:"field,omitempty"` // text, reasoning, progress (a line about a call) or output (what its command prints)
	Delta   string `json:"delta,omitempty"`
	Gap     bool   `json:"gap,omitempty"`
}

// MaxPrinted limits what is told of a running command's output, in bytes: as much as a model reads of it.
const MaxPrinted = 30_000

// ToolData is the data of tool.started and tool.completed.
type ToolData struct {
	Tool       string          `json:"tool"`
	Call       string          `json:"call"`
	Message    string          `json:"message,omitempty"` // the one with the call
	Part       string          `json:"part,omitempty"`    // the call in it; both are missing in journals of earlier versions
	Title      string          `json:"title,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Error      string          `json:"error,omitempty"`
	Output     string          `json:"output,omitempty"` // at most 2 KB; see Short
	DurationMS int64           `json:"duration_ms,omitempty"`
	// Plugins are the names of those that changed something of the call, or answered or refused it, by what that was.
	Plugins map[string][]string `json:"plugins,omitempty"`
}

// FenceData says what a superseded attempt was kept from writing.
type FenceData struct {
	Attempt int    `json:"attempt"` // the attempt that was refused
	Refused string `json:"refused"` // what it wanted to write
}

// The causes of a return.
const (
	ReturnedCheck    = "check"    // its acceptance command failed; see verify.failed
	ReturnedConflict = "conflict" // it conflicts with merged work; see merge.conflict
	ReturnedMarkers  = "markers"  // it has leftover conflict markers
	ReturnedFiles    = "files"    // it changed files that another task was working on; only in journals of earlier versions
	ReturnedGuard    = "guard"    // it breaks a check of the mission that was green before
	ReturnedQuestion = "question" // it changes nothing, and its agent ended with a question to no one; once per task
	ReturnedStuck    = "stuck"    // its agent said it was stuck, and a person told it to keep trying
	ReturnedHollow   = "hollow"   // its acceptance command passes even without the work, and its own tests could tell; once per session
	ReturnedVerdict  = "verdict"  // it is a review whose answer said neither PASS nor FAIL; once per task
)

// ReturnData is the data of task.returned. For the mission's own agent the event has no task.
type ReturnData struct {
	Cause   string   `json:"cause"`             // one of the causes above
	Reason  string   `json:"reason"`            // in words, shortened
	Files   []string `json:"files,omitempty"`   // in conflict, with markers, or of another task; all in the project
	Command string   `json:"command,omitempty"` // that failed or proves nothing
	Returns int      `json:"returns,omitempty"` // in a row, including this one; 0 after a person has told it to keep trying
}

// StallData is the data of task.stalled. For the mission's own session the event has no task.
type StallData struct {
	SilentMS int64  `json:"silent_ms"` // since the last sign of life
	Last     string `json:"last"`      // what it was doing
}

// RetryData is the data of provider.retrying: a request to a model failed and is repeated.
type RetryData struct {
	Attempt int    `json:"attempt"` // the one that failed, from 1
	WaitMS  int64  `json:"wait_ms"`
	Reason  string `json:"reason"` // of the wait: a rate limit, a gate, a retry
	Error   string `json:"error"`
}

// VerifyData is the data of the verify events.
type VerifyData struct {
	Command    string `json:"command"`
	ExitCode   int    `json:"exit_code"` // -1 if it could not be started, was refused or timed out
	Item       string `json:"item,omitempty"`
	Receipt    string `json:"receipt,omitempty"`
	Final      bool   `json:"final,omitempty"` // run on the finished work
	Early      bool   `json:"early,omitempty"` // a check of the mission that its branch has not passed yet: red is not the work's fault
	Error      string `json:"error,omitempty"` // why it did not finish
	Output     string `json:"output,omitempty"`
	DurationMS int64  `json:"duration_ms"`

	Proof       centurion.Proof `json:"proof,omitempty"`    // what its passing is worth; empty where only passing counts
	Why         string          `json:"why,omitempty"`      // why it is not worth more, one line
	FailureLine string          `json:"died,omitempty"`     // [centurion.Receipt.FailureLine]
	Weakened    []string        `json:"weakened,omitempty"` // checks deleted or weakened by the work, the first 10
}

// AskData is the data of the permission, question and plan events. An answer repeats the ID and the type.
type AskData struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`              // permission, question or plan
	Message    string         `json:"message,omitempty"` // the one with the call
	Call       string         `json:"call,omitempty"`
	Permission string         `json:"permission,omitempty"`
	Patterns   []string       `json:"patterns,omitempty"`
	Always     []string       `json:"always,omitempty"`
	Title      string         `json:"title,omitempty"`
	Text       string         `json:"text,omitempty"`
	Options    []string       `json:"options,omitempty"`
	CostLow    float64        `json:"cost_low,omitempty"` // USD, a rough estimate of the plan's cost; omitted without a price
	CostHigh   float64        `json:"cost_high,omitempty"`
	Deadline   centurion.Time `json:"deadline,omitzero"`
	Answer     string         `json:"answer,omitempty"` // once, always, reject, or a text
	By         string         `json:"by,omitempty"`     // person, program, always (their earlier answer), policy, timeout, abort or shutdown
	PID        int            `json:"pid,omitempty"`    // the process that answered, as the system names it; 0 if unknown
	Command    string         `json:"command,omitempty"`
	AskFrom
	QuestionShape
}

// BudgetData is the data of budget.exceeded: the limit and what was spent.
type BudgetData struct {
	Limit string  `json:"limit"` // max_cost, max_tokens, max_duration, max_rounds or max_tool_calls
	Spent float64 `json:"spent"` // USD, tokens, milliseconds or rounds
	Max   float64 `json:"max"`
}

// MergeData is the data of the merge events.
type MergeData struct {
	Branch string   `json:"branch"`
	Commit string   `json:"commit,omitempty"`
	Files  []string `json:"files,omitempty"`  // in conflict, or merged
	Person bool     `json:"person,omitempty"` // on the person's branch, not on the mission's
	// Changed is the number of merged files if some were renamed and are listed under both names.
	Changed int `json:"changed,omitempty"`
}

// WithFiles adds the merged files.
func (d MergeData) WithFiles(files []centurion.FileChange) MergeData {
	d.Files, d.Changed = centurion.Paths(files), 0
	if len(files) < len(d.Files) {
		d.Changed = len(files)
	}
	return d
}

// PluginData is the data of plugin.acted.
type PluginData struct {
	Hook string `json:"hook"`
	By   string `json:"by"` // plugin NAME, or several names
	// Answer is allow or deny, and About the command that it is about; else Message may be the message that was changed.
	Answer  string `json:"answer,omitempty"`
	About   string `json:"about,omitempty"`
	Message string `json:"message,omitempty"`
}
