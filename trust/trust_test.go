package trust

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// S4: trust holds for one name and one content, survives in a file that only its owner reads, and ends with a revocation.
func TestBook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open := func() *Book {
		t.Helper()
		b, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	f := File{Name: "opencode.json", Sum: Sum("a"), Items: []Item{{1, Permission, "x"}, {2, Verify, "gone"}}}
	if err := open().Trust(f); err != nil {
		t.Fatal(err)
	}
	b := open()
	for _, c := range []struct {
		name, content string
		want          bool
	}{{"opencode.json", "a", true}, {"opencode.json", "b", false}, {"other.json", "a", false}} {
		if got := b.Trusts(c.name, Sum(c.content)); got != c.want {
			t.Errorf("%s with %q is trusted: %v", c.name, c.content, got)
		}
	}
	if !b.Holds(Sum("a")) || b.Holds(Sum("b")) {
		t.Error("content counts under any name, and no other content does")
	}
	info, err := os.Stat(filepath.Join(dir, "trust.json"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	names, err := b.Revoke()
	if err != nil || strings.Join(names, " ") != "opencode.json" || open().Holds(Sum("a")) {
		t.Errorf("%v, %v", names, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trust.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Open(dir); centurion.KindOf(err) != centurion.KindConfig || b.Holds(Sum("a")) || centurion.HintOf(err) == "" {
		t.Errorf("a broken book: %v", err)
	}
}

// What changed since a person's yes is shown; a line number is no change.
func TestCompare(t *testing.T) {
	b, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state := func(content string, items ...Item) string {
		s := b.Compare(File{"f", Sum(content), items})
		out := s.Why()
		if s.Trusted {
			out = "trusted"
		}
		for _, i := range s.Items {
			out += "|" + i.Op + i.Text
		}
		return out
	}
	if got := state("a", Item{1, Verify, "x"}); got != "came with the project and is not trusted|+x" {
		t.Error(got)
	}
	if err := b.Trust(File{"f", Sum("a"), []Item{{1, Verify, "x"}, {2, Setup, "y"}}}); err != nil {
		t.Fatal(err)
	}
	if got := state("a"); got != "trusted|=x|=y" {
		t.Error(got)
	}
	if got := state("b", Item{7, Verify, "x"}, Item{8, Verify, "y"}); got != "has changed since you trusted it|=x|+y|-y" {
		t.Error(got)
	}
	long := b.Compare(File{"f", Sum("c"), []Item{{1, Verify, "x"}, {1, Verify, "2"}, {1, Verify, "3"}, {1, Verify, "4"}}})
	if got, want := long.Notice(), "f has changed since you trusted it; not in force: verify x, verify 2, verify 3, and 1 more (see: centurion trust)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCovers(t *testing.T) {
	for name, want := range map[string]bool{
		"opencode.json": true, "sub/opencode.jsonc": true, ".opencode/opencode.json": true, ".opencode/centurion.jsonc": true, "sub/.opencode/centurion.json": true,
		".opencode/agents/a.md": true, ".opencode/agent/a.md": true, ".opencode/commands/a.md": true, "sub/.opencode/command/team/own.md": true, "OpenCode.json": true,
		"centurion.jsonc": false, "agents/a.md": false, ".opencode/summary.md": false, ".opencode/agents/a.txt": false, "my-opencode.json": false,
	} {
		if Covers(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A person's newest yes is the one that counts, also over an older content of the file.
func TestTrustAgain(t *testing.T) {
	dir := t.TempDir()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"a", "b"} {
		if err := b.Trust(File{Name: "f", Sum: Sum(content)}, File{Name: "g", Sum: Sum("g")}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Book{b, again} {
		if !b.Trusts("f", Sum("b")) || b.Trusts("f", Sum("a")) || b.Holds(Sum("a")) || !b.Trusts("g", Sum("g")) {
			t.Errorf("the book holds %+v", b.files)
		}
	}
}

// A book that can be read in part only trusts nothing, and the error names it.
func TestHalfReadableBook(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(Path(dir), []byte(`[{"file": "f", "sha256": "s"}, 3]`), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir)
	if err == nil || b.Trusts("f", "s") || b.Holds("s") {
		t.Errorf("trusted: %+v, %v", b.files, err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "read "+Path(dir)+": json: cannot unmarshal number") {
		t.Errorf("the error does not name the file and the cause: %s", text)
	}
	if hint := centurion.HintOf(err); hint != "nothing is trusted until you run: centurion trust --revoke" {
		t.Errorf("the next step: %s", hint)
	}
}

// What was not recorded is an error: the person would believe that their yes or their revocation holds.
func TestUnwritableBook(t *testing.T) {
	t.Chdir(t.TempDir())
	none, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	if err := none.See(map[string][]string{"f": {"r"}}); err != nil || none.Trust(File{Name: "f"}) == nil {
		t.Errorf("a book without a state directory: %v", err)
	}
	if written, err := os.ReadDir("."); err != nil || len(written) > 0 {
		t.Errorf("a book without a state directory writes %v, %v", written, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := &Book{path: Path(filepath.Join(file, "state"))}
	_, revoke := b.Revoke()
	for _, err := range []error{revoke, b.Trust(File{Name: "f"}), b.See(map[string][]string{"f": nil})} {
		if centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(centurion.HintOf(err), "CENTURION_HOME") || !strings.Contains(err.Error(), "file") {
			t.Errorf("%v (%s)", err, centurion.HintOf(err))
		}
		if !strings.HasPrefix(err.Error(), "record trust: ") {
			t.Errorf("it is not said what failed: %v", err)
		}
	}
}

// The rules of a person's last start are read at the next, and the book of trust stays as it was.
func TestSee(t *testing.T) {
	dir := t.TempDir()
	for _, rules := range []map[string][]string{{"f": {"a", "b"}}, {"f": {"a"}, "g": nil}} {
		b, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.See(rules); err != nil || !maps.EqualFunc(b.Seen, rules, slices.Equal) {
			t.Errorf("%v, %v", b.Seen, err)
		}
		if again, err := Open(dir); err != nil || !maps.EqualFunc(again.Seen, rules, slices.Equal) {
			t.Errorf("read again: %v, %v, want %v", again.Seen, err, rules)
		}
		if err := os.Remove(b.seenPath()); err != nil {
			t.Fatal(err)
		}
		if err := b.See(maps.Clone(rules)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(b.seenPath()); err == nil {
			t.Error("rules that have not changed are written again")
		}
	}
}

// What is compared is what can be trusted then: the same name, content and items, and a list also where there are none.
func TestStateIsItsFile(t *testing.T) {
	b := &Book{}
	f := File{Name: "f", Sum: Sum("a"), Items: []Item{{1, Verify, "x"}, {2, Setup, "y"}, {3, Shell, "z"}}}
	if got := b.Compare(f).File(); got.Name != f.Name || got.Sum != f.Sum || !slices.Equal(got.Items, f.Items) {
		t.Errorf("%+v", got)
	}
	if got := b.Compare(f).Notice(); strings.Contains(got, "more") || !strings.Contains(got, "shell z") {
		t.Error(got)
	}
	long := File{Name: "f", Items: []Item{{1, Shell, strings.Repeat("x", 300)}}}
	if got := b.Compare(long).Notice(); !strings.Contains(got, ": "+centurion.Clip("shell "+strings.Repeat("x", 300), 200)+" (see") {
		t.Error(got)
	}
	data, err := json.Marshal(b.Compare(File{Name: "f"}))
	if err != nil || !strings.Contains(string(data), `"items":[]`) {
		t.Errorf("%s, %v", data, err)
	}
	b.files = []record{{File: f}}
	if got := b.Compare(File{Name: "f", Sum: Sum("b")}).File().Items; len(got) != 0 {
		t.Errorf("items that are gone are trusted: %v", got)
	}
}
