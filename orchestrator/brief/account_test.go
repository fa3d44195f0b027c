package brief

import (
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
	"centurion/store/storetest"
)

// A failed check is told with its command, its end and what it printed; output that the session has seen is not told again.
func TestAccount(t *testing.T) {
	t.Parallel()
	red := centurion.Receipt{ID: "b", Task: "tsk_1", Command: "make", ExitCode: 2, Millis: 7, Output: " 3 of 5 failed\n"}
	with := func(change func(*centurion.Receipt)) centurion.Receipt {
		r := red
		change(&r)
		return r
	}
	const whole, again = "`make` ended with exit code 2 after 7 ms.\n<output>\n3 of 5 failed\n</output>", "`make` ended with exit code 2 after 7 ms. It printed the same as the last time, but for numbers."
	for name, c := range map[string]struct {
		now    centurion.Receipt
		before []centurion.Receipt
		hidden bool // the session does not have that output any more
		want   string
	}{
		"at first":            {red, nil, false, whole},
		"silent":              {with(func(r *centurion.Receipt) { r.Output = " \n" }), nil, false, "`make` ended with exit code 2 after 7 ms. It printed nothing."},
		"with an error":       {with(func(r *centurion.Receipt) { r.Error, r.Output = "it took too long", "" }), nil, false, "`make` ended with exit code 2 after 7 ms. it took too long. It printed nothing."},
		"a pipe":              {with(func(r *centurion.Receipt) { r.Command, r.Output = "make | tee", "" }), nil, false, "`make | tee` ended with exit code 2 after 7 ms. A pipe fails if any of its commands does. It printed nothing."},
		"the same":            {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Output = "a", "4 of 5 failed" })}, false, again},
		"not seen":            {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID = "a" })}, true, whole},
		"itself":              {red, []centurion.Receipt{red}, false, whole},
		"of another task":     {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Task = "a", "tsk_2" })}, false, whole},
		"of another command":  {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Command = "a", "true" })}, false, whole},
		"of the end":          {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Final = "a", true })}, false, whole},
		"passed meanwhile":    {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID = "a" }), with(func(r *centurion.Receipt) { r.ID, r.Passed = "c", true })}, false, whole},
		"something else":      {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Output = "a", "3 of 5 passed" })}, false, whole},
		"for another reason":  {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID, r.Error = "a", "it took too long" })}, false, whole},
		"the one before last": {red, []centurion.Receipt{with(func(r *centurion.Receipt) { r.ID = "a" }), with(func(r *centurion.Receipt) { r.ID, r.Output = "c", "else" })}, false, whole},
	} {
		if got := AccountAgain(c.now, c.before, func(string) bool { return !c.hidden }); got != c.want {
			t.Errorf("%s:\n%s; want\n%s", name, got, c.want)
		}
	}
}

// What a passed check, a hollow and a testless one are worth is told whole.
func TestWorth(t *testing.T) {
	t.Parallel()
	for grade, want := range map[centurion.Proof]string{"": "`make` passed.", centurion.ProofProven: "`make` passed.", centurion.ProofUnproven: "`make` passed, but is unproven (why): a review has to pass as well."} {
		if got := Passed(centurion.Receipt{Command: "make", Proof: grade, Why: "why"}); got != want {
			t.Errorf("%q: %s", grade, got)
		}
	}
	const begin = "Your acceptance command passes, but it proves nothing: why.\nThe host ran: make"
	const right = "\nWhat would be right: a test that this command runs, that fails without your work and passes with it. It asserts what the work does, its results and its errors, not only that it can be called. Try it yourself before you end: take out what the work does, run the command and see the test fail, then put it back. Change your tests so, then end your turn; the host runs it again. If no test can tell, say why and end your turn: this is said once, your work is merged then, and a review decides."
	r := centurion.Receipt{Command: "make", Why: "why"}
	if got := Hollow(r); got != begin+right {
		t.Errorf("hollow: %s", got)
	}
	r.Removed = "+ a\n"
	if got, want := Hollow(r), begin+"\nTo see whether it can fail, the host ran it with this taken out (the + lines are what was missing then, the - lines what stood there instead):\n<removed>\n+ a\n</removed>"+right; got != want {
		t.Errorf("hollow: %s", got)
	}
	if got, want := Testless(r), begin+"\nWrite the test that this command is to run, under the name that it asks for, then end your turn; the host runs it again. If the command itself is wrong, say so and end your turn without a change: your work is merged then, and a review decides."; got != want {
		t.Errorf("testless: %s", got)
	}
}

// Which checks a review replaced is told to its delegator, with what became of them.
func TestExchangeLines(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	task := centurion.Task{Mission: "msn_1", Exchanged: []centurion.Exchange{{From: []string{"a"}, To: []string{"b", "c"}}, {Item: "T1", To: []string{"b", "c", "d", "e"}}}}
	var b strings.Builder
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		var all error
		for i, r := range []centurion.Receipt{{Command: "b", Passed: true, Proof: centurion.ProofProven}, {Command: "b"}, {Command: "c", Passed: true, Proof: centurion.ProofUnproven, Why: "why"}, {Command: "d", Passed: true, Proof: centurion.ProofProven}, {Command: "e", Passed: true, Task: "tsk_9"}} {
			r.ID, r.Mission, r.Item = string(rune('a'+i)), "msn_1", "T1"
			all = errors.Join(all, tx.PutReceipt(&r))
		}
		b.Reset()
		return errors.Join(all, exchangeLines(tx, &b, task))
	})
	const want = "It changed the mission's own checks from `a` to `b`, `c`; they run at the end.\n" +
		"It changed the check of T1 from nothing to `b`, `c`, `d`, `e`; `b` fails on the work; `c` passed: unproven, why; `d` passed: proven; `e` counts when it has run against the work.\n"
	if b.String() != want || err != nil {
		t.Errorf("%q, %v", b.String(), err)
	}
}
