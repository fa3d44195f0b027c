package plan

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/workspace/todo"
)

// What comes before an item: also at second hand, and all below a group; nothing twice, and no circle without end.
func TestBefore(t *testing.T) {
	t.Parallel()
	v := parsed(t, "# P\n- [ ] T1 Group\n  - [ ] T2 Sub\n    - after: T3\n- [ ] T3 Three\n- [ ] T4 Four\n  - after: T1, T3, T9\n- [ ] T5 Five\n  - after: T4, T3\n- [ ] T6 Six\n  - after: T7\n- [ ] T7 Seven\n  - after: T6, T3\n")
	for id, want := range map[string]string{"T4": "T1 T2 T3", "T5": "T1 T2 T3 T4", "T6": "T3 T6 T7", "T3": "", "T9": "", "": ""} {
		got := v.before(id)
		var ids []string
		for id := range got {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if strings.Join(ids, " ") != want || (got == nil) != (want == "") {
			t.Errorf("before %q: %v, want %s", id, ids, want)
		}
	}
	for id, want := range map[string]string{"T5": "T4 T3 T1 T9", "T6": "T7 T3", "T3": ""} {
		it, _ := v.Doc.Item(id)
		if got := strings.Join(v.Nearest(it), " "); got != want {
			t.Errorf("nearest before %s: %s, want %s", id, got, want)
		}
	}
	if got := (View{}).before("T1"); !got["T1"] || len(got) != 1 || (View{}).IsReview("T1") {
		t.Errorf("without a plan: %v", got)
	}
}

// A reviewer does not work on items: it is refused one that is not done, unless the item is or may be a review.
func TestHasReview(t *testing.T) {
	t.Parallel()
	v := parsed(t, "# P\n- [x] T1 One\n- [ ] T2 Look\n  - after: T1\n- [ ] T3 Look @reviewer\n- [ ] T4 Four\n- [~] T5 Look\n  - after: T1\n- [ ] T6 Look @Reviewer\n")
	for name, c := range map[string]struct {
		item  string
		tasks []centurion.Task
		ok    bool
	}{
		"none":                     {"", nil, true},
		"a review":                 {"T3", nil, true},
		"written otherwise":        {"T6", nil, true},
		"what may be one":          {"T2", nil, true},
		"a reviewer had it":        {"T2", []centurion.Task{{Item: "T2", Agent: "reviewer"}}, true},
		"another's item":           {"T2", []centurion.Task{{Item: "T4", Agent: "worker"}}, true},
		"a worker had it":          {"T2", []centurion.Task{{Item: "T2", Agent: "worker"}}, false},
		"it runs":                  {"T5", nil, false},
		"work that is not done":    {"T4", nil, false},
		"work, had by a reviewer":  {"T4", []centurion.Task{{Item: "T4", Agent: "reviewer"}}, false},
		"done, as any other state": {"T1", nil, false},
	} {
		err := v.HasReview(c.item, c.tasks)
		if (err == nil) != c.ok || err != nil && (centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(centurion.HintOf(err), `{"agent":"worker","item":"`+c.item+`"`)) {
			t.Errorf("%s: %v, %s", name, err, centurion.HintOf(err))
		}
	}
}

// The plan's review that a call may take is one that nobody has begun; what is over has no task any more.
func TestFreeReview(t *testing.T) {
	t.Parallel()
	v := parsed(t, "# P\n- [x] T1 One\n- [ ] T2 Look @reviewer\n  - [ ] T3 Sub\n- [ ] T4 Look @reviewer\n  - after: T1\n- [ ] T5 Look @reviewer\n")
	if got := v.Planned("T1"); !slices.Equal(got, []string{"T4", "T5"}) {
		t.Errorf("planned: %v", got)
	}
	at := func(item string, s centurion.TaskStatus) centurion.Task { return centurion.Task{Item: item, Status: s} }
	for name, c := range map[string]struct {
		tasks []centurion.Task
		want  string
	}{
		"none runs":  {nil, "T4"},
		"one runs":   {[]centurion.Task{at("T4", centurion.TaskRunning)}, "T5"},
		"one failed": {[]centurion.Task{at("T4", centurion.TaskFailed)}, "T4"},
		"both wait":  {[]centurion.Task{at("T4", centurion.TaskQueued), at("T5", centurion.TaskWaiting)}, "T1"},
	} {
		if got := v.FreeReview("T1", c.tasks); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Only an open item that exists is handed out; the error says what else there is.
func TestItemOpen(t *testing.T) {
	t.Parallel()
	v := parsed(t, "# P\n- [ ] T1 Group\n  - [ ] T2 Sub\n- [x] T3 Three\n- [-] T4 Four\n- [!] T5 Five\n- [~] T6 Six\n- [x] T7 Group\n  - [x] T8 Sub\n")
	for id, c := range map[string]struct {
		kind      centurion.Kind
		msg, hint string
	}{
		"": {}, "T2": {}, "T5": {}, "T6": {},
		"T1":   {centurion.KindConflict, "a group; its sub-items", "set it to open"},
		"T3":   {centurion.KindConflict, "item T3 is done", `the reviewer may take it as it is: {"agent":"reviewer","item":"T3"`},
		"T4":   {centurion.KindConflict, "item T4 is cancelled", "set it to open"},
		"T7":   {centurion.KindConflict, "item T7 is a group", "set it to open"},
		"T99x": {centurion.KindNotFound, `no item "T99x"`, ""},
	} {
		err := v.ItemOpen(id)
		if centurion.KindOf(err) != c.kind || err != nil && (!strings.Contains(err.Error(), c.msg) || !strings.Contains(centurion.HintOf(err), c.hint)) {
			t.Errorf("%s: %v, %s", id, err, centurion.HintOf(err))
		}
		if id != "T3" && strings.Contains(centurion.HintOf(err), "reviewer may take") {
			t.Errorf("%s: %s", id, centurion.HintOf(err))
		}
	}
	if err := (View{}).ItemOpen("T1"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("without a plan: %v", err)
	}
	for id, want := range map[string]bool{"T3": true, "T8": true, "T7": false, "T2": false, "T4": false, "": false} {
		if got := v.IsDone(id); got != want {
			t.Errorf("%s is done: %v", id, got)
		}
	}
}

// A changed plan is remarked on where its items may disturb each other or prove nothing, and not where it was so before.
func TestRemarksOfAPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   func(View) []string
		text string
		want string
	}{
		"a common file":            {View.shared, "- [ ] T1 One\n  - files: a.go\n- [ ] T2 Two\n  - files: a.go\n", "T1 and T2 share a.go: they run one after the other."},
		"one after the other":      {View.shared, "- [ ] T1 One\n  - files: a.go\n- [ ] T2 Two\n  - files: a.go\n  - after: T1\n", ""},
		"one before the other":     {View.shared, "- [ ] T1 One\n  - files: a.go\n  - after: T2\n- [ ] T2 Two\n  - files: a.go\n", ""},
		"one is done":              {View.shared, "- [x] T1 One\n  - files: a.go\n- [ ] T2 Two\n  - files: a.go\n", ""},
		"always green":             {View.alwaysGreen, "- [ ] T1 One\n  - verify: `true`\n", "T1's check `true` can only pass"},
		"always green, of all":     {View.alwaysGreen, "- verify: `true`\n- [ ] T1 One\n", "The mission's check `true` can only pass"},
		"always green, of reviews": {View.alwaysGreen, "- [ ] T1 One @reviewer\n  - verify: `true`\n", ""},
		"cancelled":                {View.cancelled, "- [-] T1 One\n", "T1 is cancelled"},
		"a cancelled review":       {View.cancelled, "- [-] T1 One @reviewer\n", ""},
		"a cancelled group":        {View.cancelled, "- [-] T1 One\n  - [x] T2 Two\n", ""},
		"files":                    {View.fileless, "- [ ] T1 One\n- [ ] T2 Two\n  - files: a.go\n", "No files are named for T1: "},
		"files of one alone":       {View.fileless, "- [ ] T1 One\n", ""},
		"files of one after":       {View.fileless, "- [ ] T1 One\n- [ ] T2 Two\n  - after: T1\n", ""},
		"files of reviews":         {View.fileless, "- [ ] T1 One\n  - files: a.go\n- [ ] T2 Two @reviewer\n", ""},
		"not to be reviewed":       {View.unreviewable, "- [ ] T1 One\n", "T1 has no verify command"},
		"to be reviewed":           {View.unreviewable, "- [ ] T1 One\n- [ ] T2 Two @reviewer\n  - after: T1\n", ""},
		"with a check":             {View.unreviewable, "- [ ] T1 One\n  - verify: `make`\n", ""},
	} {
		got := strings.Join(c.of(parsed(t, "# P\n"+c.text)), "|")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is told of a plan that a model has changed: every item as it stands, what it waits for and what has to pass.
func TestOutline(t *testing.T) {
	t.Parallel()
	v := parsed(t, "# P\n- [ ] T1 Group\n  - [x] T2 Sub @worker\n- [ ] T3 Three\n  - verify: `make`\n  - after: T4\n- [~] T4 Four\n  - after: T5\n- [-] T5 Five\n- [!] T6 Look @Reviewer\n  - after: T4\n")
	const want = "5 items: 1 open, 1 running, 1 done, 1 cancelled, 1 blocked.\n[x] T1 Group\n[x] T2 Sub @worker (no verify command: a review has to pass)\n" +
		"[ ] T3 Three (after T4)\n[~] T4 Four (no verify command: a review has to pass; if it is itself one, name @reviewer)\n" +
		"[-] T5 Five (no verify command: a review has to pass)\n[!] T6 Look @Reviewer (a review of T4 and what came before)"
	if got := Outline(v.Doc); got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
}

// A person is told as opened again only what was over; what ran is not.
func TestOpenedAgain(t *testing.T) {
	t.Parallel()
	for was, want := range map[todo.Mark]bool{todo.Done: true, todo.Cancelled: true, todo.Blocked: true, todo.Running: false, todo.Open: false} {
		if got := opened(todo.Item{Mark: was}, todo.Item{Mark: todo.Open}); got != want || opened(todo.Item{Mark: was}, todo.Item{Mark: todo.Running}) {
			t.Errorf("%v: %v", was, got)
		}
	}
}
