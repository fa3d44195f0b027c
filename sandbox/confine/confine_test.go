package confine

import (
	"strings"
	"testing"
)

// A way is as strong as itself and all below it, and what it does not stop is told of that way and system.
func TestWays(t *testing.T) {
	ways := []Way{None, Job, Files, Full}
	for i, way := range ways {
		for k, least := range ways {
			if way.Holds(least) != (i >= k) {
				t.Errorf("%s holds %s: %v", way, least, i < k)
			}
		}
	}
	for _, c := range []struct {
		way    Way
		system string
		says   string
		not    string
	}{
		{Full, "linux", "a command that a person allowed", "other processes"},
		{Files, "linux", "UDP, or TCP before Linux 6.7", "launchd"},
		{Files, "darwin", "requests to launchd", "Linux"},
		{Job, "windows", "the network", "hold keys"},
		{None, "linux", "anything", "the network"},
		{"", "linux", "anything", "the network"},
	} {
		got := strings.Join(c.way.gaps(c.system), "\n")
		if !strings.Contains(got, c.says) || strings.Contains(got, c.not) {
			t.Errorf("%s on %s: %s", c.way, c.system, got)
		}
	}
}

// What lies below a directory has its whole name, not only the same first letters.
func TestBelow(t *testing.T) {
	for path, want := range map[string]bool{"/a": true, "/a/b": true, "/a/b/c": true, "/ab": false, "/": false, "/b": false, "/c/d": true, "/c/de": false} {
		if got := below(path, []string{"/a", "/c/d"}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if !below("/x/y", []string{"/"}) || below("/x", nil) {
		t.Error("everything lies below /, and nothing below no directory")
	}
}
