package main

import (
	"centurion"
	"centurion/server"
	"centurion/tui"
)

// given is, for scripts, what a session was given when it began.
type given struct {
	Agent        string            `json:"agent"`
	AgentFile    string            `json:"agent_file,omitempty"`
	System       string            `json:"system"`
	SystemSHA256 string            `json:"system_sha256"`
	Files        []centurion.Given `json:"files"` // the shared texts that stand in the first message
	First        string            `json:"first"` // the first message whole
}

func givenTo(r centurion.Session, messages []server.Message) *given {
	m := r.Metadata
	g := &given{Agent: r.Agent, AgentFile: m.AgentFile, System: m.System, SystemSHA256: tui.PromptHash(m.System), Files: m.Given}
	if g.Files == nil {
		g.Files = []centurion.Given{}
	}
	if len(messages) > 0 {
		for _, p := range messages[0].Parts {
			if p.Type == centurion.PartText {
				g.First += p.Text
			}
		}
	}
	return g
}
