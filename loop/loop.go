// Package loop decides whether a mission with an idle root session continues. It is pure: facts in, a decision and its reason out. It
// owns no clock and no mission, and reads neither todo.md nor the store; the caller gathers the facts, counts down, asks again when the
// countdown ends, and carries out the decision.
//
// The first row that applies holds:
//
//	the mission has ended, is paused or blocked                    wait
//	a limit of its budget is reached                               pause
//	the root session's failure is being recovered                  wait
//	a person has written, or has changed the plan with an item     deliver
//	  ready to start, and the turn was not stopped
//	a result waits that wakes at once (a failure, or it frees      deliver
//	  an item), and the turn was not stopped
//	tasks run or wait, a person is asked                           wait
//	a person stopped the turn                                      wait if one is there to be asked, else pause
//	results wait                                                   deliver
//	one agent answers a person, without a plan                     complete; verify first where proof is required
//	todo.md cannot be read, or its items have vanished             block
//	only a plan was wanted: there is one                           pause; else continue once, then block
//	the final text ends in a question, and nothing was claimed     continue once, then block with it
//	there never were items: a final text or a claim                verify, then complete; else continue
//	nothing shows what was done                                    continue once, then complete
//	open items can be worked on                                    continue; block after 5 rounds without progress
//	items are left, none can be worked on                          block
//	every item is done or cancelled                                verify, then complete
package loop

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"centurion"
)

// The defaults of a [Policy].
const (
	DefaultCountdown   = 2 * time.Second // in which a person's message stops a continuation
	DefaultNewApproach = 3               // rounds without progress before a different approach is demanded
	DefaultGiveUp      = 5               // rounds without progress before the mission is blocked
)

// listed is how many open items a prompt or a question names.
const listed = 5

// Policy holds the limits of continuation. The zero Policy has the defaults.
type Policy struct {
	Countdown   time.Duration
	NewApproach int
	GiveUp      int
}

// Counts are the marks of the todo items. An item with sub-items does not count; its sub-items do.
type Counts struct {
	Open, Running, Done, Cancelled, Blocked int
}

// Total returns the number of items.
func (c Counts) Total() int { return c.Open + c.Running + c.Done + c.Cancelled + c.Blocked }

// Left returns the number of items that are neither done nor cancelled.
func (c Counts) Left() int { return c.Open + c.Running + c.Blocked }

// Facts is what is known about a mission with an idle root session.
type Facts struct {
	Status       centurion.MissionStatus
	HasTodo      bool   // the file exists
	EverHadItems bool   // it has had items at some point in this mission
	TodoError    string // why the file cannot be read; empty if it can
	Counts       Counts
	Runnable     []string // ids of the open items that could be started now
	Next         []string // "T1 title" of the open items in file order, at least the first five
	Stuck        []string // "T1 title" of the items that are blocked or wait for blocked ones, at least the first five

	RunningTasks      int
	WaitingTasks      int  // queued, or waiting for something that will come: a slot, a retry time, a running predecessor
	HeldTasks         int  // waiting tasks whose awaited item has no worker
	PendingDeliveries int  // results not yet delivered to the root session
	WakingDeliveries  int  // of these, failures and results that free a waiting item
	OpenAsks          int  // permissions and questions that wait for a person
	Messages          int  // messages of a person not yet delivered to the root session
	Edited            bool // a person has changed the plan, and the root session does not know yet

	Recovering            bool   // a failure of the root session is being recovered
	Aborted               bool   // a person stopped the turn
	Attended              bool   // a person is available for questions
	FinishedText          bool   // the root session ended with text and without calls
	Said                  string // that text; empty if it did not end so
	Claimed               bool   // mission_complete was called
	ChecksPending         bool   // the final checks have not run on the current work
	Verified              int    // final checks that passed on the current work
	Bare                  bool   // nothing shows what was done, and the root session has not been asked about it yet
	RoundsWithoutProgress int    // consecutive continuations without a change to the todo list or the files
	PlanOnly              bool   // only the plan was requested
	Alone                 bool   // one agent answers a person: no plan, no proof, and the end of its turn is the end
	Proof                 bool   // the person wants proof
	Budget                bool   // a limit is reached
}

// Action is what to do with the mission.
type Action string

// The actions.
const (
	Wait     Action = "wait"     // something under way will ask again when it ends
	Deliver  Action = "deliver"  // wake the root session with the waiting results
	Continue Action = "continue" // after the countdown, if the facts are unchanged, prompt the root session
	Verify   Action = "verify"   // run the final checks, then ask again
	Complete Action = "complete" // the mission is done
	Block    Action = "block"    // stop with a question for a person
	Pause    Action = "pause"    // stop; a resume continues
)

// Decision is an action and its reason.
type Decision struct {
	Action   Action
	After    time.Duration // of Continue: the countdown
	Prompt   string        // of Continue
	Question string        // of Block; never empty there
	Asks     bool          // of Block: the agent itself asked it at the end of its turn
	Bare     bool          // of Continue: it asks for evidence that the goal is reached, which happens once
	Reason   string        // for people, one line; never empty
}

