package opener

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/acp"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/text"
	"centurion/tools"
)

// outsider takes the turns of a conversation whose agent is another program. It starts the program anew for each turn, so that nothing of
// it writes while the work is checked, merged or moved; the agent loads its own conversation again.
type outsider struct {
	*Opener
	c   *agent.Conversation
	how *acp.Program
}

var (
	_ agent.Turner  = (*session.Session)(nil)
	_ agent.Turner  = outsider{}
	_ session.Agent = outsider{}
	_ acp.Handler   = (*hearing)(nil)
)

// Turner returns who takes the turns of a conversation: its session, or a program from outside.
func (o *Opener) Turner(c *agent.Conversation) agent.Turner {
	if c.Outside == nil {
		return c.Sess
	}
	return outsider{o, c, c.Outside}
}

// Turn implements [agent.Turner].
func (o outsider) Turn(ctx context.Context) (session.Outcome, error) {
	if err := o.c.Fenced(ctx, "a turn of "+o.how.Name); err != nil {
		return session.Outcome{}, err
	}
	return o.c.Sess.TurnOf(ctx, o)
}

// Answer implements [session.Agent]. The whole turn is to others like one command that writes in the session's directory.
func (o outsider) Answer(ctx context.Context, p session.Prompt, said *session.Saying) (end session.Ended, err error) {
	c := o.c
	call := c.Config().Call
	call.ID, call.Session, call.Message, call.Progress = "turn", c.ID(), said.Message(), func(string) {}
	f := fenced{Opener: o.Opener, c: c}
	over := c.Pulse.Queue()
	in, at, _, leave, err := f.enter(ctx, &call, false)
	over()
	if err != nil {
		return end, err
	}
	defer func() { leave() }()
	after := func(context.Context, tools.Result) error {
		return o.Claims.ClaimWritten(context.WithoutCancel(ctx), &c.Seat)
	}
	if c.Where == nil {
		if after, err = o.Checkouts.RecordTree(in, &c.Seat, at, tools.Effect{}); err != nil {
			return end, err
		}
	}
	_, began := c.Pulse.Start(o.how.Name + " to start it")
	proc, err := o.how.Start(in, at.Workspace.Place())
	began()
	if err != nil {
		return end, err
	}
	defer func() {
		proc.Kill()
		why := proc.Wait()
		err = ended(err, why)
		over := c.Pulse.Queue()
		if aerr := after(context.WithoutCancel(ctx), tools.Result{}); err == nil {
			err = aerr
		}
		over()
	}()
	if c.Where != nil { // its directories may have moved the files: see [centurion.Command.Dirs]
		leave()
		ws, again, err := c.Where.Write(in)
		if leave = again; err != nil {
			leave = func() {}
			return end, err
		}
		at.Workspace = ws
	}
	return o.speak(in, &hearing{Opener: o.Opener, c: c, said: said, at: at, before: p.Known.Cost, calls: map[string]*foreign{}}, proc, p)
}

// speak leads the conversation with the started program.
func (o outsider) speak(ctx context.Context, h *hearing, proc acp.Process, p session.Prompt) (end session.Ended, err error) {
	c := o.c
	defer h.over()
	if err := h.within(0); err != nil {
		return end, err
	}
	client, err := acp.Open(ctx, proc, acp.Options{Name: o.how.Name, Command: o.how.Command, Version: o.how.Version, Dir: h.at.Workspace.Dir(), Stable: o.how.Stable, Handler: h})
	if err != nil {
		return end, err
	}
	defer client.Close()
	known := p.Known
	id, err := client.Join(ctx, known.ID)
	if err != nil {
		return end, err
	}
	prompt := p.More
	if id != known.ID {
		prompt, known, h.before = p.Whole, centurion.Outside{ID: id}, 0
		if err := h.said.Joined(known); err != nil {
			return end, err
		}
	}
	shown, over := c.Live.Wait(agent.WaitModel), c.Pulse.Prompted()
	got, err := client.Prompt(ctx, prompt)
	over()
	shown()
	end.Usage = centurion.Usage{Tokens: got.Tokens, Unpriced: got.Cost == nil}
	if got.Cost != nil {
		if *got.Cost < known.Cost { // it counts from its start
			known.Cost = 0
		}
		end.Usage = end.Usage.Plus(centurion.Usage{USD: *got.Cost}).Plus(centurion.Usage{USD: -known.Cost})
		known.Cost = *got.Cost
		if jerr := h.said.Joined(known); err == nil {
			err = jerr
		}
	}
	if answer := h.said.Answer(); err == nil && acp.IsLimit(answer) {
		wait, _ := acp.Limit(answer, time.Now())
		err = &centurion.Error{Op: "agent " + o.how.Name, Kind: centurion.KindRateLimit, Msg: centurion.Clip(answer, 300), RetryAfter: wait}
	}
	if err != nil {
		return end, err
	}
	switch got.Reason {
	case "end_turn":
		end.Finish = centurion.FinishStop
	case "max_tokens", "max_turn_requests":
		end.Finish = centurion.FinishLength
	case "refusal":
		end.Finish = centurion.FinishFilter
	default:
		return end, &centurion.Error{Op: "agent " + o.how.Name, Kind: centurion.KindStreamCut, Msg: "it ended its turn by itself: " + got.Reason}
	}
	return end, nil
}

