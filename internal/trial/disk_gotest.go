package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goTest runs a Go test of this module in all packages that have one of that name, and adds the numbers of packages and tests, subtests
// included. Jumping clocks and an hour of silence need a fake clock, which a process cannot be given from outside. A missing test is a
// failure.
func goTest(ctx context.Context, t *T, name string) {
	packages, err := packagesWith(t.Root(), name)
	t.Must(err)
	t.Figure("packages", len(packages))
	if len(packages) == 0 {
		t.Failf("no package has a test %s", name)
		return
	}
	args := []string{"test", "-count=1", "-timeout=10m", "-json", "-run", "^" + name + "$"}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = t.Root()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Must(err)
	}
	passed, failed := 0, 0
	said := map[string]string{} // by package and test
	ran := map[string]bool{}    // packages where the test itself passed
	for line := range bytes.Lines(out) {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		key := e.Package + " " + e.Test
		switch {
		case e.Action == "output":
			said[key] += e.Output
		case e.Action == "fail":
			failed++
			t.Failf("%s failed: %s", key, lastLines(said[key], 10))
		case e.Action == "skip":
			t.Failf("%s was skipped: %s", key, lastLines(said[key], 3))
		case e.Action == "pass" && e.Test != "":
			passed++
			if e.Test == name {
				ran[e.Package] = true
			}
		}
	}
	t.Figure("tests passed", passed)
	t.Figure("failed", failed)
	if len(ran) != len(packages) && failed == 0 {
		t.Failf("%s ran in %d of %d packages: %s", name, len(ran), len(packages), lastLines(stderr.String(), 10))
	}
}

// packagesWith lists the packages with a test of a name, as patterns.
func packagesWith(root, test string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(b, fmt.Appendf(nil, "\nfunc %s(t *testing.T)", test)) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if p := "./" + filepath.ToSlash(dir); err == nil && !slices.Contains(found, p) {
			found = append(found, p)
		}
		return err
	})
	return found, err
}
