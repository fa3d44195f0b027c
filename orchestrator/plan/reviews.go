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

// Covers returns the items that a review is about: the one that was done when it was handed out; else those that its own
// item comes after, directly or not. It is nil for all: a review without an item, or with one that comes after none.
func (p View) Covers(t centurion.Task) map[string]bool {
	if t.Reviews && !p.IsReview(t.Item) {
		return map[string]bool{t.Item: true}
	}
	return p.before(t.Item)
}

// IsReview reports whether an item of the plan is itself a review.
func (p View) IsReview(id string) bool {
	if p.Doc == nil {
		return false
	}
	it, ok := p.Doc.Item(id)
	return ok && strings.EqualFold(it.Agent, agents.Reviewer)
}

// HasReview refuses a reviewer for an item that is not done, unless it is a review itself: one of @reviewer, or one that names nobody, has nothing
// but what it comes after and was no other agent's.
func (p View) HasReview(id string, tasks []centurion.Task) error {
	if id == "" || p.IsReview(id) {
		return nil
	}
	it, _ := p.Doc.Item(id) // [planView.itemOpen] has found it
	others := slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == id && t.Agent != agents.Reviewer })
	status := p.Doc.Status(id)
	if mayReview(it) && status == todo.Open && !others {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is %s: there is nothing to review yet, and the reviewer does not work on items", id, status),
		Hint: fmt.Sprintf("have it done first: delegate_task %s. To have what is merged so far reviewed, or a wrong check changed, call the reviewer without an item. "+
			"If %s is itself a review, name @reviewer on it (update_todo)", DelegateCall(cmp.Or(it.Agent, agents.Worker), id, "do "+id), id)}
}

// mayReview reports whether an item that names no agent may be a review: it has nothing but what it comes after.
func mayReview(it todo.Item) bool {
	return it.Agent == "" && len(it.Verify)+len(it.Files) == 0 && len(it.After) > 0
}

// before returns the items that come before one, directly or not, or nil for one that comes after none.
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

// Nearest returns the ids that come before an item, directly or not, in the order of their distance.
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

// ReviewCall is what delegate_task is called with for a review of an item.
func ReviewCall(item string) string { return DelegateCall(agents.Reviewer, item, "review "+item) }

func DelegateCall(agent, item, what string) string {
	return fmt.Sprintf(`{"agent":%q,"item":%q,"description":%q,"prompt":"…"}`, agent, item, what)
}

// UnmetBut lists what an item still waits for, but for one that is done and whose mark may still be to be set.
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

// ReviewItem names the item that a review of another one is to be handed out for: the plan's own item for it, if it has one
// that is not done, else the other one itself.
func (p View) ReviewItem(id string) string {
	if planned := p.Planned(id); len(planned) > 0 {
		return planned[0]
	}
	return id
}

// FreeReview is the same for a call that is made now: a review that works already, and began too early for the item, is not
// to be had.
func (p View) FreeReview(id string, tasks []centurion.Task) string {
	for _, r := range p.Planned(id) {
		if !HasTask(r, tasks) {
			return r
		}
	}
	return id
}

// HasTask reports whether a task that has not ended works on an item.
func HasTask(item string, tasks []centurion.Task) bool {
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == item && !t.Status.Ended() })
}
