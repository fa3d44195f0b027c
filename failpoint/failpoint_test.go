package failpoint

import (
	"os"
	"regexp"
	"testing"
)

// The list of steps is complete: a trial kills the program at those in it only.
func TestAll(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("failpoint.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^\t\w+ +Point = "(\S+)"`).FindAllSubmatch(source, -1)
	all, seen := All(), map[Point]bool{}
	if len(declared) == 0 || len(declared) != len(all) {
		t.Errorf("%d steps of %d are listed", len(all), len(declared))
	}
	for _, p := range all {
		seen[p] = true
	}
	for _, d := range declared {
		if !seen[Point(d[1])] {
			t.Errorf("%s is not listed", d[1])
		}
	}
}
