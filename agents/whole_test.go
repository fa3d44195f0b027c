package agents

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
)

var update = flag.Bool("update", false, "rewrite what definitions make")

// What definitions make of the four agents and of the assistant, in full: each line of testdata/whole.txt that begins with > is a list of
// definitions, and the agents that they change or add, the notes and the error follow. After a change on purpose, run this test with -update
// and look at the difference.
func TestWhole(t *testing.T) {
	const file = "testdata/whole.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "> ") {
			continue
		}
		profile, given, _ := strings.Cut(line[2:], " ")
		var defs []Definition
		if err := json.Unmarshal([]byte(given), &defs); err != nil {
			t.Fatal(line, err)
		}
		base := Default()
		if profile == "assistant" {
			base = DefaultAssistant()
		}
		out.WriteString(line + "\n" + made(t, base, defs) + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(b), out.String()); d != "" {
		t.Error(d)
	}
}

// made says what definitions make of a cast: what differs from it.
func made(t *testing.T, base *Cast, defs []Definition) string {
	var out strings.Builder
	cast, notes, err := base.Beside([]string{"linear"}, true).With(defs...)
	if err != nil {
		return fmt.Sprintf("%s: %v (%s)\n", centurion.KindOf(err), err, centurion.HintOf(err))
	}
	before := map[string]string{}
	shown := func(a Agent) string {
		temperature := "none"
		if a.Temperature != nil {
			temperature = fmt.Sprint(*a.Temperature)
		}
		return fmt.Sprintf("%s (%s, %s, custom %v): %q model %q temperature %s steps %d\n  tools %s\n  external %v, delegates %s\n  prompt %.40q … %.60q\n", a.Name, a.Mode, a.Source, a.Custom, a.Description,
			a.Model, temperature, a.Steps, strings.Join(a.Tools, " "), a.External, strings.Join(a.Delegates, " "), a.Prompt, a.Prompt[max(0, len(a.Prompt)-60):])
	}
	for _, a := range base.All() {
		before[a.Name] = shown(a)
	}
	for _, a := range cast.All() {
		if s := shown(a); s != before[a.Name] {
			out.WriteString(s)
			if a.asTask != nil {
				out.WriteString("as a task: " + shown(*a.asTask))
			}
		}
		delete(before, a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		out.WriteString("gone: " + name + "\n")
	}
	for _, n := range notes {
		out.WriteString("note: " + n + "\n")
	}
	return out.String()
}
