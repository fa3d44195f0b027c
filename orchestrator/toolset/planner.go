package toolset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/tools"
	"centurion/workspace/todo"
)

// planner implements tools.Planner for one conversation.
type planner struct {
	*Set
	c *agent.Conversation
}

// Planner returns how a conversation changes the plan.
func (s *Set) Planner(c *agent.Conversation) tools.Planner { return planner{s, c} }

// UpdateTodo changes the plan. An item with a verify command is checked before it is marked as done.
func (p planner) UpdateTodo(ctx context.Context, _ *tools.Call, u tools.TodoUpdate) (list string, remarks bool, err error) {
	var notes []string
	before, _ := p.Plan.Read() // a plan that cannot be read has no remarks
	if u.Level != 0 {
		note, err := p.Plan.SetLevel(ctx, u.Level, p.c.Agent.Name)
		if err != nil {
			return "", false, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	var doc *todo.Doc
	if strings.TrimSpace(u.Content) != "" {
		var told []string
		if doc, told, err = p.replace(ctx, u.Content); err != nil {
			return "", false, err
		}
		notes = append(notes, told...)
	}
	if len(u.Items) > 0 {
		proven, err := p.proveTicks(ctx, u.Items)
		if err != nil {
			return "", false, err
		}
		notes = append(notes, proven...)
	}
	u.Items = withoutOwnTick(p.c, u.Items)
	if len(u.Items) > 0 || len(u.Add) > 0 || doc != nil && plan.LacksIDs(doc) {
		if doc, err = p.Plan.File.Edit(ctx, func(d *todo.Doc) error { return applyTodo(d, u) }); err != nil {
			return "", false, allOrNone(err, len(u.Items)+len(u.Add))
		}
	}
	if doc == nil {
		plan, err := p.Plan.Read()
		if err != nil || plan.Doc == nil {
			return strings.Join(append(notes, "Level noted. There is no todo list yet."), "\n"), len(notes) > 0, err
		}
		doc = plan.Doc
	}
	if err := p.Plan.TellTodo(ctx); err != nil {
		return "", false, err
	}
	p.Mission.Notify()
	after := p.Plan.Remarks(before, plan.View{Doc: doc})
	return strings.Join(slices.Concat(notes, []string{plan.Outline(doc)}, after), "\n"), len(notes)+len(after)+len(doc.Problems()) > 0, nil
}

// replace writes a whole new plan. The notes list items that stay different, and results of the new checks.
func (p planner) replace(ctx context.Context, content string) (doc *todo.Doc, notes []string, err error) {
	var changed []centurion.Exchange
	keeps := func(prev, next *todo.Doc) (err error) {
		if err = keepsRunning(p.Mission.Runs(), next); err == nil {
			err = next.NoneLost(prev.Dangling())
		}
		if err == nil {
			err = p.Plan.RefuseRaces(prev, next)
		}
		if err == nil {
			changed, err = p.Queue.KeepsChecks(ctx, agent.AuthorOf(p.c), prev, next)
		}
		return err
	}
	// Workers and reviewers have read the plan a while ago, and do not decide on its items.
	stale := p.c.Task != nil && p.c.Agent.Name != agents.Planner
	doc, kept, err := p.Plan.File.Replace(ctx, content, stale, keeps)
	if err != nil {
		return nil, nil, err
	}
	run, err := p.Queue.ChecksExchanged(ctx, agent.AuthorOf(p.c), changed)
	return doc, slices.Concat(kept, keptNotes(content, doc), run), err
}

// keptNotes lists the items that keep a change which another agent or a person has made since the model read the plan.
func keptNotes(sent string, now *todo.Doc) (out []string) {
	was, err := todo.Parse([]byte(sent))
	if err != nil {
		return nil
	}
	for _, it := range was.Items() {
		if n, ok := now.Item(it.ID); ok && plan.Differs(it, n) {
			out = append(out, fmt.Sprintf("%s was changed while you worked, and stays so: %s, verify %s. Leave it, or say in your answer what is wrong with it.", it.ID, n.Title, brief.Lines(n.Verify)))
		}
	}
	return out
}

// allOrNone adds to the error of one change that the others were not made, either.
func allOrNone(err error, changes int) error {
	e, ok := errors.AsType[*centurion.Error](err)
	if !ok || changes < 2 {
		return err
	}
	told := *e
	told.Msg += fmt.Sprintf(" (so none of the %d changes of items was made)", changes)
	return &told
}

// withoutOwnTick removes a task's tick of its own item: the host sets it when the task ends.
func withoutOwnTick(c *agent.Conversation, updates []tools.ItemUpdate) []tools.ItemUpdate {
	out := slices.Clone(updates)
	for i, u := range out {
		if mark, err := markOf(u.Status); c.Task != nil && u.ID == c.Task.Item && err == nil && mark == todo.Done {
			out[i].Status = ""
		}
	}
	return out
}

// keepsRunning refuses a new plan without an item that has a living task.
func keepsRunning(runs []*state.Run, next *todo.Doc) error {
	for _, r := range runs {
		if r.Item == "" {
			continue
		}
		if _, ok := next.Item(r.Item); !ok {
			return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("the new list has no item %s, which is being worked on", r.Item),
				Hint: "keep the item, or cancel the task first"}
		}
	}
	if len(next.Items()) == 0 {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "the new list has no items", Hint: "write items like \"- [ ] T1 Do this @worker\""}
	}
	return nil
}

