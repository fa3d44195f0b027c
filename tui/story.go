package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event/toast"
	"centurion/event/view"
	"centurion/text"
)

// fact is one event to show. The live view prints it above its frame, the plain view as a line.
type fact struct {
	at     time.Time
	mark   string
	tone   tone // tone of the mark
	agent  string
	who    string // "worker T2"
	text   string
	detail string   // shown less prominently
	body   []string // further lines
	foot   string   // closes the block of the body
	depth  int      // of its worker: 0 for one started by the Commander
	quiet  bool     // the live view shows it in its frame instead
	whole  bool     // the text is shown in full instead of in one line
}

// story applies events to a board and converts relevant ones to facts.
type story struct {
	board *Board
	asked map[string]*Ask
	done  int               // done items at the last report of the todo list
	level int               // the last reported level
	began bool              // the goal was seen as the mission's first message
	based bool              // the base of the work was reported
	said  map[string]string // the newest reported answer, by session
	early map[string]bool   // checks of the mission reported as not passing yet
}

// Limits of quotations from a worker. `centurion show` prints the whole.
const (
	maxSaid       = 12  // lines of an answer
	maxTail       = 4   // lines of a failed check's output
	maxPlainQuote = 300 // characters of a quote in a plain line
)

func (s *story) apply(e centurion.Event) []fact {
	if e.Type == centurion.EventToast { // it follows from facts that the board already has
		return []fact{toastFact(e)}
	}
	p, ours := s.board.Apply(e)
	if !ours {
		return nil
	}
	var facts []fact
	switch kind, _, _ := strings.Cut(string(e.Type), "."); kind {
	case "mission", "budget":
		facts = s.mission(e, p)
	case "todo":
		facts = append(s.plan(p), s.todo()...)
	case "task":
		facts = s.task(e, p)
	case "session", "message", "tool", "provider":
		facts = s.session(e, p)
	case "verify", "merge":
		facts = s.check(e, p)
	case "permission", "question", "plan":
		facts = s.ask(e, p)
	}
	for i := range facts {
		facts[i].at = e.Time.Time
	}
	return facts
}

func (s *story) mission(e centurion.Event, p view.Fact) []fact {
	b := s.board
	switch e.Type {
	case centurion.EventMissionStarted:
		started := fact{mark: "◆", tone: commander, text: cmp.Or(b.Goal, "mission"), detail: text.Dots(b.ID, b.Directory, b.Branch)}
		return slices.Concat([]fact{started}, confined(p), note(p))
	case centurion.EventMissionResumed:
		resumed := fact{mark: "◆", tone: commander, text: "resumed: " + cmp.Or(b.Goal, "mission"), detail: text.Dots(b.ID, b.Directory)}
		return append([]fact{resumed}, confined(p)...)
	case centurion.EventBudgetExceeded:
		return []fact{{mark: "!", tone: warn, text: "budget reached", detail: cmp.Or(text.Clean(p.Reason), budgetText(p))}}
	case centurion.EventMissionUpdated:
		var facts []fact
		if p.Base != nil && !s.based {
			s.based = true
			facts = append(facts, fact{mark: "·", tone: dim, text: "base: " + baseText(*p.Base)})
		}
		if p.Level > 0 && p.Level != s.level {
			s.level = p.Level
			facts = append(facts, fact{mark: "·", tone: dim, text: fmt.Sprintf("level %d", p.Level), detail: text.Dots(levelText(p.Level), levelFrom(p.LevelFrom))})
		}
		facts = append(facts, note(p)...)
		if p.Countdown != nil && *p.Countdown > 0 {
			facts = append(facts, fact{mark: "·", tone: dim, text: "continues in " + text.Span(text.Millis(*p.Countdown)), quiet: true})
		}
		return facts
	}
	return nil
}

// baseText describes the base of a mission's work: "HEAD 1a2b3c4 with 3 uncommitted files; worktrees: overlay".
func baseText(b centurion.Base) string {
	return text.Clean(text.If(b.Head == "", "no commit yet", fmt.Sprintf("HEAD %.7s", b.Head)) + b.Uncommitted() +
		text.If(b.Workspaces != "", "; worktrees: "+b.Workspaces, ""))
}

// confined says how a mission's commands are confined.
func confined(p view.Fact) []fact {
	if p.Confinement == nil {
		return nil
	}
	return []fact{{mark: "·", tone: dim, text: "confinement of commands: " + text.Clean(p.Confinement.String()), whole: true}}
}

