package brief

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/verify"
)

// Account tells a model of a failed check.
func Account(r centurion.Receipt) string {
	s := fmt.Sprintf("`%s` ended with exit code %d after %d ms.", r.Command, r.ExitCode, r.Millis)
	if r.Error != "" {
		s += " " + r.Error + "."
	}
	if strings.Contains(r.Command, " | ") {
		s += " A pipe fails if any of its commands does."
	}
	if out := strings.TrimSpace(r.Output); out != "" {
		return s + "\n<output>\n" + out + "\n</output>"
	}
	return s + " It printed nothing."
}

// AccountAgain is [Account] for a session that knows an earlier failure of the same command: it omits output that the session already
// has. Differences only in numbers, such as times, are ignored.
func AccountAgain(r centurion.Receipt, before []centurion.Receipt, shown func(output string) bool) string {
	for _, b := range slices.Backward(before) {
		if b.ID == r.ID || b.Task != r.Task || b.Command != r.Command || b.Final {
			continue
		}
		if b.Passed || strings.TrimSpace(r.Output) == "" || b.Error != r.Error || withoutNumbers(b.Output) != withoutNumbers(r.Output) {
			break
		}
		if shown(strings.TrimSpace(b.Output)) {
			r.Output = ""
			return strings.TrimSuffix(Account(r), " It printed nothing.") + " It printed the same as the last time, but for numbers."
		}
	}
	return Account(r)
}

func withoutNumbers(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, strings.TrimSpace(s))
}

// Passed says of a green check what it is worth.
func Passed(r centurion.Receipt) string {
	text := fmt.Sprintf("`%s` passed", r.Command)
	if r.Proof == "" || r.Proof.Solid() {
		return text + "."
	}
	return fmt.Sprintf("%s, but is %s (%s): a review has to pass as well.", text, r.Proof, r.Why)
}

const (
	// removedTold is how much a worker is shown of what was taken out of its work, in bytes. It knows its work; this says which part.
	removedTold = 3000
	// stayedTold is how much it is shown of what its command printed then, in bytes from both ends: which tests passed.
	stayedTold = 3000
)

// Hollow tells a worker that its tests pass without its work, what was taken out, and what would be right.
func Hollow(r centurion.Receipt) string {
	var b strings.Builder
	b.WriteString("Your acceptance command passes, but it proves nothing: " + r.Why + ".\nThe host ran: " + r.Command)
	if removed := strings.TrimRight(r.Removed, "\n"); removed != "" {
		b.WriteString("\nTo see whether it can fail, the host ran it with this taken out (the + lines are what was missing then, the - lines what stood there instead):\n<removed>\n" + centurion.Clip(removed, removedTold) + "\n</removed>")
	}
	if out := verify.WithoutWork(r, stayedTold); out != "" {
		b.WriteString("\nThe command printed this without your work; every test that passed here cannot see your work:\n<output>\n" + out + "\n</output>")
	}
	b.WriteString("\nWhat would be right: a test that this command runs, that fails without your work and passes with it. It asserts what the work does, " +
		"its results and its errors, not only that it can be called. Try it yourself before you end: take out what the work does, run the command and see the test fail, then put it back. " +
		"Change your tests so, then end your turn; the host runs it again. " +
		"If no test can tell, say why and end your turn: this is said once, your work is merged then, and a review decides.")
	return b.String()
}

// Testless tells a worker that its check ran no test. One that ends its turn again without a change has no better answer.
func Testless(r centurion.Receipt) string {
	return "Your acceptance command passes, but it proves nothing: " + r.Why + ".\nThe host ran: " + r.Command +
		"\nWrite the test that this command is to run, under the name that it asks for, then end your turn; the host runs it again. " +
		"If the command itself is wrong, say so and end your turn without a change: your work is merged then, and a review decides."
}