// applyTodo adds items and changes single ones, also the new ones. On an error, the document is not to be stored.
func applyTodo(d *todo.Doc, u tools.TodoUpdate) error {
	d.AssignIDs()
	was := d.Dangling()
	for _, n := range u.Add {
		if _, err := d.Add(n.Section, todo.Item{ID: n.ID, Title: n.Title, Agent: strings.TrimPrefix(n.Agent, "@"), Mark: todo.Open,
			After: n.After, Files: n.Files, Verify: n.Verify}); err != nil {
			return err
		}
	}
	for _, it := range u.Items {
		if it.Status != "" {
			mark, err := markOf(it.Status)
			if err != nil {
				return err
			}
			if err := d.SetMark(it.ID, mark); err != nil {
				return err
			}
		}
		if it.Title != "" {
			if err := d.SetTitle(it.ID, it.Title); err != nil {
				return err
			}
		}
		if it.Note != "" {
			if err := d.AddNote(it.ID, it.Note); err != nil {
				return err
			}
		}
		if it.After != nil && len(it.After) == 0 {
			if err := d.ClearAfter(it.ID); err != nil {
				return err
			}
		}
		if err := d.AddAfter(it.ID, it.After...); err != nil {
			return err
		}
	}
	return d.NoneLost(was)
}

// markOf reads a status as a model writes it.
func markOf(status string) (todo.Mark, error) {
	switch strings.ToLower(status) {
	case "open", "pending":
		return todo.Open, nil
	case "done", "completed":
		return todo.Done, nil
	case "cancelled", "canceled":
		return todo.Cancelled, nil
	case "blocked":
		return todo.Blocked, nil
	}
	return 0, &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not a status", status),
		Hint: "use open, done, cancelled or blocked; running is set by delegate_task"}
}

// proveTicks runs the verify commands of items that an agent marks as done. If one fails, the whole update is refused with its output.
func (p planner) proveTicks(ctx context.Context, updates []tools.ItemUpdate) ([]string, error) {
	v, err := p.Plan.Read()
	if err != nil || v.Doc == nil {
		return nil, err
	}
	var notes []string
	for _, u := range updates {
		mark, err := markOf(u.Status)
		if u.Status == "" || err != nil || mark != todo.Done {
			continue
		}
		it, ok := v.Doc.Item(u.ID)
		if !ok || v.Doc.Status(u.ID) == todo.Done {
			continue
		}
		if run := p.Plan.RunOf(u.ID); run != "" {
			if p.c.Task != nil && p.c.Task.ID == run {
				notes = append(notes, u.ID+": the host marks your own item when you end.")
				continue
			}
			return nil, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is being worked on; the host ticks it", u.ID),
				Hint: "end your turn; you will be told when it ends"}
		}
		for _, command := range it.Verify {
			task := ""
			if p.c.Task != nil {
				task = p.c.Task.ID
			}
			if err := p.ownMerged(ctx, p.c); err != nil {
				return nil, err
			}
			r, err := p.Queue.Check(ctx, merge.Check{Command: command, Item: it.ID, Task: task, Agent: p.c.Agent.Name})
			if err != nil {
				return nil, err
			}
			if !r.Passed {
				return nil, &centurion.Error{Kind: centurion.KindVerify, Msg: "item " + it.ID + " is not done: " + brief.Account(r)}
			}
			notes = append(notes, it.ID+": "+brief.Passed(r))
		}
	}
	return notes, nil
}