// Decide decides about the mission. It has an answer for all facts.
func (p Policy) Decide(f Facts) Decision {
	p.Countdown = cmp.Or(p.Countdown, DefaultCountdown)
	p.NewApproach = cmp.Or(p.NewApproach, DefaultNewApproach)
	p.GiveUp = cmp.Or(p.GiveUp, DefaultGiveUp)
	if d, ok := underWay(f); ok {
		return d
	}
	switch {
	case f.Alone && f.Proof:
		return p.finish(f, "")
	case f.Alone:
		return Decision{Action: Complete, Reason: "nothing to verify"}
	case f.TodoError != "":
		return block("todo.md cannot be read: "+f.TodoError,
			"todo.md cannot be read: "+f.TodoError+". Please fix it; the mission then continues.")
	case f.EverHadItems && f.Counts.Total() == 0:
		what := "todo.md has no items any more"
		if !f.HasTodo {
			what = "todo.md has vanished"
		}
		return block(what, what+". Should the mission continue with a new plan, or end?")
	case f.PlanOnly:
		return p.plan(f)
	case f.Counts.Total() == 0:
		return p.withoutItems(f)
	case len(f.Runnable) > 0 || f.Counts.Running > 0:
		return p.proceed(f)
	case f.Counts.Left() > 0:
		return stuck(f)
	case f.asks():
		return p.asked(f)
	}
	return p.finish(f, "every item is done or cancelled")
}

// underWay decides while anything other than the todo list determines the outcome.
func underWay(f Facts) (Decision, bool) {
	busy := f.RunningTasks > 0 || f.WaitingTasks > f.HeldTasks
	switch {
	case f.Status != "" && !f.Status.Alive():
		return Decision{Action: Wait, Reason: "the mission is " + string(f.Status)}, true
	case f.Budget:
		return Decision{Action: Pause, Reason: "budget"}, true
	case f.Recovering:
		return Decision{Action: Wait, Reason: "a failure is being recovered"}, true
	case f.Messages > 0:
		return Decision{Action: Deliver, Reason: centurion.Count(f.Messages, "message") + " of a person"}, true
	case f.Edited && len(f.Runnable) > 0 && !f.Aborted:
		return Decision{Action: Deliver, Reason: "a person has changed the plan, and an item can be started"}, true
	case f.WakingDeliveries > 0 && !f.Aborted:
		return Decision{Action: Deliver, Reason: centurion.Count(f.WakingDeliveries, "result") + " that cannot wait"}, true
	case busy:
		return Decision{Action: Wait, Reason: centurion.Count(f.RunningTasks, "task") + " running, " + fmt.Sprint(f.WaitingTasks) + " waiting"}, true
	case f.OpenAsks > 0:
		return Decision{Action: Wait, Reason: centurion.Count(f.OpenAsks, "question") + " for a person"}, true
	case f.Aborted && f.Attended:
		return Decision{Action: Wait, Reason: "stopped by a person, whose word it waits for"}, true
	case f.Aborted:
		return Decision{Action: Pause, Reason: "stopped by a person"}, true
	case f.PendingDeliveries > 0:
		return Decision{Action: Deliver, Reason: centurion.Count(f.PendingDeliveries, "result") + ", and nothing runs"}, true
	}
	return Decision{}, false
}

func (p Policy) plan(f Facts) Decision {
	switch {
	case f.Counts.Total() > 0:
		return Decision{Action: Pause, Reason: "planned"}
	case f.RoundsWithoutProgress > 0:
		return block("no plan was written", "The plan was asked for twice and todo.md still has no items. "+
			"What should the plan contain, or is there nothing to do?")
	}
	return Decision{Action: Continue, After: p.Countdown, Reason: "the plan is missing",
		Prompt: "The plan is still missing: write it with update_todo, one item for each piece of work, then end your turn. Start no work."}
}

// stuck blocks a mission whose items wait for others. Its agent's last words tell the person why.
func stuck(f Facts) Decision {
	names := f.Stuck
	if len(names) == 0 {
		names = f.Next
	}
	left := list(names, f.Counts.Left(), ", ")
	d := block(centurion.Count(f.Counts.Left(), "item")+" left, none can be worked on",
		"None of the items that are left can be worked on: "+left+". What should happen with them?")
	switch said := strings.TrimSpace(f.Said); {
	case f.asks():
		d.Question, d.Asks = said+" (Left: "+left+")", true
	case said != "":
		d.Question += " Its agent said last: " + centurion.Clip(strings.Join(strings.Fields(said), " "), 500)
	}
	return d
}

// asks reports whether the root session ended its turn with a question and did not call mission_complete.
func (f Facts) asks() bool { return f.FinishedText && !f.Claimed && Asks(f.Said) }

