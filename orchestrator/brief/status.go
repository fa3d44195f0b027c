package brief

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/verify"
	"centurion/workspace/todo"
)

// GoOn reminds the Commander that it is not done. It appears only in the status at the end of a request, which is replaced each time;
// in tool results, copies would fill the history.
const GoOn = NotFinished + ": start what can be started, or end your turn while others work."

const NotFinished = "Not finished"

// AllTaken is GoOn when nothing is left to start.
const AllTaken = NotFinished + ", and nothing is to be started now: end your turn while others work."

// ClaimedDone is GoOn after mission_complete was accepted and a message has arrived since: then a text ends the mission.
const ClaimedDone = "mission_complete was accepted: the mission ends with your turn."

// AllDone tells the Commander how to end the mission.
const AllDone = "Every item is done or cancelled: call mission_complete, unless the goal asks for more."

// Standing is the state of a plan with its tasks.
type Standing struct {
	review.View
	proofs []review.ItemProof
	alive  map[string]centurion.Task // living tasks by item; those without one under ""

	claimed bool             // mission_complete was accepted before
	held    *claims.Registry // the holders of files; nil if there are none
}

// StandingOf returns the state of a view's plan, which must not be nil.
func StandingOf(v review.View, held *claims.Registry) Standing {
	return Standing{View: v, proofs: v.Proofs(), alive: v.Alive(), held: held}
}

// counts counts items by their tasks, from the time of delegation; an item's mark follows only when its task begins. Items whose task
// waits are counted separately.
func (s Standing) counts() (c todo.Counts, waiting int) {
	c = s.Plan.Doc.Counts()
	for id, t := range s.alive {
		it, ok := s.Plan.Doc.Item(id)
		if !ok || it.Group {
			continue
		}
		switch mark := s.Plan.Doc.Status(id); {
		case mark == todo.Open && state.Waits(t):
			c.Open--
			waiting++
		case mark == todo.Open:
			c.Open--
			c.Running++
		case mark == todo.Blocked && state.Waits(t): // its question is open, or was answered and the task waits for its turn
			c.Blocked--
			waiting++
		case mark == todo.Blocked:
			c.Blocked--
			c.Running++
		case mark == todo.Running && state.Waits(t):
			c.Running--
			waiting++
		}
	}
	return c, waiting
}

// unproven lists the done items whose checks prove too little, without a later review that passed.
func (s Standing) unproven() (out []string) {
	for _, w := range s.proofs {
		if w.Proof != "" && !w.Verified() {
			out = append(out, w.Item.ID)
		}
	}
	return out
}

// withHolders adds, to startable items, the holders of files that they would wait for.
func (s Standing) withHolders(items []string) []string {
	out := slices.Clone(items)
	for i, id := range out {
		it, ok := s.Plan.Doc.Item(id)
		if !ok || s.held == nil {
			continue
		}
		if holder := s.held.InTheWay(it.ID, it.Files); holder != "" {
			out[i] = fmt.Sprintf("%s (waits for files of %s first)", id, holder)
		}
	}
	return out
}

// Startable describes in one line what could be done now instead of waiting for tasks; "" if there is nothing.
func (s Standing) Startable() string {
	start, failed := s.Next()
	steps := s.steps(failed)
	if len(start) > 0 {
		steps = slices.Insert(steps, 0, "Can be started: "+strings.Join(s.withHolders(start), ", ")+".")
	}
	return strings.Join(steps, " ")
}

// steps lists, one per line, other obstacles to the mission's end with the helpful call: items with a blocked task, reviews that found
// faults, and, when all is done, missing reviews.
func (s Standing) steps(failed []string) (out []string) {
	for _, id := range failed {
		out = append(out, fmt.Sprintf("%s's review failed: add an item for what it found first, and let %s wait for it (after).", id, id))
	}
	for _, it := range s.Plan.Items() {
		t, had := s.NewestOf(it.ID)
		if it.Group || !had || s.Plan.Doc.Status(it.ID) != todo.Blocked || t.Status != centurion.TaskBlocked {
			continue
		}
		line := fmt.Sprintf("%s is blocked: ", it.ID)
		if t.Session != "" {
			line += fmt.Sprintf(`resume it (delegate_task {"agent":%q,"item":%q,"resume":%q,…}), or `, t.Agent, it.ID, t.Name())
		}
		out = append(out, line+"hand it out anew, with what would help; set it to cancelled; or, where only the person can help, end your turn with the question.")
	}
	return out
}

