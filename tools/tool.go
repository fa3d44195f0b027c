// Package tools has the tools of models: for each one a file x.go and its description for the model, x.md.
//
// A tool gets everything it may touch in its [Call]: the workspace, a runner for child processes, a gate for permissions, and, if its
// role holds them, interfaces to the orchestrator. It has no access to the session that runs it, so it cannot wait for its own caller.
package tools

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/redact"
	"centurion/tools/web"
	"centurion/workspace"
)

// Tool is a tool of models. Implementations are stateless: one value serves all sessions at the same time.
type Tool interface {
	// Name is the tool's name for the model.
	Name() string
	// Description is the text for the model: when to use it, what it returns, one example.
	Description() string
	// Schema describes the input, an object. It is resolved once; inputs are checked against it before Run.
	Schema() *jsonschema.Schema
	// Effect returns what a run with input would touch, so that independent calls may run in parallel.
	Effect(input json.RawMessage) Effect
	// Run runs the tool. The model gets the text of an error with its hint; an error never ends the session.
	Run(ctx context.Context, c *Call, input json.RawMessage) (Result, error)
}

// ErrLater is returned, alone or joined with the cause, by a call with effect Once or ReadOnly whose context ended because the program
// stops. The call is not over: it is run again when its session continues, together with the calls of the same answer that had not
// begun.
var ErrLater = &centurion.Error{Kind: centurion.KindInterrupted, Msg: "it continues when the session does"}

// Effect describes what a tool call touches.
type Effect struct {
	ReadOnly bool     // nothing is changed; after a crash the call may simply run again
	Writes   []string // written project-relative paths; nil without ReadOnly means anything
	Outside  bool     // a process that serves several callers carries it out, which reaches a workspace only where the host has its files
	Hosted   bool     // it changes the host's own state, tasks or the plan, and no file of the project
	Once     bool     // it is idempotent per call id: run again after a crash, it finds its earlier effect
	// Beside means that it is independent of all other calls of its answer: it begins before them, and they wait for its Begun, not for
	// its end. A policy that runs calls one after the other ignores it.
	Beside bool
	Alike  string // calls with the same value may run in parallel although they are not read-only; each starts after the previous one has begun
}

// Result is the result of a tool for the model and for people.
type Result struct {
	Output   string         // for the model
	Title    string         // for a person, one line: "src/a.go", "go test ./…"
	Metadata map[string]any // for clients, JSON values only
	Files    []string       // changed project-relative paths
	Consumes []string       // ids of tasks whose results are in Output and are not delivered again
	// Attachments are files shown to the model with the output. A tool returns only types that Call.Media accepts.
	Attachments []centurion.File
	EndTurn     bool // the session's turn ends with this call, without another request
}

// Call is the context of one tool call.
type Call struct {
	ID      string // the model's call id
	Session string
	Message string // the assistant message with the call
	Mission string
	Task    string // empty for the Commander
	Agent   string

	Workspace *workspace.Workspace
	Seen      *Seen            // the files this session has read, for version checks
	Writers   *Writers         // one for the whole host: prevents two sessions from replacing a file at the same time
	Runner    centurion.Runner // nil for roles without shell
	Keys      *redact.Keys     // that are shown as placeholders; nil shows all texts as they are
	Gate      Gate             // asks for permission
	Decided   func(Decision)   // records what the gate decided about this call; may be nil
	// Changed records that plugins have changed something of this call: its arguments, its result or its environment; may be nil.
	Changed   func(what string, by []string)
	Connect   centurion.Dial    // set by the gate: makes the connections of a script without network; nil makes none
	Network   bool              // set by the gate: a person has allowed this very script, so that it may use the network
	Web       *web.Client       // nil where there is no network
	Delegator Delegator         // nil for roles that cannot delegate
	Planner   Planner           // nil for roles that cannot change the plan
	Progress  func(line string) // shows the progress of a long call to a person; never nil
	Output    io.Writer         // gets what a command prints while it runs; may be nil
	Begun     func()            // reports that the part that must run in the order of the calls is done; may be nil

	Notebook   Notebook        // nil for roles that do not write shared notes
	Background Background      // nil for roles that start no background commands
	Skills     Skills          // nil where there are none
	Hooks      centurion.Hooks // of plugins; nil has none
	Asker      Asker           // nil where no person can be asked
	SubAgents  SubAgents       // nil for roles that start no sub-agents

	Media centurion.Media // the file types that the model accepts

	Await time.Duration // how long the Delegator waits for a synchronous task; 0 means 5 minutes
}

// Touched calls Changed, if somebody has changed something.
func (c *Call) Touched(what string, by []string) {
	if len(by) > 0 && c.Changed != nil {
		c.Changed(what, by)
	}
}

// Decision is what a [Gate] decided about one access of a call, for the journal.
type Decision struct {
	Permission string `json:"permission"`
	Action     string `json:"action"`           // of the rules: allow, deny or ask
	Rule       string `json:"rule,omitempty"`   // that decided; empty if none did
	Level      string `json:"level,omitempty"`  // of the rule: a file, or the built-in defaults
	Answer     string `json:"answer,omitempty"` // to an ask: once, always, reject, or a text
	By         string `json:"by,omitempty"`     // who gave it: person, program, always, policy, timeout or plugin NAME
}

// Gate decides about permissions. Ask returns nil if the call may proceed, otherwise an error of centurion.KindPermission with the rule
// or person that refused it, and why. It blocks while a person is asked, until ctx ends.
type Gate interface {
	Ask(ctx context.Context, c *Call, a Access) error
}

// Access is an action that needs permission.
type Access struct {
	Permission string         // read, edit, bash, external_directory, webfetch …: the keys of the permission configuration
	Patterns   []string       // matched against the rules: a project-relative path, a shell command
	Always     []string       // the patterns that "always" would allow from then on
	Script     string         // bash: the whole script, which the gate analyses
	Workdir    string         // bash: where Script runs, relative to the project; "" is the project's directory
	Metadata   map[string]any // shown to the person who is asked
}
