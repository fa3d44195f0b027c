package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an untrusted project has forbidden stays forbidden while a host runs, whatever becomes of its files; other changes count once it is back.
func TestRestrictionsStay(t *testing.T) {
	x := newProject(t, nil)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(x.Dir, ".opencode", "centurion.jsonc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(x.Dir, ".opencode"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(`{"max_cost": 1}`)
	renew := x.renewer()
	first := renew.Models(t.Context())
	write(`{"max_cost": 20}`)
	if got := renew.Models(t.Context()); got != first {
		t.Error("a limit of the project is wider")
	}
	const said = "read config: .opencode/centurion.jsonc: max_cost is gone or wider, and the file came with the project and is not trusted; " +
		"next: put it back, or start the process again if you want that; until then, the configuration stays as it was"
	renew.Models(t.Context())
	if got := x.noted(); got != said {
		t.Errorf("told %q", got)
	}
	write(`{"max_cost": 0.25}`)
	if got := renew.Models(t.Context()); got == first {
		t.Error("a new restriction does not count")
	}
	if got := x.noted(); !strings.HasSuffix(got, "\nthe configuration was changed, and counts for what begins from now on") {
		t.Errorf("told %q", got)
	}
}

// A fault of the configuration is told once while it stays, and again when it comes back after a good one.
func TestFaultThatComesBackIsTold(t *testing.T) {
	x := newProject(t, nil)
	if err := os.Mkdir(filepath.Join(x.Dir, ".opencode"), 0o700); err != nil {
		t.Fatal(err)
	}
	renew := x.renewer()
	const faulty = `{"max_cost": "much"}`
	for i, text := range []string{faulty, faulty + " ", `{"max_cost": 1}`, faulty} {
		if err := os.WriteFile(filepath.Join(x.Dir, ".opencode", "centurion.jsonc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		renew.Models(t.Context())
		if got, want := strings.Count(x.noted(), "until then, the configuration stays as it was"), []int{1, 1, 1, 2}[i]; got != want {
			t.Errorf("after %s the fault was told %d times, want %d:\n%s", text, got, want, x.noted())
		}
	}
}
