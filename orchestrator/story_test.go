package orchestrator

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

var update = flag.Bool("update", false, "write the stories anew")

// storyID is an id as it is stored; a story has the kind of it and a number.
var storyID = regexp.MustCompile(`\b(msn|ses|tsk|msg|prt|dlv|evt|ask|rcp|call)_[0-9A-Za-z]{8,}`)

// passing are the keys of what differs from run to run, or is counted elsewhere.
var passing = strings.Fields("id time created updated started ended answered taken elapsed_ms duration_ms usage tokens cost seq system directory raw prev version epoch took_ms date hash")

// story is everything that a mission has stored and told, as a text: one block for each session with what was said in it and what was told of
// it, and one for each task.
func (r *rig) story(m centurion.Mission) string {
	r.t.Helper()
	sessions, err := r.store.Sessions(r.ctx, m.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	slices.SortFunc(sessions, func(a, b centurion.Session) int { return strings.Compare(a.Metadata.Address, b.Metadata.Address) })
	var b strings.Builder
	fmt.Fprintf(&b, "=== mission %s\n", bare(m))
	told := r.events(m.ID)
	for _, s := range sessions {
		_, around, _ := strings.Cut(s.Metadata.System, "\nSurroundings\n")
		fmt.Fprintf(&b, "\n=== session %s of %s: %s%s", s.Metadata.Address, s.Agent, bare(s), storyDate.ReplaceAllString(around, "\n"))
		messages, err := r.store.Messages(r.ctx, s.ID)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range messages {
			fmt.Fprintf(&b, "--- %s %s %s %s\n", m.Role, m.Origin, m.Agent, m.Finish)
			for _, p := range m.Parts {
				b.WriteString(spoken(p) + "\n")
			}
		}
		var lines []string
		for _, e := range told {
			if e.Session == s.ID {
				lines = append(lines, fmt.Sprintf("+ %s %s\n", e.Type, bare(e.Data)))
			}
		}
		slices.SortStableFunc(lines, func(a, b string) int { // what is done side by side is told in any order
			return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1])
		})
		b.WriteString(strings.Join(lines, ""))
	}
	for _, t := range r.tasks(m.ID) {
		fmt.Fprintf(&b, "\n=== task %s\n", bare(t))
	}
	return r.named(b.String())
}

// spoken is a part of a message in a story.
func spoken(p centurion.Part) string {
	switch p.Type {
	case centurion.PartText:
		return centurion.Clip(p.Text, 6000)
	case centurion.PartTool:
		text, failed := p.State.Result()
		return fmt.Sprintf("> %s %s\n%v %s", p.Tool, p.State.Input, failed, text)
	}
	return bare(p)
}

// bare is JSON without what passes.
func bare(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var in any
	if err := json.Unmarshal(b, &in); err != nil {
		return err.Error()
	}
	if b, err = json.Marshal(without(in)); err != nil {
		return err.Error()
	}
	return string(b)
}

func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(k string, x any) bool { return slices.Contains(passing, k) || x == nil || x == "" })
		for k, x := range v {
			v[k] = without(x)
		}
	case []any:
		for i, x := range v {
			v[i] = without(x)
		}
	}
	return v
}

// What git and the real clock give a story.
var (
	storyHash = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	storyTook = regexp.MustCompile(`\b\d+(\.\d+)? ?m?s\b`)
	storyCost = regexp.MustCompile(`\$\d+(\.\d+)?|[\d.]+k? tokens`)
	storyCall = regexp.MustCompile(`\bcall_\d+_(\d+)`)
	storyDate = regexp.MustCompile(`\n- System: .*\n`)
)

// named gives the ids and places in a text names that are the same in each run.
func (r *rig) named(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, r.dir, "PROJECT"), filepath.ToSlash(r.dir), "PROJECT")
	text = storyCall.ReplaceAllString(storyCost.ReplaceAllString(text, "COST"), "call_$1") // requests of several sessions come in any order
	if r.cfg.Worktrees != nil {
		text = storyTook.ReplaceAllString(storyHash.ReplaceAllString(text, "HASH"), "TOOK")
	}
	seen, n := map[string]string{}, map[string]int{}
	return storyID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			n[kind]++
			seen[id] = fmt.Sprintf("%s#%d", kind, n[kind])
		}
		return seen[id]
	})
}

// golden compares a story with the one that is kept.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "story", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(string(b), "\r\n", "\n")
	if got == want {
		return
	}
	is, was := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(is), len(was)) {
		if i >= len(is) || i >= len(was) || is[i] != was[i] {
			t.Fatalf("line %d of the story is not that of %s (-update writes it anew)\n%s\n\nwas\n%s", i+1, path, strings.Join(is[min(i, len(is)):min(i+3, len(is))], "\n"), strings.Join(was[min(i, len(was)):min(i+3, len(was))], "\n"))
		}
	}
}

