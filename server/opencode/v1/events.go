package v1

import "centurion"

// These are the properties of OpenCode's events.

type sessionEvent struct {
	Session string      `json:"sessionID"`
	Info    sessionInfo `json:"info"`
}

type statusEvent struct {
	Session string `json:"sessionID"`
	Status  any    `json:"status"`
}

type idleEvent struct {
	Session string `json:"sessionID"`
}

type messageEvent struct {
	Session string            `json:"sessionID"`
	Info    centurion.Message `json:"info"`
}

type partEvent struct {
	Session string         `json:"sessionID"`
	Part    centurion.Part `json:"part"`
	Time    int64          `json:"time"`
}

type deltaEvent struct {
	Session string `json:"sessionID"`
	Message string `json:"messageID"`
	Part    string `json:"partID"`
	Field   string `json:"field"`
	Delta   string `json:"delta"`
}

// named is what facts of messages and calls name.
type named struct {
	Message string `json:"message"`
	Role    string `json:"role"`
	Part    string `json:"part"`
	Kind    string `json:"kind"`
	Error   string `json:"error"`
	Shell   bool   `json:"shell"` // about a person's command
}