// marked lists items marked as blocked by hand, as for a question to the person, which only a new mark can release; likewise items
// marked as running without a task.
func (s Standing) marked() []string {
	var marked, running []string
	for _, it := range s.Plan.Items() {
		t, had := s.NewestOf(it.ID)
		switch status := s.Plan.Doc.Status(it.ID); {
		case it.Group || had && !t.Status.Ended():
		case status == todo.Running && !had:
			running = append(running, it.ID)
		case status == todo.Blocked && !(had && t.Status == centurion.TaskBlocked):
			marked = append(marked, it.ID)
		}
	}
	var out []string
	if len(marked) > 0 {
		out = append(out, fmt.Sprintf("Marked as blocked: %s. Set those that can continue to open with update_todo.", strings.Join(marked, ", ")))
	}
	if len(running) > 0 {
		out = append(out, fmt.Sprintf("Marked as running, but no task works on it: %s. Delegate it, or do it and set it to done with update_todo.", strings.Join(running, ", ")))
	}
	return out
}

// reviews lists, one per line, the done items that need a review, and the call for it.
func (s Standing) reviews() (out []string) {
	for _, w := range s.proofs {
		switch {
		case w.Verified() || !s.MayReview && w.Left == "":
		case w.Left != "":
			out = append(out, fmt.Sprintf("%s is not done (%s): "+review.Undone, w.Item.ID, w.Why, w.Left))
		case w.Blank:
			out = append(out, w.Item.ID+" is not shown to be done: "+review.Blank)
		default:
			out = append(out, fmt.Sprintf("%s needs a review (%s): delegate_task %s", w.Item.ID, w.Why, plan.ReviewCall(s.Plan.ReviewItem(w.Item.ID))))
		}
	}
	return out
}

// expected lists, one per line, the upcoming reviews of the items in doubt, and returns the items without any.
func (s Standing) expected(doubtful []string) (lines, idle []string) {
	of := map[string][]string{} // the reviewed items, by the end of the line
	var ends [][2]string
	for _, id := range doubtful {
		by, when := s.Coming(id)
		switch {
		case by != "":
			if of[by+when] == nil {
				ends = append(ends, [2]string{by, when})
			}
			of[by+when] = append(of[by+when], id)
		case !slices.ContainsFunc(s.Plan.Planned(id), func(r string) bool { _, taken := s.alive[r]; return !taken }):
			idle = append(idle, id)
		}
	}
	for _, e := range ends {
		lines = append(lines, fmt.Sprintf("%s reviews %s %s.", e[0], strings.Join(of[e[0]+e[1]], ", "), e[1]))
	}
	return lines, idle
}

// wrongChecks lists, one per line, the checks that can only pass, with the way to replace them: of items not begun, and of done items
// in doubt because of them.
func (s Standing) wrongChecks() (out []string) {
	say := func(it todo.Item, how string) {
		for _, command := range verify.Distinct(it.Verify) {
			if verify.CanOnlyPass(command) {
				out = append(out, fmt.Sprintf("%s's check `%s` can only pass: %s.", it.ID, command, how))
			}
		}
	}
	for _, it := range s.Plan.Unfinished() {
		if _, begun := s.NewestOf(it.ID); !begun && !s.Mission.Accepted && !s.Plan.IsReview(it.ID) {
			say(it, "send the plan with one that fails without the work before you hand the item out")
		}
	}
	for _, w := range s.proofs {
		if !w.Verified() {
			say(w.Item, "send the plan with one that fails without the work; it is run at once against the merged work")
		}
	}
	return plan.FirstOf(out, nil)
}

