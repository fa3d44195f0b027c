package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// odd is a service whose paths hold everything that a unit file or XML has a use for.
var odd = service{exe: `/opt/a b/100% "x" $HOME\n<&>/centurion`, env: []string{"PATH=/usr/bin:/o p/t%", "CENTURION_HOME=/s \"t\" $a\te"},
	home: "/home/o & o", conf: "/home/o & o/.config", uid: 501}

// Issue «What works» 6: what a systemd unit says is what was meant, whatever the paths hold.
func TestSystemdUnit(t *testing.T) {
	s := odd
	s.exe = "/opt/a b/100% $HOME<&>/centurion"
	u, err := supervisorOn("linux", s)
	if err != nil {
		t.Fatal(err)
	}
	if u.file != "/home/o & o/.config/systemd/user/centurion.service" {
		t.Errorf("it is written to %s", u.file)
	}
	lines := strings.Split(u.text, "\n")
	for _, want := range []string{
		`ExecStart="/opt/a b/100%% $HOME<&>/centurion" service run`,
		`Environment="PATH=/usr/bin:/o p/t%%"`, `Environment="CENTURION_HOME=/s \"t\" $a\te"`,
		"Type=simple", "Restart=on-failure", "KillMode=mixed", "WantedBy=default.target", "[Unit]", "[Service]", "[Install]",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line %s in\n%s", want, u.text)
		}
	}
	if got := systemdWord("a\nb\rc\\"); got != `"a\nb\rc\\"` {
		t.Errorf("line ends and backslashes are written as %s", got)
	}
	for _, exe := range []string{`/a"b`, `/a'b`, `/a\b`, "/a\nb"} {
		if _, err := supervisorOn("linux", service{exe: exe}); exitCode(err) != exitUsage || centurion.HintOf(err) == "" {
			t.Errorf("%q, which systemd refuses: %v", exe, err)
		}
	}
}

// systemd itself reads the unit without complaint, and finds the program in it.
func TestSystemdReadsUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	dir := filepath.Join(t.TempDir(), `a b 100%n $HOME`)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	verify := func(exe string) string {
		s := odd
		s.exe = exe
		file := filepath.Join(t.TempDir(), unitName)
		if err := writeWhole(file, systemdUnit(s)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), analyze, "--user", "verify", file)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	there := filepath.Join(dir, "centurion")
	if err := os.WriteFile(there, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	missing := verify(filepath.Join(dir, "nothing"))
	if !strings.Contains(missing, "nothing") {
		t.Skipf("systemd-analyze does not look for programs here: %s", missing)
	}
	if out := verify(there); strings.Contains(out, unitName) || strings.Contains(out, "ommand") {
		t.Errorf("systemd says: %s", out)
	}
}

// Issue «What works» 6: a launchd agent is XML that holds what was meant, whatever the paths hold.
func TestLaunchAgent(t *testing.T) {
	u, err := supervisorOn("darwin", odd)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/home/o & o/Library/LaunchAgents/centurion.plist"; u.file != want {
		t.Errorf("it is written to %s, not %s", u.file, want)
	}
	if got := strings.Join(u.start, " "); got != "launchctl bootstrap gui/501 "+u.file {
		t.Errorf("it is started with %s", got)
	}
	var texts []string
	d := xml.NewDecoder(strings.NewReader(u.text))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, u.text)
		}
		if text, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	for _, want := range [][]string{
		{"Label", "centurion", "ProgramArguments", odd.exe, "service", "run", "EnvironmentVariables"},
		{"PATH", "/usr/bin:/o p/t%", "CENTURION_HOME", "/s \"t\" $a\te"},
		{"RunAtLoad"},
	} {
		at := slices.Index(texts, want[0])
		if at < 0 || !slices.Equal(texts[at:min(at+len(want), len(texts))], want) {
			t.Errorf("the agent does not hold %q: %q", want, texts)
		}
	}
	if strings.Count(u.text, "<true/>") != 1 || !strings.Contains(u.text, "<key>RunAtLoad</key>\n\t<true/>") {
		t.Errorf("it is not run when it is loaded:\n%s", u.text)
	}
}

// Issue «What works» 6: the agent is loaded, loaded anew when it is installed again, also if the old one takes a moment to
// end, and removed; without a desktop session what to do later is said.
func TestLaunchctl(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	s := odd
	s.home = filepath.Join(dir, "the home")
	u, err := supervisorOn("darwin", s)
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
"bootstrap gui/501") test "$3" = "` + u.file + `" || exit 1
	if test -e ending; then rm ending; echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi
	test ! -e loaded || exit 5; touch loaded;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "launchctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var o strings.Builder
	c := &cli{in: strings.NewReader(""), out: &o, err: io.Discard, env: []string{"HOME=" + s.home, "CENTURION_HOME=" + dir}}
	steps := []struct {
		do        func() error
		says, log string
		running   bool
	}{
		{func() error { return c.installWith(t.Context(), u) }, "installed " + u.file, "print bootout bootstrap", true},
		{func() error { return c.installWith(t.Context(), u) }, "installed " + u.file, "print bootout bootstrap bootstrap", true},
		{func() error { return c.removeWith(t.Context(), u) }, "removed " + u.file, "bootout", false},
		{func() error { return c.removeWith(t.Context(), u) }, "not installed", "", false},
		{func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "nosession"), nil, 0o600), c.installWith(t.Context(), u))
		}, "\n  launchctl bootstrap gui/501 '" + u.file + "'\n", "print", false},
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
		if u.running(t.Context()) != step.running {
			t.Errorf("step %d: running is %t", i, !step.running)
		}
	}
}

// Where no way is known, that is said and nothing is tried.
func TestNoSupervisor(t *testing.T) {
	for _, goos := range []string{"windows", "freebsd", "plan9"} {
		u, err := supervisorOn(goos, odd)
		if u != nil || exitCode(err) != exitUsage || !strings.Contains(err.Error(), goos) || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v, %v", goos, u, err)
		}
	}
}

func TestIsPassing(t *testing.T) {
	temp := t.TempDir()
	elsewhere := t.TempDir()
	link := filepath.Join(elsewhere, "link")
	if err := os.WriteFile(filepath.Join(temp, "centurion"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(temp, link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		filepath.Join(temp, "centurion"):                      true,
		filepath.Join(temp, "deep", "centurion"):              true,
		filepath.Join(link, "centurion"):                      runtime.GOOS != "windows",
		temp + "x":                                            false,
		filepath.Join(elsewhere, "centurion"):                 false,
		"/home/a/.cache/go-build/ab/abcd-d/centurion":         true,
		"/var/x/go-build123/b001/exe/centurion":               true,
		"/home/a/src/my-go-build/centurion":                   false,
		filepath.Join(filepath.Dir(elsewhere), "..centurion"): false,
	} {
		if got := isPassing(path, temp); got != want {
			t.Errorf("%s: passing is %t", path, got)
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
