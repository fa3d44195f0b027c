package tui

import (
	"cmp"
	"fmt"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

func (s *story) check(e centurion.Event, p view.Fact) []fact {
	f := fact{who: cmp.Or(s.who(e), text.Clean(p.Item)), agent: s.board.AgentOf(e.Session, e.Task), detail: text.Clean(p.Command)}
	switch e.Type {
	case centurion.EventVerifyPassed:
		f.mark, f.tone, f.text = "✓", good, text.If(p.Final, "final check passed", "check passed")
		f.detail = text.Dots(f.detail, text.When(p.DurationMS > 0, text.Took(p.Duration())))
		s.worth(&f, p)
	case centurion.EventVerifyFailed:
		if p.Early {
			return s.notYet(f, p)
		}
		f.mark, f.tone, f.text = "✗", bad, text.If(p.Final, "final check failed", "check failed")
		f.detail = text.Dots(f.detail, fmt.Sprintf("exit %d", p.ExitCode))
		f.body = tail(text.CleanLines(cmp.Or(p.Output, p.Error.Message)), maxTail)
	case centurion.EventMergeDone:
		f.mark, f.tone, f.text, f.detail = "✓", good, text.If(p.Person, "merged", "integrated"), mergeDetail(p)
	case centurion.EventMergeConflict:
		f.mark, f.tone, f.text, f.detail = "↻", warn, "conflict, goes back", strings.Join(text.Each(p.Files, text.Clean), " ")
		if p.Person {
			f.mark, f.tone, f.text = "✗", bad, "not merged: your own work stands in the way"
		}
	case centurion.EventMergeUndone:
		f.mark, f.tone, f.text, f.detail = "↶", warn, "reverted", mergeDetail(p)
	default:
		return nil
	}
	return []fact{f}
}

// worth describes what a passed check proves. A proven check failed when the work was reverted.
func (s *story) worth(f *fact, p view.Fact) {
	switch p.Proof {
	case centurion.ProofProven:
		f.text = "proven: fails without the change, passes with it"
		if p.FailureLine != "" {
			f.body = []string{"without it: " + text.Clean(p.FailureLine)}
		}
	case centurion.ProofRegression:
		f.text = "check passed, before and after"
	case centurion.ProofUnproven, centurion.ProofFlaky:
		f.mark, f.tone, f.text = "!", warn, string(p.Proof)+": passed, but unverified"
		f.detail = text.Dots(f.detail, text.Clean(p.Why))
	}
	for _, w := range p.Weakened {
		if f.mark, f.tone = "!", warn; !strings.Contains(p.Why, w) {
			f.body = append(f.body, "a check is weaker now: "+text.Clean(w))
		}
	}
}

// notYet reports once that the mission's branch has not passed a check of the mission yet.
func (s *story) notYet(f fact, p view.Fact) []fact {
	if s.early[p.Command] {
		return nil
	}
	if s.early == nil {
		s.early = map[string]bool{}
	}
	s.early[p.Command] = true
	f.mark, f.tone, f.text = "·", dim, "mission check still fails (other items are not merged yet)"
	return []fact{f}
}