// note is what a fact about a mission adds in words, if it does.
func note(p view.Fact) []fact {
	if n := text.Clean(p.Note); n != "" {
		return []fact{{mark: "·", tone: dim, text: n, whole: true}}
	}
	return nil
}

// budgetText describes which limit was reached.
func budgetText(p view.Fact) string {
	if p.Limit == "" {
		return ""
	}
	return fmt.Sprintf("%s of %s (--%s)", text.Limit(p.Limit, p.Spent), text.Limit(p.Limit, p.Max), strings.ReplaceAll(text.Clean(p.Limit), "_", "-"))
}

// levelFrom describes the source of a level that is not the Commander's own assessment.
func levelFrom(from string) string {
	return map[string]string{centurion.LevelByPerson: "set", centurion.LevelInferred: "inferred"}[from]
}

func levelText(level int) string {
	return map[int]string{
		1: "one step: the Commander does it itself",
		2: "a few independent items",
		3: "planned first, workers in waves, reviewed last",
	}[level]
}

// plan shows a new or changed plan by its waves.
func (s *story) plan(p view.Fact) []fact {
	if len(p.Items) == 0 {
		return nil
	}
	waves, stuck := Waves(p.Items)
	if len(stuck) > 0 {
		waves = append(waves, stuck)
	}
	var body []string
	for i, wave := range waves {
		for _, it := range wave {
			body = append(body, fmt.Sprintf("%d  %s %s", i+1, text.Clean(it.ID), text.Clean(it.Title))+
				text.When(it.Agent != "", " @"+text.Clean(it.Agent))+
				text.When(len(it.After) > 0, "  after "+text.Clean(strings.Join(it.After, ", "))))
		}
	}
	return []fact{{mark: "▤", tone: commander, text: cmp.Or(text.Clean(p.Title), "the plan"), body: body,
		foot: fmt.Sprintf("%s in %s", centurion.Count(len(p.Items), "item"), centurion.Count(len(waves), "wave"))}}
}

func (s *story) todo() []fact {
	t := s.board.Todo
	if t.Done == s.done {
		return nil
	}
	s.done = t.Done
	return []fact{{mark: "·", tone: dim, text: fmt.Sprintf("todo %d/%d done", t.Done, t.Total()), quiet: true}}
}

func (s *story) task(e centurion.Event, p view.Fact) []fact {
	t := s.board.Task(cmp.Or(e.Task, p.ID))
	if t == nil {
		return nil
	}
	f := fact{agent: t.Agent, who: strings.TrimSpace(t.Agent + " " + t.Name()), depth: depth(t.Address)}
	f.mark, f.tone = taskMark(t.Status)
	switch e.Type {
	case centurion.EventTaskQueued:
		f.text, f.detail, f.quiet = "queued", t.Title, true
	case centurion.EventTaskWaiting:
		f.text, f.detail, f.quiet = "waits", why(t), true
	case centurion.EventTaskStarted:
		f.mark, f.text, f.detail = "▸", "started", text.Dots(t.Title, attemptWords(t.Task))
	case centurion.EventTaskVerifying:
		f.text, f.detail, f.quiet = "being checked", t.Title, true
	case centurion.EventTaskRetrying:
		f.mark, f.tone, f.text, f.detail = "↻", warn, "tries again", why(t)
		f.text += text.When(p.WaitMS > 0, " in "+text.Took(p.Wait()))
	case centurion.EventTaskCompleted, centurion.EventTaskFailed, centurion.EventTaskCancelled, centurion.EventTaskBlocked:
		s.taskEnd(&f, t, p)
	default:
		return nil
	}
	return []fact{f}
}

// taskEnd makes f the block with a child's answer and how it ended.
func (s *story) taskEnd(f *fact, t *Task, p view.Fact) {
	f.text = t.Title
	if t.Said != "" {
		f.body = clip(strings.Split(t.Said, "\n"), maxSaid)
	}
	verb := map[centurion.TaskStatus]string{centurion.TaskCompleted: "done", centurion.TaskFailed: "failed",
		centurion.TaskCancelled: "cancelled", centurion.TaskBlocked: "blocked"}[t.Status]
	age := text.When(!t.Started.IsZero(), " "+text.Span(toast.Age(t.Task, t.Ended.Time)))
	files := text.When(len(t.Files) > 0, centurion.Count(len(t.Files), "file"))
	cost := text.When(t.Usage != (centurion.Usage{}), text.Cost(t.Usage))
	f.foot = text.Dots(verb+age, cost, files, why(t))
}

