package verify

import (
	"strings"
	"testing"

	"centurion"
)

// A verdict for each set of runs: only red by itself, green, and red by itself again is a proof.
func TestJudge(t *testing.T) {
	t.Parallel()
	green := centurion.CheckRun{Passed: true}
	red := centurion.CheckRun{ExitCode: 1}
	broken := centurion.CheckRun{ExitCode: 1, Broken: "the build failed"}
	none := centurion.CheckRun{ExitCode: 5, Empty: "collected 0 items"}
	ran0 := centurion.CheckRun{Passed: true, Empty: "no tests to run"}
	reds := func(r centurion.CheckRun) []attempt { return []attempt{{run: result{CheckRun: r}}} }
	one := func(r centurion.CheckRun) []centurion.CheckRun { return []centurion.CheckRun{r} }
	for name, c := range map[string]struct {
		f    facts
		want centurion.Proof
		why  string
	}{
		"proven":                   {facts{changed: true, work: true, reds: reds(red), green: one(green), again: &red}, centurion.ProofProven, ""},
		"weakened":                 {facts{changed: true, work: true, reds: reds(red), green: one(green), again: &red, weakened: []string{"a_test.go was removed"}}, centurion.ProofUnproven, "checks were weakened: a_test.go was removed"},
		"weakened, regression":     {facts{changed: true, regression: true, reds: reds(green), green: one(green), weakened: []string{"x"}}, centurion.ProofUnproven, "checks were weakened"},
		"regression of nothing":    {facts{changed: true, regression: true, reds: reds(ran0), green: one(green)}, centurion.ProofUnproven, "before the work it ran no test: no tests to run"},
		"green ran nothing":        {facts{changed: true, work: true, reds: reds(red), green: one(ran0), again: &red}, centurion.ProofUnproven, "it ran no test"},
		"regression of no change":  {facts{regression: true, green: one(green)}, centurion.ProofUnproven, "nothing was changed"},
		"regression, green now":    {facts{changed: true, regression: true, reds: reds(red), green: one(green)}, centurion.ProofUnproven, "it was red before the work"},
		"regression, not run":      {facts{changed: true, regression: true, green: one(green)}, centurion.ProofUnproven, "it was red before the work"},
		"regression":               {facts{changed: true, regression: true, reds: reds(green), green: one(green)}, centurion.ProofRegression, ""},
		"regression, flaky":        {facts{changed: true, regression: true, reds: reds(green), green: []centurion.CheckRun{red, green}}, centurion.ProofFlaky, "red and then green"},
		"regression without tests": {facts{changed: true, regression: true, reds: reds(green), green: one(ran0)}, centurion.ProofUnproven, "it ran no test"},
		"no test again":            {facts{changed: true, work: true, reds: reds(red), green: one(green), again: &none}, centurion.ProofFlaky, "it ended otherwise: collected 0 items"},
		"nothing changed":          {facts{green: one(green)}, centurion.ProofUnproven, "nothing was changed"},
		"only tests":               {facts{changed: true, green: one(green)}, centurion.ProofUnproven, "only tests were changed"},
		"green without the work":   {facts{changed: true, work: true, reds: reds(green), green: one(green)}, centurion.ProofUnproven, "the check is green without the work too"},
		"a broken build":           {facts{changed: true, work: true, reds: reds(broken), green: one(green), again: &broken}, centurion.ProofUnproven, "the build breaks"},
		"no test without it":       {facts{changed: true, work: true, reds: reds(none), green: one(green), again: &none}, centurion.ProofUnproven, "it runs no test"},
		"green again":              {facts{changed: true, work: true, reds: reds(red), green: one(green), again: &green}, centurion.ProofFlaky, "green when it was run again"},
		"broken again":             {facts{changed: true, work: true, reds: reds(red), green: one(green), again: &broken}, centurion.ProofFlaky, "it ended otherwise: the build failed"},
		"not run again":            {facts{changed: true, work: true, reds: reds(red), green: one(green)}, centurion.ProofFlaky, ""},
		"green the second time":    {facts{changed: true, work: true, reds: reds(red), green: []centurion.CheckRun{red, green}, again: &red}, centurion.ProofFlaky, "red and then green"},
	} {
		got, why := judge(c.f)
		if got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s, %q", name, got, why)
		}
	}
}

// What the command names is a check, whatever it is called: it stays when the work is taken out.
func TestNamedScriptStays(t *testing.T) {
	t.Parallel()
	before := files{"a.txt": "1\n"}
	after := files{"a.txt": "2\n", "bin/look.sh": "grep -q 2 a.txt\n"}
	m := newMemory(map[string]files{"before": before, "after": after})
	c := Checker{Runner: scripted(m, func(f files, _ int) (int, string) {
		switch {
		case f["bin/look.sh"] == "":
			return 127, "no such file"
		case strings.Contains(f["a.txt"], "2"):
			return 0, "ok"
		}
		return 1, "a.txt is wrong"
	})}
	r, err := c.Prove(t.Context(), m, Work{Command: "sh bin/look.sh", Before: "before", After: "after"}, nil)
	if err != nil || r.Proof != centurion.ProofProven || len(r.Runs) != 3 || r.Tree != "after" || strings.Contains(r.Removed, "look.sh") {
		t.Errorf("%s, %s, tree %q, removed %s, %v", r.Proof, r.Why, r.Tree, r.Removed, err)
	}
}

// A receipt says when the work's own tests pass without it or do not run: their author can fix that. It does not say so where no test can help.
func TestTestsMissWork(t *testing.T) {
	t.Parallel()
	green, red := centurion.CheckRun{Passed: true}, centurion.CheckRun{ExitCode: 1}
	broken, ran0 := centurion.CheckRun{ExitCode: 1, Broken: "the build failed"}, centurion.CheckRun{Passed: true, Empty: "no tests to run"}
	with := func(last centurion.CheckRun, reds ...attempt) facts {
		return facts{changed: true, work: true, tests: true, green: []centurion.CheckRun{last}, reds: reds}
	}
	of := func(h how, r result) attempt { return attempt{how: h, run: r} }
	plain := func(r centurion.CheckRun) result { return result{CheckRun: r} }
	base := with(green, of(allOut, plain(green)))
	but := func(change func(*facts)) facts {
		f := base
		change(&f)
		return f
	}
	for name, c := range map[string]struct {
		f    facts
		want bool
	}{
		"green without the work":         {base, true},
		"green when it does nothing":     {with(green, of(allOut, plain(broken)), of(stubbed, plain(green))), true},
		"only a formatter fails":         {with(green, of(allOut, result{CheckRun: broken, green: "go test ./...", fell: "gofmt"})), true},
		"no test is run":                 {with(ran0, of(allOut, plain(broken))), true},
		"it dies":                        {with(green, of(allOut, plain(red))), false},
		"the build breaks":               {with(green, of(allOut, plain(broken))), false},
		"green without one piece":        {with(green, of(allOut, plain(broken)), of(onePiece, plain(green))), false},
		"no tests before":                {with(green, of(allOut, plain(ran0))), false},
		"it can only pass":               {but(func(f *facts) { f.trivial = true }), false},
		"no more is asked for":           {but(func(f *facts) { f.regression = true }), false},
		"no test of the work's own":      {but(func(f *facts) { f.tests = false }), false},
		"nothing but tests":              {but(func(f *facts) { f.work = false }), false},
		"weakened, which is another say": {but(func(f *facts) { f.weakened = []string{"a_test.go was removed"} }), false},
	} {
		if got := c.f.testsMissWork(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
