package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/workspace/todo"
)

// Covers returns the items that a review judges: the item it was delegated for if that was done; otherwise the direct and indirect
// predecessors of its own item. nil means all: a review without an item, or one whose item has no predecessors.
func (p View) Covers(t centurion.Task) map[string]bool {
	if t.Reviews && !p.IsReview(t.Item) {
		return map[string]bool{t.Item: true}
	}
	return p.before(t.Item)
}

// IsReview reports whether an item is a review.
func (p View) IsReview(id string) bool {
	if p.Doc == nil {
		return false
	}
	it, ok := p.Doc.Item(id)
	return ok && strings.EqualFold(it.Agent, agents.Reviewer)
}

// HasReview refuses a reviewer for an item that is not done, unless it is a review: an item of @reviewer, or one without agent, checks
// and files that has predecessors and was no other agent's.
func (p View) HasReview(id string, tasks []centurion.Task) error {
	if id == "" || p.IsReview(id) {
		return nil
	}
	it, _ := p.Doc.Item(id) // [View.ItemOpen] has found it
	others := slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == id && t.Agent != agents.Reviewer })
	status := p.Doc.Status(id)
	if mayReview(it) && status == todo.Open && !others {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is %s: there is nothing to review yet, and the reviewer does not work on items", id, status),
		Hint: fmt.Sprintf("have it done first: delegate_task %s. To have what is merged so far reviewed, or a wrong check changed, call the reviewer without an item. "+
			"If %s is itself a review, name @reviewer on it (update_todo)", DelegateCall(cmp.Or(it.Agent, agents.Worker), id, "do "+id), id)}
}

// mayReview reports whether an item without an agent may be a review: it has nothing but predecessors.
func mayReview(it todo.Item) bool {
	return it.Agent == "" && len(it.Verify)+len(it.Files) == 0 && len(it.After) > 0
}

// before returns the direct and indirect predecessors of an item, or nil if it has none.
func (p View) before(id string) map[string]bool {
	if p.Doc == nil {
		return map[string]bool{id: true}
	}
	it, ok := p.Doc.Item(id)
	if !ok || len(it.After) == 0 {
		return nil
	}
	out := map[string]bool{}
	for todo := slices.Clone(it.After); len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		it, ok := p.Doc.Item(next)
		if out[next] || !ok {
			continue
		}
		out[next] = true
		todo = append(todo, it.After...)
		for _, sub := range p.Items() {
			if sub.Parent == next {
				todo = append(todo, sub.ID)
			}
		}
	}
	return out
}

// Nearest returns the direct and indirect predecessors of an item, nearest first.
func (p View) Nearest(it todo.Item) []string {
	out := slices.Clone(it.After)
	for i := 0; i < len(out); i++ {
		before, _ := p.Doc.Item(out[i])
		for _, id := range before.After {
			if !slices.Contains(out, id) && id != it.ID {
				out = append(out, id)
			}
		}
	}
	return out
}

// ReviewCall is the delegate_task input for a review of an item.
func ReviewCall(item string) string { return DelegateCall(agents.Reviewer, item, "review "+item) }

func DelegateCall(agent, item, what string) string {
	return fmt.Sprintf(`{"agent":%q,"item":%q,"description":%q,"prompt":"…"}`, agent, item, what)
}

// UnmetBut lists the unmet predecessors of an item, without one that is done but may not be marked yet.
func (p View) UnmetBut(item, done string) []string {
	return slices.DeleteFunc(p.Doc.Unmet(item), func(id string) bool { return id == done })
}

// Planned returns the plan's reviews of an item that are neither done nor cancelled.
func (p View) Planned(id string) (out []string) {
	for _, it := range p.Items() {
		if s := p.Doc.Status(it.ID); !p.IsReview(it.ID) || it.Group || s == todo.Done || s == todo.Cancelled {
			continue
		}
		if of := p.before(it.ID); of == nil || of[id] {
			out = append(out, it.ID)
		}
	}
	return out
}

// ReviewItem is the item to delegate for a review: the plan's own review item, if one is unfinished, otherwise the item itself.
func (p View) ReviewItem(id string) string {
	if planned := p.Planned(id); len(planned) > 0 {
		return planned[0]
	}
	return id
}

// FreeReview is ReviewItem for a call made now: it skips reviews that already run, since those began too early.
func (p View) FreeReview(id string, tasks []centurion.Task) string {
	for _, r := range p.Planned(id) {
		if !HasTask(r, tasks) {
			return r
		}
	}
	return id
}

// HasTask reports whether a living task works on an item.
func HasTask(item string, tasks []centurion.Task) bool {
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == item && !t.Status.Ended() })
}