// Asks reports whether a text ends in a question, possibly followed by a list of choices.
func Asks(text string) bool {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, l := range slices.Backward(lines) {
		l = strings.TrimRight(strings.TrimSpace(l), "*_`\"'”»)")
		if strings.HasSuffix(l, "?") || strings.HasSuffix(l, "？") {
			return true
		}
		if l != "" && !choice.MatchString(l) {
			return false
		}
	}
	return false
}

// choice matches a line that lists one of several choices.
var choice = regexp.MustCompile(`^([-*+•]|\(?\w{1,2}[.):])\s`)

// asked handles a turn that ended with a question and left nothing else to do. Many last words only ask whether there is more to do, so
// the agent is asked once, and a person if it asks again.
func (p Policy) asked(f Facts) Decision {
	if f.RoundsWithoutProgress > 0 {
		d := block("the agent asks a question", strings.TrimSpace(f.Said))
		d.Asks = true
		return d
	}
	return Decision{Action: Continue, After: p.Countdown, Reason: "the turn ended with a question",
		Prompt: "Your turn ended with a question. If the goal is reached without its answer, call mission_complete. " +
			"If only the person can answer it, end your turn with it once more: the mission stops then and the person is asked."}
}

func (p Policy) withoutItems(f Facts) Decision {
	switch {
	case f.asks():
		return p.asked(f)
	case f.FinishedText || f.Claimed:
		return p.finish(f, "")
	case f.RoundsWithoutProgress >= p.GiveUp:
		return block("no answer", fmt.Sprintf("The agent ended its turn without an answer %s. How should it continue?",
			centurion.Count(f.RoundsWithoutProgress, "time")))
	}
	return Decision{Action: Continue, After: p.Countdown, Reason: "the turn ended without an answer",
		Prompt: "Your turn ended without an answer. Continue with the goal; if it is reached, say what was done."}
}

func (p Policy) proceed(f Facts) Decision {
	n := f.RoundsWithoutProgress
	left := f.Counts.Open + f.Counts.Running
	if n >= p.GiveUp {
		return block(fmt.Sprintf("no progress in %d rounds", n), fmt.Sprintf("There was no progress in %d rounds. Open: %s. "+
			"What should be done differently?", n, list(f.Next, left, ", ")))
	}
	return Decision{Action: Continue, After: p.Countdown, Reason: centurion.Count(left, "item") + " open", Prompt: p.prompt(f, left)}
}

// prompt returns the prompt for the root session. It is short, since the session has the plan and its history.
func (p Policy) prompt(f Facts, left int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The mission is not finished: %s open.\n%s\n", centurion.Count(left, "item"), list(f.Next, left, "\n"))
	if len(f.Runnable) > 0 {
		fmt.Fprintf(&b, "Next: %s.", f.Runnable[0])
	} else {
		b.WriteString("Items are marked as running, but no task works on them: finish them, delegate them, or set them back to open.")
	}
	if f.HeldTasks > 0 {
		fmt.Fprintf(&b, " %s for items that no task works on.", verb(f.HeldTasks, "task waits", "tasks wait"))
	}
	if f.RoundsWithoutProgress >= p.NewApproach {
		fmt.Fprintf(&b, "\nNothing has changed in %d rounds. Do not repeat what you did: find out what is in the way, then try a "+
			"different approach, split the item, or mark it as blocked with the reason.", f.RoundsWithoutProgress)
	} else {
		b.WriteString("\nContinue with it now, without asking.")
	}
	return b.String()
}

// BareWord asks a mission's own agent for evidence that the goal is reached.
const BareWord = "Nothing shows that the goal is reached: no check has passed that could tell. If a command can show it, call mission_complete " +
	"with that command as `verify`: the host runs it. If something is left to do, do it. If the goal needs no check, as a question does, " +
	"end with your answer once more and say why none is needed."

// finish runs the available checks before the mission is complete.
func (p Policy) finish(f Facts, why string) Decision {
	if why != "" {
		why += "; "
	}
	switch {
	case f.ChecksPending:
		return Decision{Action: Verify, Reason: why + "the final checks come next"}
	case f.Bare && f.RoundsWithoutProgress < p.GiveUp:
		return Decision{Action: Continue, After: p.Countdown, Reason: why + "nothing shows what was done", Prompt: BareWord, Bare: true}
	case f.Verified == 0:
		return Decision{Action: Complete, Reason: why + "nothing to verify"}
	}
	return Decision{Action: Complete, Reason: why + centurion.Count(f.Verified, "final check") + " passed"}
}

func block(reason, question string) Decision {
	return Decision{Action: Block, Reason: reason, Question: question}
}

// list names the first five of total items.
func list(names []string, total int, sep string) string {
	shown := names[:min(len(names), listed)]
	bullet, more := "", "and "
	if sep == "\n" {
		bullet, more = "- ", "… and "
	}
	var parts []string
	for _, n := range shown {
		parts = append(parts, bullet+n)
	}
	if rest := total - len(shown); rest > 0 {
		if len(shown) == 0 {
			return bullet + centurion.Count(rest, "item")
		}
		parts = append(parts, more+fmt.Sprintf("%d more", rest))
	}
	return strings.Join(parts, sep)
}

func verb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
