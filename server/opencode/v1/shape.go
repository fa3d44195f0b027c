package v1

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/store"
)

// sessionInfo is OpenCode's Session.
type sessionInfo struct {
	ID        string                  `json:"id"`
	Slug      string                  `json:"slug"`
	ProjectID string                  `json:"projectID"`
	Directory string                  `json:"directory"`
	ParentID  string                  `json:"parentID,omitempty"`
	Cost      float64                 `json:"cost"`
	Tokens    centurion.Tokens        `json:"tokens"`
	Title     string                  `json:"title"`
	Agent     string                  `json:"agent,omitempty"`
	Model     *centurion.SessionModel `json:"model,omitempty"`
	Version   string                  `json:"version"`
	Time      centurion.Span          `json:"time"`
	Revert    *revertState            `json:"revert,omitempty"`
}

func shownSession(s centurion.Session) sessionInfo {
	return sessionInfo{s.ID, s.Slug, s.ProjectID, s.Directory, cmp.Or(s.ParentID, s.Metadata.Below), s.Cost, s.Tokens, s.Title, s.Agent, s.Model, s.Version, s.Time, shownRevert(s.Metadata.Revert)}
}

// message is a message with its parts.
type message struct {
	Info  centurion.Message `json:"info"`
	Parts []centurion.Part  `json:"parts"`
}

// toolNames are the names under which OpenCode's clients know tools.
var toolNames = map[string]string{"delegate_task": "task", "call_agent": "task", "sub_agent": "task", "update_todo": "todowrite", "ls": "list"}

// shownPart is a part as OpenCode's clients know it. task is the one that the call has made, if it has.
func shownPart(p centurion.Part, task *server.Task) centurion.Part {
	name := toolNames[p.Tool]
	if p.Type != centurion.PartTool || p.State == nil || name == "" {
		return p
	}
	p.Tool = name
	if name != "task" {
		return p
	}
	state := *p.State
	state.Metadata = maps.Clone(state.Metadata)
	if state.Metadata == nil {
		state.Metadata = map[string]any{}
	}
	var in map[string]any
	if json.Unmarshal(state.Input, &in) == nil && in != nil {
		in["subagent_type"] = textOr(in["agent"], "sub_agent")
		in["description"] = textOr(in["description"], "Sub-agent")
		state.Input, _ = json.Marshal(in) // it was JSON before
		if state.Title == "" {
			state.Title = textOr(in["description"], "")
		}
	}
	if task != nil && task.Session != "" {
		state.Metadata["sessionId"], state.Metadata["parentSessionId"] = task.Session, p.SessionID
		if state.Status == centurion.ToolCompleted && !task.Status.Ended() { // a task in the background works on
			state.Status = centurion.ToolRunning
		}
	}
	p.State = &state
	return p
}

func textOr(v any, otherwise string) string {
	if s, _ := v.(string); s != "" {
		return s
	}
	return otherwise
}

// todoItem is OpenCode's Todo.
type todoItem struct {
	Content  string `json:"content"`
	Status   string `json:"status"`
	Priority string `json:"priority"`
}

// shownTodo are the items of a plan.
func shownTodo(d event.TodoData) []todoItem {
	out := []todoItem{}
	for _, it := range d.Items {
		status := map[string]string{"open": "pending", "running": "in_progress", "done": "completed", "cancelled": "cancelled", "blocked": "pending"}[string(it.Status)]
		content := it.ID + " " + it.Title
		if it.Status == "blocked" {
			content += " (blocked)"
		}
		out = append(out, todoItem{content, status, "medium"})
	}
	return out
}

// callOf names the call that an ask waits for.
type callOf struct {
	Message string `json:"messageID"`
	Call    string `json:"callID"`
}

// permissionAsk is OpenCode's PermissionRequest.
type permissionAsk struct {
	ID         string         `json:"id"`
	Session    string         `json:"sessionID"`
	Permission string         `json:"permission"`
	Patterns   []string       `json:"patterns"`
	Metadata   map[string]any `json:"metadata"`
	Always     []string       `json:"always"`
	Tool       *callOf        `json:"tool,omitempty"`
}

// questionAsk is OpenCode's QuestionRequest.
type questionAsk struct {
	ID        string     `json:"id"`
	Session   string     `json:"sessionID"`
	Questions []question `json:"questions"`
	Tool      *callOf    `json:"tool,omitempty"`
}

type question struct {
	Question string   `json:"question"`
	Header   string   `json:"header"`
	Options  []choice `json:"options"`
	Custom   bool     `json:"custom"`
}

type choice struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// answers are the ways to answer an ask that OpenCode shows as a question, by the words of the choice.
func answers(a store.Ask) (options []choice, words map[string]string) {
	words = map[string]string{}
	add := func(label, description, answer string) {
		options, words[label] = append(options, choice{label, description}), answer
	}
	switch a.Type {
	case store.AskPlan:
		add("Run it", "Agents carry out this plan", "run")
		add("Not now", "The plan stays in the project", "quit")
	case store.AskPermission:
		add("Allow once", "", "once")
		add("Always allow", "", "always")
		add("Reject", "", "reject")
	default:
		for _, o := range a.Options {
			add(o, "", o)
		}
	}
	return options, words
}

// asksByDialog reports whether OpenCode's own dialog shows what a person allows: the command of a call. Anything else is a question whose
// text is the whole of it, so that nobody approves what is hidden.
func asksByDialog(a store.Ask) bool {
	return a.Type == store.AskPermission && a.Message != "" && a.Call != ""
}

func shownPermission(a store.Ask) permissionAsk {
	p := permissionAsk{a.ID, a.Session, a.Permission, some(a.Patterns), a.Metadata, some(a.Always), &callOf{a.Message, a.Call}}
	if p.Metadata == nil {
		p.Metadata = map[string]any{}
	}
	return p
}

func shownQuestion(a store.Ask) questionAsk {
	q := questionAsk{ID: questionID(a.ID), Session: a.Session}
	if a.Message != "" && a.Call != "" {
		q.Tool = &callOf{a.Message, a.Call}
	}
	options, _ := answers(a)
	whole := a.Text
	for _, more := range append([]string{a.Title}, a.Patterns...) {
		if more != "" && more != whole {
			whole += "\n" + more
		}
	}
	q.Questions = []question{{whole, centurion.Clip(a.Type, 30), some(options), a.Type == store.AskQuestion}}
	return q
}

// some is a list that is [] in JSON when it is empty.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
