package centurion_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the tests compare with")

const requirementsDoc = "docs/requirements.md"

const requirementsHead = `# What is required, and the test that guards it

An id stands above the test that guards it; this table is made from those comments by
` + "`go test -run TestRequirements -update .`" + ` and a test fails when it is out of date. OPAL, SUB, LOOP, ORCH and IKI are lines of the
program's five seed documents, C a contradiction between them, R, S and O trials of reliability, safety and orchestration. Each of them is listed:
with its tests, with what these do not look at yet ("in part"), or with the reason why there is none.

| id | test |
|---|---|
`

var requirementID = regexp.MustCompile(`\b(OPAL|SUB|LOOP|ORCH|IKI|C|R|S|O)-?(\d+)(?:(?:…|\s*\.\.\.\s*|–)(?:(?:OPAL|SUB|LOOP|ORCH|IKI)-?)?(\d+))?`)

// untested says why an id has no test. An id that a test cites does not belong here.
func untested() map[string]string {
	why := map[string]string{
		"OPAL-8":   "every conversation is stored, and there is no switch that turns this off: what is not stored could not go on after a crash",
		"LOOP-62":  "a statement about containers; there are none",
		"ORCH-16":  "there is no client of toasts to begin with: a reader derives them from the journal, see `docs/seed.md`",
		"ORCH-99":  "a layout of directories; where each of its parts is stands in `docs/seed.md`, and `layers_test.go` holds ours",
		"ORCH-143": "the size of another program's tests; ours are above it, see `docs/seed.md`",
	}
	add := func(document, reason string, numbers ...int) {
		for _, n := range numbers {
			why[fmt.Sprintf("%s-%d", document, n)] = reason
		}
	}
	add("IKI", "not there yet: several agents of a person in one terminal, with /spawn, /kill, /agents and a switch from one to another",
		2, 6, 11, 12, 13, 14, 15, 16, 17, 18, 19, 23, 24, 30, 46, 47, 53, 54, 58, 60, 64, 65, 66, 67, 68, 70, 71, 83)
	add("C", why["IKI-65"], 15)
	add("IKI", "not there yet: messages between agents", 78, 79)
	add("IKI", "how the other program draws: one view derived from the events is drawn here, so that no agent owns a scrollback, layers or a spinner",
		21, 29, 39, 40, 41, 49, 59)
	add("IKI", "a field or a reason of the other program, which is in C: an agent here is a goroutine that `guard` starts, with a context that ends it",
		25, 27, 32, 42, 43, 44, 45)
	add("IKI", "no state of ours was ever without addresses, so that no row needs a default", 56)
	add("IKI", "a step in which the other program was changed", 61, 62)
	add("LOOP", "not there yet: the profile solo with its channels and read-only helpers", 2, 3, 4, 47, 48, 49, 50, 53, 54, 55, 56, 57, 60, 63, 87)
	return why
}

// partly says what the tests of an id do not look at yet.
func partly() map[string]string {
	return map[string]string{
		"IKI-4":  "messages between agents come later; a person's messages and tasks' results are there",
		"IKI-76": "`--orphan` comes with a person's own agents",
		"IKI-86": "the limit of 20 comes with a person's own agents",
		"S3":     "on Linux only; what a way does not stop is listed by doctor, and tried by trial S3",
		"S8":     "network and writes outside are tried by trial S3",
	}
}

// complete are the documents and trials, by their number of lines, each of which has to be listed.
func complete() map[string]int {
	return map[string]int{"OPAL": 92, "SUB": 35, "LOOP": 95, "ORCH": 144, "IKI": 86, "R": 20, "S": 10, "O": 8, "C": 25}
}

// Every id that a test cites is in the document, and nothing else is.
func TestRequirements(t *testing.T) {
	want := requirementsHead + requirementRows(t)
	if *update {
		if err := os.WriteFile(requirementsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(requirementsDoc)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): go test -run TestRequirements -update .", requirementsDoc, err)
	}
}

func requirementRows(t *testing.T) string {
	t.Helper()
	cited := map[string][]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && p != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(p, "_test.go"):
			return citedInTests(p, cited)
		case strings.HasSuffix(p, ".txtar"):
			return citedInScript(p, cited)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	why := untested()
	var ids []string
	for id := range cited {
		ids = append(ids, id)
		if why[id] != "" {
			t.Errorf("%s is said to have no test, and %s cites it", id, cited[id][0])
		}
	}
	for id := range why {
		ids = append(ids, id)
	}
	for document, lines := range complete() {
		for n := range lines {
			if id := document + dash(document) + strconv.Itoa(n+1); !slices.Contains(ids, id) {
				t.Errorf("%s has no test and no reason for that", id)
			}
		}
	}
	slices.SortFunc(ids, compareIDs)
	var b strings.Builder
	for _, id := range ids {
		tests := cited[id]
		if why[id] != "" {
			tests = []string{"none: " + why[id]}
		}
		slices.Sort(tests)
		tests = slices.Compact(tests)
		if part := partly()[id]; part != "" {
			tests = append(tests, "in part: "+part)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", id, strings.Join(tests, ", "))
	}
	return b.String()
}

// citedInTests collects the ids in the comments of test, benchmark and fuzz functions.
func citedInTests(p string, cited map[string][]string) error {
	f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !regexp.MustCompile(`^(Test|Benchmark|Fuzz)`).MatchString(fn.Name.Name) {
			continue
		}
		cite(fn.Doc.Text(), filepath.ToSlash(filepath.Dir(p))+" "+fn.Name.Name, cited)
	}
	return nil
}

// citedInScript collects the ids in the comment lines of a script test.
func citedInScript(p string, cited map[string][]string) error {
	b, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "-- ") {
			break
		}
		if strings.HasPrefix(line, "#") {
			cite(line, filepath.ToSlash(p), cited)
		}
	}
	return nil
}

// dash is what stands between the letters of an id and its number.
func dash(letters string) string {
	if len(letters) == 1 && letters != "C" {
		return ""
	}
	return "-"
}

// cite adds the ids in a text; a range stands for each id in it.
func cite(text, where string, cited map[string][]string) {
	for _, m := range requirementID.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[2]) // the pattern lets digits through only
		to := from
		if m[3] != "" {
			to, _ = strconv.Atoi(m[3])
		}
		for n := from; n <= min(to, from+200); n++ {
			id := m[1] + dash(m[1]) + strconv.Itoa(n)
			cited[id] = append(cited[id], where)
		}
	}
}

// compareIDs orders ids by their letters, then by their number.
func compareIDs(a, b string) int {
	la, na := splitID(a)
	lb, nb := splitID(b)
	if la != lb {
		return strings.Compare(la, lb)
	}
	return na - nb
}

func splitID(id string) (string, int) {
	i := strings.IndexAny(id, "0123456789")
	n, _ := strconv.Atoi(id[i:])
	return strings.TrimRight(id[:i], "-"), n
}
