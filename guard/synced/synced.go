// Package synced tells tests what a function had written down for good: which files and directories it synced, and between which
// renames. It owns nothing of the product and no power cut.
package synced

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const inside = "CENTURION_TEST_SYNCED"

var (
	syncCall = regexp.MustCompile(`\bf(?:data)?sync\(\d+<([^>]*)>`)
	nameCall = regexp.MustCompile(`\b(?:rename|link)\w*\(.*?"([^"]*)".*?"([^"]*)"`)
)

// Calls runs f in a process of its own, under strace, and returns the base names that it synced and renamed or linked, in order:
// "sync a.tmp", "name a.tmp a", "sync dir". It is called once in a test, which is skipped where there is no strace that can look, but fails in CI.
func Calls(t *testing.T, f func()) string {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		f()
		t.SkipNow()
	}
	log := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command("strace", "-f", "-qq", "-y", "-o", log, "-e", "trace=/^(fsync|fdatasync|rename.*|link.*)$", os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	out, err := cmd.CombinedOutput()
	b, _ := os.ReadFile(log)
	if err != nil && len(b) == 0 && !bytes.Contains(out, []byte("--- FAIL")) {
		if os.Getenv("CI") != "" {
			t.Fatalf("strace cannot look here: %v %s; scripts/tools.sh installs it", err, out)
		}
		t.Skipf("strace cannot look here: %v %s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var calls []string
	for line := range strings.Lines(string(b)) {
		if m := syncCall.FindStringSubmatch(line); m != nil {
			calls = append(calls, "sync "+filepath.Base(m[1]))
		} else if m := nameCall.FindStringSubmatch(line); m != nil {
			calls = append(calls, "name "+filepath.Base(m[1])+" "+filepath.Base(m[2]))
		}
	}
	return strings.Join(calls, "\n") + "\n"
}

// Want checks that the calls match these patterns one after the other, each from the beginning of a line to the end of one.
func Want(t *testing.T, calls string, lines ...string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)(?s)` + strings.Join(lines, `$.*^`)).MatchString(calls) {
		t.Errorf("the calls are\n%swant in this order\n%s", calls, strings.Join(lines, "\n"))
	}
}