// Say writes the state of the plan and the next steps.
func (s Standing) Say(b *strings.Builder) {
	c, waiting := s.counts()
	fmt.Fprintf(b, "Todo: %d open, %d running", c.Open, c.Running)
	if waiting > 0 {
		fmt.Fprintf(b, ", %d waiting", waiting)
	}
	fmt.Fprintf(b, ", %d done", c.Done)
	doubtful := s.unproven()
	if len(doubtful) > 0 {
		fmt.Fprintf(b, " (%d unproven: %s)", len(doubtful), strings.Join(doubtful, ", "))
	}
	fmt.Fprintf(b, ", %d cancelled, %d blocked.", c.Cancelled, c.Blocked)
	start, failed := s.Next()
	if len(start) > 0 {
		fmt.Fprintf(b, " Can be started: %s.", strings.Join(s.withHolders(start), ", "))
	}
	b.WriteByte('\n')
	steps := s.steps(failed)
	left := c.Open + c.Running + c.Blocked + waiting
	if left == 0 && len(s.alive) == 0 {
		steps = s.reviews()
	}
	expected, idle := s.expected(doubtful)
	for _, line := range slices.Concat(steps, s.marked(), expected, s.wrongChecks()) {
		b.WriteString(line + "\n")
	}
	switch {
	case len(start) > 0 || len(steps) > 0 && len(s.alive) > 0:
		b.WriteString(GoOn + "\n")
	case len(steps) > 0:
		b.WriteString(NotFinished + ".\n")
	case len(s.alive) > 0 && len(idle) > 0:
		fmt.Fprintf(b, "%s: %s can be fixed (delegate_task with the item) or reviewed now, or when the others are done.\n", NotFinished, strings.Join(idle, ", "))
	case len(s.alive) > 0:
		b.WriteString(AllTaken + "\n")
	case c.Running > 0:
		b.WriteString(GoOn + "\n")
	case left == 0 && s.claimed:
		b.WriteString(ClaimedDone + "\n")
	case left == 0:
		b.WriteString(AllDone + "\n")
	}
}

// answersTo returns the person's answers to the newest question of each task, by task. The Commander reads them before the task ends,
// as they may affect other work.
func (w *Writer) answersTo(ctx context.Context) (map[string]string, error) {
	asks, err := w.st.Store.Asks(ctx, w.st.ID, false)
	out := map[string]string{}
	for _, a := range asks {
		switch {
		case a.Type != store.AskQuestion || a.Task == "":
		case state.FromPerson(a.By):
			out[a.Task] = "\"" + centurion.Clip(strings.Join(strings.Fields(a.Answer), " "), 300) + "\""
		case a.Answered.IsZero():
			delete(out, a.Task) // it has another one
		}
	}
	return out, err
}

// Status is the text at the end of each request of the Commander: the state of the plan and the spending.
func (w *Writer) Status(held *claims.Registry, claimed bool, reserves *budget.Reserves) string {
	ctx := w.st.Ctx
	v, err := w.judge.Look(ctx) // read once, so that counts and lists agree
	if err != nil || !v.Mission.HadItems {
		return ""
	}
	var b strings.Builder
	if v.Plan.Doc != nil {
		s := StandingOf(v, held)
		s.claimed = claimed
		s.Say(&b)
	}
	answers, err := w.answersTo(ctx)
	if err != nil {
		return ""
	}
	for _, t := range v.Tasks {
		if t.Status.Ended() {
			continue
		}
		line := t.Name() + " " + t.Agent
		if t.Reviews {
			line += " reviews " + t.Item
		}
		line += " " + string(t.Status)
		if t.Reason != "" {
			line += ": " + t.Reason
		}
		if a := answers[t.ID]; a != "" {
			line += " (the person has answered its question: " + a + ")"
		}
		b.WriteString(line + "\n")
	}
	if v.Mission.LevelFrom == centurion.LevelByPerson {
		fmt.Fprintf(&b, "Level: %d, set by the person.\n", v.Mission.Level)
	}
	b.WriteString(reserves.Line(v.Mission, w.st.Elapsed()))
	return b.String()
}

// Startable says, for a model, what the mission's own agent could do now instead of waiting for its tasks; it is empty if that is nothing.
func (w *Writer) Startable(ctx context.Context, held *claims.Registry) (string, error) {
	v, err := w.judge.Look(ctx)
	if err = cmp.Or(err, v.Unread); err != nil || v.Plan.Doc == nil {
		return "", err
	}
	return StandingOf(v, held).Startable(), nil
}
