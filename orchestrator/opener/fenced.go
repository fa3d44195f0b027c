package opener

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"centurion/orchestrator/agent"
	"centurion/orchestrator/isolation"
	"centurion/tools"
)

// fenced runs a session's tools in the session's directory. If all sessions write in the same directory, it keeps a tool off the files of
// others' items, and lets a writing tool wait until no check runs, and a check until no tool writes. A stale attempt may only read.
type fenced struct {
	tools.Tool
	*Opener
	c        *agent.Conversation
	narrowed json.RawMessage // the schema for the model; nil for the tool's own
}

// Narrowed implements [tools.Narrower].
func (f fenced) Narrowed() json.RawMessage { return f.narrowed }

func (f fenced) Run(ctx context.Context, call *tools.Call, input json.RawMessage) (tools.Result, error) {
	c := f.c
	ctx, done := c.Live.Call(ctx, f.Name(), call.ID, call.Message)
	defer done()
	e := f.Effect(input)
	if e.ReadOnly {
		return f.reads(ctx, call, input, e.Hosted)
	}
	if err := c.Fenced(ctx, "a call of "+f.Name()); err != nil {
		return tools.Result{}, err
	}
	if e.Hosted {
		return c.Pulse.Run(ctx, f.Tool, call, input, true)
	}
	if err := f.planned(ctx); err != nil {
		return tools.Result{}, err
	}
	over := c.Pulse.Queue() // a check ends by itself, and a checkout is quickly made
	in, at, moved, left, err := f.enter(ctx, call, e.Outside)
	over()
	if err != nil {
		return tools.Result{}, err
	}
	left = sync.OnceFunc(left)
	defer left()
	if err := c.Fenced(ctx, "a call of "+f.Name()); err != nil { // a newer attempt may have started while this one waited
		return tools.Result{}, err
	}
	if err := c.Where.OutsideSubmodules(f.writes(at, e, input)); err != nil {
		return tools.Result{}, err
	}
	if c.Where == nil {
		if err := f.Claims.Claim(ctx, &c.Seat, f.writes(at, e, input)); err != nil {
			return tools.Result{}, err
		}
	}
	res, err := f.recorded(in, at, e, input)
	if left(); err != nil || c.Where == nil {
		return res, err
	}
	if moved {
		return isolation.Moved(res, at.Workspace.Dir()), nil
	}
	return c.Where.Crossed(ctx, res)
}

// planned lets a call of the mission's own agent wait until a person has accepted the plan, if they want to see it first.
func (f fenced) planned(ctx context.Context) error {
	if f.c.Task != nil {
		return nil
	}
	rec, err := f.Mission.Store.Mission(ctx, f.Mission.ID)
	if err != nil || !rec.Options.PlanFirst || rec.Accepted {
		return err
	}
	return f.c.Desk().Rest(ctx, "the plan waits to be accepted", func() error {
		for {
			changed := f.Mission.Change()
			rec, err := f.Mission.Store.Mission(ctx, f.Mission.ID)
			if err != nil || rec.Accepted {
				return err
			}
			p, err := f.Plan.Read()
			if err = cmp.Or(err, p.Wanted(rec)); err == nil {
				err = f.Opener.Tools.Approvals.AskPlan(ctx, rec, p)
			}
			if err == nil {
				err = f.Mission.Await(ctx, changed, 0)
			}
			if err != nil {
				return err
			}
		}
	})
}

// recorded runs a call that writes. In the shared directory, the files are recorded before the call; in a checkout, git knows the written
// files after it.
func (f fenced) recorded(ctx context.Context, call *tools.Call, e tools.Effect, input json.RawMessage) (tools.Result, error) {
	c, after := f.c, func(context.Context, tools.Result) error { return nil }
	if c.Where == nil {
		over := c.Pulse.Queue()
		var err error
		after, err = f.Checkouts.RecordTree(ctx, &c.Seat, call, e)
		over()
		if err != nil {
			return tools.Result{}, err
		}
	}
	res, err := c.Pulse.Run(ctx, f.Tool, call, input, false)
	if aerr := after(context.WithoutCancel(ctx), res); err == nil {
		err = aerr
	}
	if c.Where == nil {
		return res, err
	}
	ctx = context.WithoutCancel(ctx)
	if files := f.writes(call, e, input); files != nil && err == nil {
		if res, err = isolation.WithIgnored(ctx, c.Where, res); err == nil {
			err = cmp.Or(f.Claims.Claim(ctx, &c.Seat, files), c.Where.Keep(ctx))
		}
	} else if files == nil {
		over := c.Pulse.Queue()
		cerr := f.Claims.ClaimWritten(ctx, &c.Seat)
		over()
		if err == nil {
			err = cerr
		}
	}
	return res, err
}

// reads runs a call that changes nothing.
func (f fenced) reads(ctx context.Context, call *tools.Call, input json.RawMessage, hosted bool) (tools.Result, error) {
	if f.c.Where == nil || !looksAtFiles(f.Name()) {
		return f.c.Pulse.Run(ctx, f.Tool, call, input, hosted)
	}
	over := f.c.Pulse.Queue() // while the snapshot is taken, or the view is moved
	ws, leave, err := f.c.Where.Read(ctx)
	over()
	if err != nil {
		return tools.Result{}, err
	}
	defer leave()
	at := *call
	at.Workspace = ws
	return f.c.Pulse.Run(ctx, f.Tool, &at, input, hosted)
}

// looksAtFiles reports whether a tool that only reads may read the project's files.
func looksAtFiles(tool string) bool {
	switch tool {
	case "read", "ls", "glob", "grep", "bash":
		return true
	}
	return false
}

// enter returns a writing call and its context as they are made in the session's directory; moved says that this is another one now, since
// the call is made from outside. The caller calls done after the call.
func (f fenced) enter(ctx context.Context, call *tools.Call, outside bool) (in context.Context, at *tools.Call, moved bool, done func(), err error) {
	if f.c.Where == nil {
		in, done, err = f.Sessions.Write(ctx)
		return in, call, false, done, err
	}
	own := *call
	if outside {
		own.Workspace, moved, done, err = f.c.Where.WriteOutside(ctx)
	} else {
		own.Workspace, done, err = f.c.Where.Write(ctx)
	}
	return ctx, &own, moved, done, err
}

// writes lists the project's files that a call is going to replace; none for a call that may write any file.
func (f fenced) writes(call *tools.Call, e tools.Effect, input json.RawMessage) []string {
	if e.Writes != nil || f.Name() != "write" && f.Name() != "edit" {
		return e.Writes
	}
	var in struct {
		File string `json:"filePath"`
	}
	if json.Unmarshal(input, &in) != nil {
		return nil
	}
	rel, err := call.Workspace.Rel(in.File)
	if err != nil {
		return nil // it is outside
	}
	return []string{rel}
}