// ended adds to the error of a program that has broken off why it has ended.
func ended(err, why error) error {
	if centurion.KindOf(err) != centurion.KindStreamCut || why == nil || centurion.KindOf(why) == centurion.KindCancelled {
		return err
	}
	e := &centurion.Error{Kind: centurion.KindStreamCut, Err: fmt.Errorf("%w (%v)", err, why)}
	if strings.Contains(why.Error(), "exit code 127") { // as shells say it
		e.Kind, e.Hint = centurion.KindConfig, "install the program, or correct its command in the agent's definition"
	}
	return e
}

// hearing is what an agent tells and asks in one turn.
type hearing struct {
	*Opener
	c      *agent.Conversation
	said   *session.Saying
	at     *tools.Call
	before float64 // what its conversation had cost before the turn

	mu    sync.Mutex // protects the fields below
	calls map[string]*foreign
}

// foreign is a call of the agent.
type foreign struct {
	acp.Call
	more    func() // tells the pulse that it goes on
	ended   func() // and that it has ended; nil after that
	decided []tools.Decision
}

// over ends what has not ended.
func (h *hearing) over() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.calls {
		f.end()
	}
}

func (f *foreign) end() {
	if f.ended != nil {
		f.ended()
		f.ended = nil
	}
}

// merged returns what is known of a call after more of it. mu is held.
func (h *hearing) merged(more acp.Call) *foreign {
	f := h.calls[more.ID]
	if f == nil {
		f = &foreign{Call: acp.Call{ID: more.ID}}
		h.calls[more.ID] = f
		f.more, f.ended = h.c.Pulse.Start(cmp.Or(more.Title, more.Kind, "a tool"))
	}
	f.more()
	f.Title, f.Kind, f.Status, f.Output = cmp.Or(more.Title, f.Title), cmp.Or(more.Kind, f.Kind), cmp.Or(more.Status, f.Status), cmp.Or(more.Output, f.Output)
	if len(more.Input) > 0 {
		f.Input = more.Input
	}
	if len(more.Diffs) > 0 {
		f.Diffs = more.Diffs
	}
	for _, p := range more.Paths {
		if !slices.Contains(f.Paths, p) {
			f.Paths = append(f.Paths, p)
		}
	}
	return f
}

// Update implements [acp.Handler].
func (h *hearing) Update(u acp.Update) error {
	h.c.Pulse.Beat()
	switch {
	case u.Text != "":
		return h.said.Text(u.Text)
	case u.Thought != "":
		return h.said.Thought(u.Thought)
	case u.Plan != nil:
		in, err := json.Marshal(map[string]any{"todos": u.Plan})
		if err != nil {
			return err
		}
		return h.said.Call(session.Call{ID: "plan-" + h.said.Message(), Tool: "todowrite", Title: centurion.Count(len(u.Plan), "step"), Status: centurion.ToolCompleted, Input: in, Note: true})
	case u.Cost != nil:
		return h.within(*u.Cost)
	case u.Call == nil || u.Call.ID == "":
		return nil
	}
	h.mu.Lock()
	f := h.merged(*u.Call)
	if f.Ended() {
		f.end()
	}
	call := h.stored(f)
	h.mu.Unlock()
	return h.said.Call(call)
}

// within ends the turn of an agent whose conversation has cost so much that a limit is reached. Time and calls are looked at elsewhere.
func (h *hearing) within(cost float64) error {
	rec, more := h.Mission.Spent.Load(), max(0, cost-h.before)
	switch o := rec.Options; {
	case o.MaxCost > 0 && rec.Usage.USD+more >= o.MaxCost:
		return h.Mission.AtLimit(budget.USD)
	case o.MaxTokens > 0 && rec.Usage.Tokens.Total() >= o.MaxTokens:
		return h.Mission.AtLimit(budget.Tokens)
	case o.MaxRounds > 0 && rec.Rounds >= o.MaxRounds:
		return h.Mission.AtLimit(budget.Rounds)
	case h.c.Task == nil:
		return nil
	}
	t := h.c.Task.Now.Load()
	if most := t.Budget.Cost; most > 0 && t.Usage.USD+more >= most {
		err := state.OwnBudgetError("%s", text.USD(most))
		h.c.Task.Cancel(err)
		return err
	}
	return nil
}

