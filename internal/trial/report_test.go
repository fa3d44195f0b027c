package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func sample() report {
	return report{Seed: 7, Scale: "quick", Machine: machine{CPUs: 2, Go: "go1", OS: "linux/amd64", FsyncMS: 0.2}, Trials: []result{
		{ID: "R1", Name: "kill", Goal: "0 | lost", OK: true, Figures: figures{{"kills", 100}, {"a last one", "3 ms"}, {"lost", 0}}, Failures: nil, Seconds: 3, Seed: 7},
		{ID: "R2", Name: "cut", Goal: "0 lost", Failures: []string{notPossible + ": no loop devices"}, Seed: 7},
		{ID: "R3", Name: "step", Goal: "0 lost", Failures: []string{"one was lost"}, Seed: 7},
	}}
}

// Figures keep their order through JSON: the page on reliability is made from the file and shows them as the trial found them.
func TestReportRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trials.json")
	if err := writeReport(file, sample()); err != nil {
		t.Fatal(err)
	}
	got, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Trials[0].Figures.String(); s != "kills 100 · a last one 3 ms · lost 0" {
		t.Errorf("the figures came back as %q", s)
	}
	if got.markdown() != sample().markdown() {
		t.Errorf("the table made from the file differs:\n%s\n%s", got.markdown(), sample().markdown())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var shape struct {
		Machine struct {
			FsyncMS float64 `json:"fsync_ms"`
		}
		Trials []struct {
			OK      bool
			Figures map[string]any
		}
	}
	if err := json.Unmarshal(b, &shape); err != nil || shape.Machine.FsyncMS != 0.2 || !shape.Trials[0].OK || shape.Trials[0].Figures["lost"] != 0.0 {
		t.Errorf("the file has another shape: %v\n%s", err, b)
	}
}

// What could not be tried has failed, and says why; a failure says how to try it again.
func TestTable(t *testing.T) {
	var b strings.Builder
	if err := sample().table(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"R1  kill  ok ", notPossible, "FAILED", "R3 one was lost", "go run ./cmd/trial -quick -seed 7 -run R3", "seed 7 · quick"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "-run R1") {
		t.Errorf("a trial that is well is to be tried again:\n%s", b.String())
	}
	if !strings.Contains(sample().markdown(), `| R1 | kill | 0 \| lost | kills 100 `) {
		t.Errorf("a cell broke the table:\n%s", sample().markdown())
	}
}

func TestRewriteReadme(t *testing.T) {
	dir := t.TempDir()
	page, from := filepath.Join(dir, "reliability.md"), filepath.Join(dir, "trials.json")
	if err := writeReport(from, sample()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("before\n"+pageFrom+"old\n"+pageTo+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := rewritePage(page, from); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(page)
	if want := "before\n" + pageFrom + sample().markdown() + pageTo + "after\n"; err != nil || string(b) != want {
		t.Errorf("the file holds %q, want %q (%v)", b, want, err)
	}
	if err := os.WriteFile(page, []byte("no marks\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewritePage(page, from); err == nil {
		t.Error("a file without marks was accepted")
	}
}

// The table on reliability is the one that the committed results give, and every result is a good one.
func TestPageIsTrue(t *testing.T) {
	b, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _, found := between(string(b))
	if !found {
		return // it has no such table yet
	}
	r, err := readReport("testdata/trials.json")
	if err != nil {
		t.Fatal(err)
	}
	if got != r.markdown() {
		t.Errorf("rewrite it with: go run ./cmd/trial -page docs/reliability.md\ngot:\n%s\nwant:\n%s", got, r.markdown())
	}
	for _, one := range r.Trials {
		if !one.OK {
			t.Errorf("%s is published and failed: %q", one.ID, one.Failures)
		}
	}
}

func TestTrialsAreListedInOrder(t *testing.T) {
	last, seen := 0, map[string]bool{}
	group := ""
	for _, one := range trials() {
		if one.name == "" || one.goal == "" || one.run == nil || seen[one.id] {
			t.Errorf("%s is incomplete or stands twice", one.id)
		}
		seen[one.id] = true
		n, err := strconv.Atoi(one.id[1:])
		if err != nil {
			t.Fatal(err)
		}
		if one.id[:1] == group && n < last {
			t.Errorf("%s stands after %s%d", one.id, group, last)
		}
		group, last = one.id[:1], n
	}
	if _, err := choose(trials(), "R1, r3"); err != nil {
		t.Error(err)
	}
	if _, err := choose(trials(), "R1,X9"); err == nil {
		t.Error("a trial that does not exist was chosen")
	}
}

// A trial has the same random numbers whichever others run, and another trial has others.
func TestSourceFollowsFromSeedAndID(t *testing.T) {
	a, b, other := source(7, "R1").Uint64(), source(7, "R1").Uint64(), source(7, "R3").Uint64()
	if a != b || a == other || a == source(8, "R1").Uint64() {
		t.Errorf("%d, %d, %d", a, b, other)
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 50}, {0.99, 99}, {1, 100}} {
		if got := quantile(all, c.q); got != c.want {
			t.Errorf("quantile %v of 1 to 100 is %d, want %d", c.q, got, c.want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("there is a quantile of nothing")
	}
}
