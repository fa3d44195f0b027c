package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/plan"
	"centurion/provider/scripted"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Several changes of an item come to one; marks, notes, checks of items at work and lines that are not read as items are no changes.
func TestPlanEdits(t *testing.T) {
	const four = "- [ ] T1 One\n  - verify: `a`\n- [~] T2 Two\n  - verify: `b`\n- [ ] T4 Four\n"
	replace := func(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
	for name, tt := range map[string]struct {
		texts []string
		want  string // after the lead
	}{
		"one goes, one comes":  {[]string{four, replace(four, "T4 Four", "Five"), replace(four, "T4 Four", "T5 Five")}, "removed T4 (Four); added T5 (Five)."},
		"taken out and back":   {[]string{four, replace(four, "- [ ] T4 Four\n", ""), four}, ""},
		"came and went":        {[]string{four, four + "- [ ] T5 Five\n", four}, ""},
		"came with two titles": {[]string{four, four + "- [ ] T5 Fife\n", four + "- [ ] T5 Five\n"}, "added T5 (Five)."},
		"title": {[]string{four, replace(four, "One", "Uno"), replace(four, "One", "Eins", "Two", "Zwei")},
			"T1 is now \"Eins\" (it was \"One\"), T2 is now \"Zwei\" (it was \"Two\", as its agent knows it)."},
		"check":             {[]string{four, replace(four, "`a`", "`c`", "`b`", "`c`")}, "T1 (One) is checked by `c`."},
		"at work":           {[]string{four, replace(four, "Two", "Zwei", "`b`", "`c`")}, "T2 is now \"Zwei\" (it was \"Two\", as its agent knows it)."},
		"no check":          {[]string{four, replace(four, "  - verify: `a`\n", "")}, "T1 (One) has no verify command any more."},
		"title and check":   {[]string{four, replace(four, "One", "Uno", "`a`", "`c`")}, "T1 is now \"Uno\" (it was \"One\"), T1 (Uno) is checked by `c`."},
		"a mark and a note": {[]string{four, replace(four, "[ ] T4 Four\n", "[-] T4 Four\n  - note: no\n")}, ""},
		"a slip":            {[]string{four, replace(four, "- [ ] T4", "* T4"), four}, ""},
	} {
		var edits plan.PlanEdits
		var docs []*todo.Doc
		for _, s := range tt.texts {
			d, err := todo.Parse([]byte(s))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		for i, d := range docs[1:] {
			edits = edits.With(workspace.Foreign{From: docs[i], To: d}, plan.View{Doc: docs[len(docs)-1]})
		}
		want := tt.want
		if want != "" {
			want = "The person has changed the plan: " + want
		}
		equal(t, name, edits.Words(), want)
	}
}

// What a person changes in the plan the Commander hears when it next reads, at once and without being woken, and nothing of its own changes
// or the host's marks.
func TestCommanderHearsOfThePersonsEdits(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T3 Three", "  - after: T1", "- [ ] T4 Four", "  - after: T1")), do(work("T1", "first")), say("I wait"),
			do(call("ask_user", args{"question": "And now?"})), say("well")),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("one")) },
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		before := len(r.requests("commander"))
		now := r.read(todoMD)
		r.write(todoMD, strings.Replace(now, "T4 Four", "T5 Write the news", 1))
		time.Sleep(10 * time.Second)
		has(t, r.read(todoMD), "T5 Write the news")
		r.write(todoMD, strings.Replace(r.read(todoMD), "T3 Three", "T3 Third", 1))
		time.Sleep(10 * time.Second)
		equal(t, "requests of the Commander, which was not woken", len(r.requests("commander")), before)
		<-done
		g.Wait()
		equal(t, "notes to the person, who knows it", strings.Count(strings.Join(r.notes(m.ID), "\n"), "The person has"), 0)
		var told []string
		for _, msg := range r.requests("commander")[len(r.requests("commander"))-1].Messages() {
			for line := range strings.Lines(msg.Text) {
				if strings.Contains(line, "The person has changed the plan") {
					told = append(told, strings.TrimSpace(line))
				}
			}
		}
		equal(t, "what the Commander was told", strings.Join(told, "\n"),
			"The person has changed the plan: removed T4 (Four); added T5 (Write the news); T3 is now \"Third\" (it was \"Three\").")
	})
}