// stored is a call as it is stored. mu is held.
func (h *hearing) stored(f *foreign) session.Call {
	out := session.Call{ID: f.ID, Tool: toolOf(f.Kind), Title: centurion.Clip(strings.Join(strings.Fields(f.Title), " "), 200), Status: centurion.ToolRunning, Input: f.Input, Metadata: map[string]any{}}
	if len(f.decided) > 0 {
		out.Metadata["permission"] = slices.Clone(f.decided)
	}
	names := h.names(f.Paths)
	var diffs strings.Builder
	for _, d := range f.Diffs {
		name := strings.Join(h.names([]string{d.Path}), "")
		diffs.WriteString(tools.Diff(cmp.Or(name, d.Path), d.Old, d.New))
	}
	if diffs.Len() > 0 {
		out.Metadata["diff"] = diffs.String()
	}
	if len(names) == 1 {
		out.Metadata["filepath"] = names[0]
	}
	if !f.Ended() {
		return out
	}
	out.Status, out.Output = centurion.ToolCompleted, f.Output
	if f.Status == "failed" {
		out.Status = centurion.ToolError
	} else if changes(f.Kind) || len(f.Diffs) > 0 {
		out.Files = names
	}
	return out
}

// names returns paths as the project knows them, without those outside.
func (h *hearing) names(paths []string) (names []string) {
	for _, p := range paths {
		if rel, err := h.at.Workspace.Rel(p); err == nil && p != "" {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names
}

func changes(kind string) bool { return slices.Contains([]string{"edit", "delete", "move"}, kind) }

// toolOf is our own tool of the same effect.
func toolOf(kind string) string {
	switch {
	case changes(kind):
		return "edit"
	case kind == "search":
		return "read"
	case kind == "execute":
		return "bash"
	case kind == "fetch":
		return "webfetch"
	}
	return cmp.Or(kind, "other")
}

// Permit implements [acp.Handler]: the rules decide as about our own tools, and where they ask, a person does.
func (h *hearing) Permit(ctx context.Context, asked acp.Call) error {
	h.mu.Lock()
	f := h.merged(asked)
	var in struct {
		Command any    `json:"command"`
		URL     string `json:"url"`
	}
	_ = json.Unmarshal(f.Input, &in) // each agent has its own form
	want := tools.Foreign{Tool: toolOf(f.Kind), Title: f.Title, Paths: slices.Clone(f.Paths), URL: in.URL}
	h.mu.Unlock()
	switch command := in.Command.(type) {
	case string:
		want.Script = command
	case []any: // words
		for _, word := range command {
			want.Script = strings.TrimSpace(want.Script + " " + fmt.Sprint(word))
		}
	}
	if want.Tool == "think" {
		return nil
	}
	if err := h.c.Fenced(ctx, "a call of "+want.Tool); err != nil {
		return err
	}
	if want.Tool == "edit" {
		if err := h.claim(ctx, h.names(want.Paths)); err != nil {
			return err
		}
	}
	call := h.call(asked.ID)
	return tools.PermitForeign(ctx, &call, want)
}

// claim records files for the session before it writes them, and refuses those of others where all write in one directory.
func (h *hearing) claim(ctx context.Context, files []string) error {
	if err := h.c.Where.OutsideSubmodules(files); err != nil {
		return err
	}
	return h.Claims.Claim(ctx, &h.c.Seat, files)
}

// call is the context of one request of the agent.
func (h *hearing) call(id string) tools.Call {
	call := *h.at
	call.ID, call.Message, call.Seen = cmp.Or(id, "turn"), h.said.Message(), &tools.Seen{}
	call.Decided = func(d tools.Decision) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f := h.calls[id]; f != nil {
			f.decided = append(f.decided, d)
		}
	}
	return call
}

// Read implements [acp.Handler].
func (h *hearing) Read(ctx context.Context, path string) (string, error) {
	call := h.call("")
	return tools.ReadForeign(ctx, &call, path)
}

// Write implements [acp.Handler].
func (h *hearing) Write(ctx context.Context, path, content string) error {
	if err := h.c.Fenced(ctx, "a call of write"); err != nil {
		return err
	}
	if err := h.claim(ctx, h.names([]string{path})); err != nil {
		return err
	}
	call := h.call("")
	return tools.WriteForeign(ctx, &call, path, content)
}
