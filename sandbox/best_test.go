//go:build unix

package sandbox

import (
	"strings"
	"testing"

	"centurion/sandbox/confine"
)

// S3: a way counts as confined only after a trial, and each attempt of the trial is noticed where nothing stops it.
func TestTrialNoticesEachAttempt(t *testing.T) {
	begin, rest, _ := strings.Cut(attempts, "echo held > may\n")
	begin += "echo held > may\n"
	lines := strings.Split(strings.TrimSpace(rest+macAttempts), "\n")
	if len(lines) < 12 {
		t.Fatal(lines)
	}
	for _, line := range append(lines, "true") {
		harmless := line == "true" || strings.Contains(line, "/System/") || strings.Contains(line, "tr a-z") || strings.HasPrefix(line, "cp -c") // they need macOS
		tr, err := newTrial()
		if err != nil {
			t.Fatal(err)
		}
		c := tr.command(begin + line)
		c.Env = append(c.Env, "TMPDIR="+tr.dir)
		res, err := (&Runner{}).Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.judge(confine.Full, res.Output); (err == nil) != harmless {
			t.Errorf("%s: %v, %q", line, err, res.Output)
		}
		if err := tr.judge(confine.Job, res.Output); err != nil && !strings.HasPrefix(line, `mv "$PWD"`) {
			t.Errorf("%s: %v", line, err)
		}
		if err := tr.end(); err != nil {
			t.Error(err)
		}
	}
}

// A model on a Mac is told what the system's only error for everything that is forbidden may mean.
func TestAdvice(t *testing.T) {
	const denied = "touch: /etc/x: Operation not permitted"
	for _, test := range []struct {
		system, output string
		network        bool
		files, offline bool
	}{
		{"darwin", denied, false, true, true},
		{"darwin", denied, true, true, false},
		{"darwin", "curl: (6) Could not resolve host: x", false, false, true},
		{"darwin", "no", false, false, false},
		{"linux", denied, false, false, false},
		{"linux", "Read-only file system", false, true, false},
	} {
		got := advice(test.system, test.output, test.network)
		if strings.Contains(got, "they write in the workspace") != test.files || strings.Contains(got, "had no network") != test.offline {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
