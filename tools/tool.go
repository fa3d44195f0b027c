// Package tools is what a model may do: one file x.go with one tool and one x.md with its description for the model.
//
// A tool gets everything it may touch in its [Call]: the workspace, a way to run child processes, a way to ask for
// permission, and, if its role holds them, the ways up to the orchestrator. There is no way back into the session that
// runs it, so that a tool cannot wait for its own caller.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/tools/web"
	"centurion/workspace"
)

// Tool is one thing a model may do. Implementations hold no state: one value serves every session at the same time.
type Tool interface {
	// Name is what the model calls it.
	Name() string
	// Description is what the model reads: when to use it, what comes back, one example.
	Description() string
	// Schema describes the input, an object. It is resolved once; inputs are checked against it before Run.
	Schema() *jsonschema.Schema
	// Effect says what running it with input would touch, so that calls that cannot disturb each other may overlap.
	Effect(input json.RawMessage) Effect
	// Run does it. An error is told to the model in its own words, with its hint; it is never a reason to end the session.
	Run(ctx context.Context, c *Call, input json.RawMessage) (Result, error)
}

// ErrLater is returned, alone or joined with the cause, by a call of a tool whose effect is Once or ReadOnly and whose context has ended
// because the program stops: it is not over, and is run again when its session goes on, and so are the calls of the same
// answer that had not begun.
var ErrLater = &centurion.Error{Kind: centurion.KindInterrupted, Msg: "it continues when the session does"}

// Effect is what a tool call touches.
type Effect struct {
	ReadOnly bool     // nothing is changed; after a crash the call may simply run again
	Writes   []string // project-relative paths that are written; nil with ReadOnly false means anything could be
	Hosted   bool     // it changes what the host itself keeps, tasks or the plan, and no file of the project
	Once     bool     // it is done once for each call id: run again after a crash, it finds what it did before
	// Beside says that it disturbs no other call of its answer, whatever that one does, and none disturbs it: it begins before
	// all others, which wait for its Begun and not for its end. Only a policy that runs one call after the other knows none such.
	Beside bool
	Alike  string // calls with the same word here may overlap although they are not read-only; each starts after the one before has begun
}

// Result is what a tool tells the model, and beside it what a person sees.
type Result struct {
	Output   string         // for the model
	Title    string         // for a person, one line: "src/a.go", "go test ./…"
	Metadata map[string]any // for clients, JSON values only
	Files    []string       // project-relative paths that were changed
	Consumes []string       // ids of tasks whose results stand in Output: they are not delivered a second time
	// Attachments are files that the model is shown with the output. A tool returns only what Call.Media takes.
	Attachments []centurion.File
	EndTurn     bool // the session's turn ends with this call; the model is not asked again
}

// Call is the surroundings of one running tool call.
type Call struct {
	ID      string // the model's call id
	Session string
	Message string // the assistant message that holds the call
	Mission string
	Task    string // empty for the Commander
	Agent   string

	Workspace *workspace.Workspace
	Seen      *Seen             // what this session has read, for the version check before it edits
	Writers   *Writers          // one for the whole host: keeps two sessions from replacing a file at the same moment
	Runner    centurion.Runner  // nil for roles without shell
	Mark      string            // what a program that a tool starts has as [centurion.HostVariable]; empty outside of a host
	Gate      Gate              // asks for permission
	Web       *web.Client       // nil where there is no network
	Delegator Delegator         // nil for roles that cannot delegate
	Planner   Planner           // nil for roles that cannot change the plan
	Progress  func(line string) // shows a person what a long call is doing; never nil
	Begun     func()            // says that what had to happen in the order of the calls has happened; may be nil

	Notebook   Notebook   // nil for roles that do not write what the sessions share
	Background Background // nil for roles that start no background commands
	Skills     Skills     // nil where there are none
	Asker      Asker      // nil where no person can be asked
	SubAgents  SubAgents  // nil for roles that start no sub-agents

	Media centurion.Media // which files the model takes

	Await time.Duration // how long the Delegator waits for a task that is not in the background; 0 means 5 minutes
}

// Gate answers permission asks. Ask returns nil if the call may go on, and an error of centurion.KindPermission that
// says which rule or person refused it, and why, if it may not. It blocks while a person is asked, until ctx ends.
type Gate interface {
	Ask(ctx context.Context, c *Call, a Access) error
}

// Access is what a tool call is about to do.
type Access struct {
	Permission string         // read, edit, bash, external_directory, webfetch …: the keys of the permission configuration
	Patterns   []string       // what the rules are matched against: a project-relative path, a shell command
	Always     []string       // the patterns that "always" would allow from then on
	Script     string         // bash: the whole script, which the gate analyses
	Metadata   map[string]any // shown to the person who is asked
}