// A plan, an item after another, a check that fails at first, refused calls, a message of a person, a review, and an end that is refused at first.
func TestStoryOfAMission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(barePlan("- verify: `exists a.txt`", "- [ ] T1 One @worker", "  - files: a.txt", "  - verify: `exists a.txt`", "- [ ] T2 Two @worker", "  - after: T1", "- [ ] T3 Three @worker"), call("list_tasks", args{}), call("get_task_result", args{"task_id": "T1"})),
			do(call("mission_complete", args{"summary": "nothing"}), handTo("wroker", "", "x"), work("T9", "x"), handTo("reviewer", "T1", "x"), goesOn("worker", "x", "w9", nil), call("cancel_task", args{"task_id": "T3"}),
				call("update_todo", args{"items": []args{{"id": "T1", "status": "busy"}}}), call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}, {"id": "T3", "status": "cancelled"}}}),
				call("update_todo", args{"add": []args{{"title": "Four", "after": []string{"T9"}}}}), call("update_todo", args{"content": "# Plan\n"}), call("update_todo", args{"items": []args{{"id": "T3", "status": "cancelled", "note": "no use"}}})),
			do(work("T1", "make a.txt"), work("T2", "make b.txt"), sh("build 1s")),
			do(call("update_todo", args{"content": "# Plan\n- [ ] T2 Two\n"}), work("T1", "again"), goesOn("worker", "x", "T1", nil), call("update_todo", args{"items": []args{{"id": "T1", "status": "done"}}}), call("list_tasks", args{}), onward),
			say("I wait"),
			do(call("get_task_result", args{"task_id": "T1"}), call("get_task_result", args{"task_id": "T8"}), goesOn("planner", "x", "T1", nil), goesOn("worker", "x", "T8", nil), handTo("reviewer", "T2", "judge b.txt")),
			say("I wait"),
			do(call("mission_complete", args{"summary": "too early"}), goesOn("worker", "longer", "T2", args{"item": "T2"})),
			say("I wait"),
			do(handTo("reviewer", "T2", "judge it again")),
			say("I wait"),
			do(call("mission_complete", args{"summary": "all is built"}))),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "make b.txt") {
				return steps(do(writes("b.txt", "b")), say("made b.txt"), do(writes("b.txt", "longer")), say("made it longer"))(q)
			}
			return steps(after(2*time.Second, do(call("read", args{"filePath": "none.txt"}), handTo("worker", "", "x"))), say("made a.txt"), do(call("write", args{"filePath": "a.txt", "content": "a"})), say("made it now"))(q)
		},
		"reviewer": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "again") {
				return steps(do(look), say("PASS: fine"))(q)
			}
			return steps(do(look), say("FAIL: b.txt is short"))(q)
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		r.send(m.ID, "0/", "use tabs", false)
		l := r.live(m.ID)
		golden(t, "mission", r.story(l.settled()))
	})
}

// Work in worktrees: one comes back from its check, the mission's own agent writes, too, and a reviewer finds a fault and is content after it.
func TestStoryInARepository(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(barePlan("- [ ] T1 One @worker", "  - verify: `exists a.txt`", "- [ ] T2 Two @worker")), do(writes("own.txt", "own\n"), work("T1", "make a.txt")), say("I wait"),
			do(work("T2", "make b.txt")), say("I wait"), do(handTo("reviewer", "T2", "judge it")), say("I wait"), do(goesOn("worker", "longer", "T2", args{"item": "T2"})), say("I wait"),
			do(handTo("reviewer", "T2", "judge it again")), say("I wait"), complete()),
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.Last(), "longer"):
				return do(writes("b.txt", "longer\n"))
			case strings.Contains(q.First(), "make b.txt"):
				return steps(do(writes("b.txt", "b\n")), say("made b.txt"), do(writes("b.txt", "longer\n")), say("made it longer"))(q)
			}
			return steps(do(writes("c.txt", "c\n")), say("made a.txt"), do(writes("a.txt", "a\n")), say("made it now"))(q)
		},
		"reviewer": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "again") {
				return steps(do(call("read", args{"filePath": "b.txt"})), say("PASS: fine"))(q)
			}
			return steps(do(call("read", args{"filePath": "b.txt"})), say("FAIL: b.txt is short"))(q)
		},
	})
	golden(t, "repository", r.story(r.mission(centurion.MissionOptions{})))
}

// The assistant hands a part to sub-agents, which have some of its tools and may not start any; a message continues its run.
func TestStoryOfAnAssistant(t *testing.T) {
	root := steps(do(sub("read\n  it", args{"tools": []string{"read", "ls"}}), sub("x", args{"tools": []string{"fly"}}), sub("x", args{"model": "none/none"})), do(sub("fail", nil)), say("read"), do(writes("a.txt", "a")), say("written"))
	child := func(q scripted.Request) scripted.Answer {
		if strings.Contains(q.First(), "fail") {
			return scripted.Answer{Error: &scripted.Error{Status: 400, Message: "no"}}
		}
		return steps(do(call("ls", args{}), call("write", args{"filePath": "b.txt", "content": "b"})), say("there is nothing"))(q)
	}
	bubble(t, family(root, child), func(r *rig) {
		model := r.host.cfg().Model
		r.cfg.Model = func(ref string) (Model, error) {
			if ref == "none/none" {
				return Model{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "there is no model none/none", Hint: "take another"}
			}
			return model(ref)
		}
		r.restart()
		m := r.mission(assistant())
		r.send(m.ID, "0/", "now write", false)
		golden(t, "assistant", r.story(r.live(m.ID).wait()))
	})
}
