package permission

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// S1, S2: all that is found out about a script in a project with links, and what is told of each decision about it: without a rule of the
// person's, where all is allowed but a few commands, and by rules of every kind. Each line of testdata/told.txt that begins with > is a
// script, in which ⏎ stands for a line feed and ⇥ for a tab. After a change on purpose, run this test with -update and look at the difference.
func TestTold(t *testing.T) {
	const file = "testdata/told.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		if script, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> "); ok {
			out.WriteString(line + told(strings.NewReplacer("⏎", "\n", "⇥", "\t").Replace(script)))
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(b), out.String()); d != "" && !*update {
		t.Error(d)
	}
}

func told(script string) string {
	p := linked()
	follow := p.Follow
	p.Follow = func(name string, glob, deep bool) ([]string, bool) {
		targets, ok := follow(name, glob, deep)
		slices.Sort(targets) // it goes through a map
		return targets, ok
	}
	mixed := person(Rule{"*", "*", Allow}, Rule{"bash", "rm *", Ask}, Rule{"bash", "make install", Deny}, Rule{"edit", "src/*", Deny}, Rule{"read", "src/*", Ask},
		Rule{"external_directory", "/tmp/*", Allow}, Rule{Network, "*.example", Allow})
	var out strings.Builder
	said := ""
	for _, decided := range []Decision{p.Decide(person(), script, false), p.Decide(allowAllBut(forbidden...), script, true), p.Decide(mixed, script, true)} {
		if line := fmt.Sprintf("%s: %q\n", decided.Action, decided.Reason); line != said {
			out.WriteString(line)
			said = line
		} else {
			out.WriteString("the same\n")
		}
	}
	s, a := p.Parse(script), analyze(script, p)
	for _, facts := range []struct {
		name string
		list []string
	}{{"commands", s.Commands}, {"always", s.Always}, {"paths", s.Paths}, {"outside", s.Outside}, {"reads", a.reads}, {"writes", a.writes}} {
		if len(facts.list) > 0 {
			fmt.Fprintf(&out, "%s %q\n", facts.name, facts.list)
		}
	}
	if s.Why != "" || s.Network || s.Push || s.Err != nil {
		fmt.Fprintf(&out, "why %q network %v push %v error %v\n", s.Why, s.Network, s.Push, s.Err)
	}
	return out.String()
}
