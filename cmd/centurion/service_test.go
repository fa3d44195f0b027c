package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"centurion/host/service"
)

// Issue «What works» 6: the agent is loaded, loaded anew when it is installed again, also if the old one takes a moment to
// end, and removed; without a desktop session what to do later is said.
func TestLaunchctl(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	s := service.Program{Name: service.Resuming, Executable: "/opt/centurion", UID: 501}
	s.Home = filepath.Join(dir, "the home")
	u, err := service.New("darwin", s)
	if err != nil {
		t.Fatal(err)
	}
	// It behaves as launchctl does: what is loaded cannot be loaded, and is in the way once more after it was unloaded.
	script := `#!/bin/sh
cd "` + dir + `"
echo "$1 $2" >> log
case "$1 $2" in
"print gui/501") test ! -e nosession || { echo "Domain does not support specified action" >&2; exit 125; };;
"print gui/501/centurion") test -e loaded && printf 'x = {\n\tstate = running\n}\n';;
"bootout gui/501/centurion") test -e loaded || exit 3; rm loaded; touch ending;;
"bootstrap gui/501") test "$3" = "` + u.File + `" || exit 1
	if test -e ending; then rm ending; echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi
	test ! -e loaded || exit 5; touch loaded;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "launchctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var o strings.Builder
	c := &cli{in: strings.NewReader(""), out: &o, err: io.Discard, env: []string{"HOME=" + s.Home, "CENTURION_HOME=" + dir}}
	manager := &services{c}
	steps := []struct {
		do        func() error
		says, log string
		running   bool
	}{
		{func() error { return manager.installWith(t.Context(), u, "") }, "installed " + u.File, "print bootout bootstrap", true},
		{func() error { return manager.installWith(t.Context(), u, "") }, "installed " + u.File, "print bootout bootstrap bootstrap", true},
		{func() error { return manager.removeWith(t.Context(), u) }, "removed " + u.File, "bootout", false},
		{func() error { return manager.removeWith(t.Context(), u) }, "not installed", "", false},
		{func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "nosession"), nil, 0o600), manager.installWith(t.Context(), u, ""))
		}, "\n  launchctl bootstrap gui/501 '" + u.File + "'\n", "print", false},
	}
	for i, step := range steps {
		o.Reset()
		_ = os.Remove(filepath.Join(dir, "log"))
		if err := step.do(); err != nil || !strings.Contains(o.String(), step.says) {
			t.Errorf("step %d: %v, says %q", i, err, o.String())
		}
		b, _ := os.ReadFile(filepath.Join(dir, "log"))
		var log []string
		for line := range strings.Lines(string(b)) {
			word, _, _ := strings.Cut(line, " ")
			log = append(log, word)
		}
		if got := strings.Join(log, " "); got != step.log {
			t.Errorf("step %d ran %s, not %s", i, got, step.log)
		}
		if u.Running(t.Context()) != step.running {
			t.Errorf("step %d: running is %t", i, !step.running)
		}
	}
}

// Issue «What works» 6: looking at every project creates nothing, also where there is none.
func TestLookingCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	empty := filepath.Join(state, "projects", "p-12345678")
	for _, existing := range []bool{false, true} {
		if existing {
			if err := os.MkdirAll(empty, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"ps", "--all"}, {"ps", "--all", "--format", "json"}, {"service", "run"}} {
			var o, e strings.Builder
			c := &cli{in: strings.NewReader(""), out: &o, err: &e, env: []string{"HOME=" + dir, "CENTURION_HOME=" + state}}
			if code := c.run(t.Context(), args); code != exitComplete || strings.Contains(e.String(), "next:") {
				t.Errorf("%v exits with %d: %s", args, code, &e)
			}
		}
		if _, err := os.Stat(state); !existing && !errors.Is(err, os.ErrNotExist) {
			t.Error("a state directory was made")
		}
	}
	for _, at := range []string{state, filepath.Join(state, "projects"), empty} {
		entries, err := os.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 0, false: 1}[at == empty]; len(entries) != want {
			t.Errorf("%s holds %v", at, entries)
		}
	}
}
