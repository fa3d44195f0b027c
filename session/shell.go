package session

import (
	"context"
	"encoding/json"
	"time"

	"centurion"
	"centurion/store"
	"centurion/text"
	"centurion/tools"
)

// shellSaid stands for the person in front of a command's output.
const shellSaid = "The person has run this command:"

// shellTime is how long a person's command may run: as long as any. The person can end it.
const shellTime = time.Hour

// Shell runs a command of a person in a conversation that nobody works on, and records it there as a call that the model has not made and
// will know. An end of ctx ends the command; what it has printed until then stays. The error says that nothing could be recorded.
func Shell(ctx context.Context, cfg Config, rec centurion.Session, script string) (centurion.Message, error) {
	u, a := shellMessages(cfg, &rec, script)
	s := Session{cfg: cfg, rec: rec}
	tell := func(tx *store.Tx, kind centurion.EventType, data map[string]any) error {
		_, err := tx.Append(fact(&rec, kind, data))
		return err
	}
	err := s.update(ctx, func(tx *store.Tx) error {
		call := &a.Parts[0]
		call.State.Input = json.RawMessage(tx.Redacted(string(call.State.Input)))
		for _, m := range []*centurion.Message{&u, &a} {
			if err := putMessage(tx, m); err != nil {
				return err
			}
			if err := tell(tx, centurion.EventMessageCreated, map[string]any{"message": m.ID, "role": m.Role, "origin": m.Origin, "agent": m.Agent, "shell": true}); err != nil {
				return err
			}
		}
		return s.tellCall(tx, *call)
	})
	if err != nil {
		return a, err
	}
	call := &a.Parts[0]
	out := printing{tell: func(piece string) { s.publish(call, "output", piece) }}
	res, err := cfg.Call.Runner.Run(ctx, centurion.Command{Script: script, Dir: cfg.Root, Network: true, Timeout: shellTime, Output: &out})
	out.end()
	now := time.Now().UnixMilli()
	a.Time.Completed, a.Finish = now, centurion.FinishStop
	call.State.Status, call.State.Time.End = centurion.ToolCompleted, now
	call.State.Output = tools.CommandText(res, shellTime)
	call.State.Metadata = map[string]any{"exit": res.ExitCode, "output": text.Printed(res.Output)}
	switch {
	case ctx.Err() != nil:
		call.State.Output = text.Printed(res.Output) + "\n(the person has ended it)"
	case err != nil:
		fail(call, modelError(err))
	}
	err = s.update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := putMessage(tx, &a); err != nil {
			return err
		}
		if err := s.tellResult(tx, *call); err != nil {
			return err
		}
		if err := tell(tx, centurion.EventMessageUpdated, map[string]any{"message": a.ID, "agent": a.Agent, "finish": a.Finish}); err != nil {
			return err
		}
		return tell(tx, centurion.EventSessionIdle, map[string]any{"finish": a.Finish, "shell": true})
	})
	return a, err
}

// shellMessages makes the two messages of a command, in OpenCode's format: what the person did, and the call, which runs.
func shellMessages(cfg Config, rec *centurion.Session, script string) (u, a centurion.Message) {
	now := time.Now().UnixMilli()
	u = centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: rec.ID, Role: centurion.RoleUser, Origin: centurion.OriginHost,
		Time: centurion.MessageTime{Created: now}, Agent: rec.Agent, Model: modelOf(rec)}
	said := newPart(&u, centurion.PartText)
	said.Text, said.Synthetic = shellSaid, true
	u.Parts = []centurion.Part{said}
	a = centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: rec.ID, Role: centurion.RoleAssistant, ParentID: u.ID,
		Time: centurion.MessageTime{Created: now}, Agent: rec.Agent, Model: u.Model, Path: centurion.MessagePath{Cwd: cfg.Root, Root: cfg.Root}}
	call := newPart(&a, centurion.PartTool)
	call.Tool, call.CallID = "bash", "call_"+call.ID
	in, _ := json.Marshal(map[string]string{"command": script}) // it always marshals
	call.State = &centurion.ToolState{Status: centurion.ToolRunning, Input: in, Time: centurion.PartTime{Start: now}}
	a.Parts = []centurion.Part{call}
	return u, a
}
