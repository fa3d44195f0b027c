package permission

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the scripts are found to do")

// whole is all that the analysis finds out about a script, and what it is decided to be without rules and where all is allowed but a few.
func whole(script string) string {
	s := ParseShell(script, testDir, testHome)
	facts := []string{s.Why, strings.Join(s.Always, ", "), strings.Join(s.Outside, ", ")}
	for fact, holds := range map[string]bool{"network": s.Network && !s.Push, "network push": s.Network && s.Push, "push": s.Push && !s.Network} {
		if holds {
			facts = append(facts, fact)
		}
	}
	confined := Defaults(true)
	free := DecideShell([]Level{{Name: "default", Rules: confined}}, script, testDir, testHome, true).Action
	held := DecideShell(allowAllBut(forbidden...), script, testDir, testHome, true).Action
	return fmt.Sprintf("%s %s\t%s", free, held, strings.Join(facts, " | "))
}

// S2: what is known of each program, option and file that a list here names. Each line of testdata/programs.txt is a script, what a
// confined child may do with it, what it is decided to be where all but rm, curl and git push is allowed, and what was found. After a change
// on purpose, run this test with -update and look at the difference.
func TestPrograms(t *testing.T) {
	const file = "testdata/programs.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		script, want, _ := strings.Cut(line, "\t")
		got := whole(script)
		if got != want && !*update {
			t.Errorf("%s\n\tgot  %s\n\twant %s", script, got, want)
		}
		out.WriteString(script + "\t" + got + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