// depth is the number of workers above the one with this address: 0/3 was started by the Commander, 0/3/1 by 0/3.
func depth(address string) int {
	return max(0, len(strings.FieldsFunc(address, func(r rune) bool { return r == '/' }))-2)
}

// clip keeps the first n lines and adds the number of omitted ones.
func clip(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clone(lines[:n-1]), fmt.Sprintf("… %d more lines", len(lines)-n+1))
}

func tail(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

// shownTools are the Commander's own modifying tool calls that are not reported otherwise.
var shownTools = [...]string{"write", "edit", "bash"}

func (s *story) session(e centurion.Event, p view.Fact) []fact {
	b := s.board
	root := e.Session != "" && e.Session == b.Session
	agent := cmp.Or(b.AgentOf(e.Session, e.Task), "commander")
	switch e.Type {
	case centurion.EventMessageUpdated, centurion.EventPartUpdated:
		if lines := text.CleanLines(p.Text); root && s.isNew(e, p, lines) {
			return []fact{{mark: "◇", tone: roleTone(agent), agent: agent, who: agent, text: lines[0], body: clip(lines[1:], maxSaid)}}
		}
	case centurion.EventMessageCreated:
		if t := text.Clean(p.Text); p.Origin == string(centurion.OriginPerson) && t != "" {
			if root && !s.began && b.IsGoal(t) { // the mission's first message
				s.began = true
				return nil
			}
			who := text.If(root, "you", strings.TrimSpace("you to "+s.who(e)))
			return []fact{{mark: "›", tone: strong, who: who, text: t}}
		}
	case centurion.EventToolCompleted:
		if root && slices.Contains(shownTools[:], p.Tool) {
			f := fact{mark: "·", tone: dim, detail: view.ToolLine(p)}
			if msg := text.Clean(p.Error.Message); msg != "" {
				f.mark, f.tone, f.detail = "✗", bad, f.detail+": "+msg
			}
			return []fact{f}
		}
	case centurion.EventSessionError:
		f := fact{mark: "✗", tone: bad, agent: agent, who: s.who(e), text: cmp.Or(text.Clean(p.Error.Message), string(p.Kind)), quiet: !root}
		if waitsForAnswer(p.Error.Message) {
			f.mark, f.tone, f.text = "?", warn, "waits for your answer: "+f.text
		}
		return []fact{f}
	case centurion.EventSessionAborted:
		return []fact{{mark: "■", tone: warn, agent: agent, who: s.who(e), text: "stopped", detail: text.Clean(p.Reason), quiet: !root}}
	case centurion.EventRewound, centurion.EventForked:
		return []fact{{mark: "↶", tone: warn, agent: agent, who: s.who(e), text: branched(e.Type, e.Data)}}
	case centurion.EventCompacted:
		return []fact{s.compacted(e, agent, root)}
	case centurion.EventSessionModel, centurion.EventSessionAgent:
		said := "continues with " + text.Clean(p.To)
		why, _, _ := strings.Cut(text.Clean(p.Reason), "; continuing with ")
		return []fact{{mark: "↻", tone: warn, agent: agent, who: s.who(e), text: said, detail: why}}
	case centurion.EventProviderRetry:
		d := p.Wait()
		return []fact{{mark: "↻", tone: warn, agent: agent, who: s.who(e), quiet: true,
			text: "waits " + text.Took(d) + " for the model", detail: text.Dots(view.Words(text.Clean(p.Reason)), text.Clean(p.Error.Message))}}
	}
	return nil
}

// isNew reports whether an answer was not reported yet: it can come with its part and again with its message.
func (s *story) isNew(e centurion.Event, p view.Fact, lines []string) bool {
	text := strings.Join(lines, "\n")
	if text == "" || p.Type == string(centurion.PartReasoning) || s.said[e.Session] == text {
		return false
	}
	if s.said == nil {
		s.said = map[string]string{}
	}
	s.said[e.Session] = text
	return true
}

// who names the worker of an event.
func (s *story) who(e centurion.Event) string { return s.name(e.Session, e.Task) }

func (s *story) name(session, task string) string {
	agent := s.board.AgentOf(session, task)
	if t := s.board.Task(task); t != nil {
		return strings.TrimSpace(agent + " " + t.Name())
	}
	return agent
}

// mergeDetail describes the target and size of a merge. The mission's own branch is not named.
func mergeDetail(p view.Fact) string {
	branch := text.When(p.Person, text.Clean(p.Branch))
	return text.Dots(branch, shortCommit(text.Clean(p.Commit)), centurion.Count(cmp.Or(p.Changed, len(p.Files)), "file"))
}
