package service

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
var odd = Program{Name: Resuming, About: "resume", Args: []string{"service", "run", "--dir", `/a "b" 5% $x`}, Executable: `/opt/a b/100% "x" $HOME\n<&>/centurion`, Env: []string{"PATH=/usr/bin:/o p/t%", "CENTURION_HOME=/s \"t\" $a\te"},
	Home: "/home/o & o", Config: "/home/o & o/.config", UID: 501}

// What a systemd unit says is what was meant, whatever the paths hold.
func TestSystemdUnit(t *testing.T) {
	s := odd
	s.Executable = "/opt/a b/100% $HOME<&>/centurion"
	u, err := New("linux", s)
	if err != nil {
		t.Fatal(err)
	}
	if u.File != "/home/o & o/.config/systemd/user/centurion.service" {
		t.Errorf("it is written to %s", u.File)
	}
	lines := strings.Split(u.text, "\n")
	for _, want := range []string{
		`ExecStart="/opt/a b/100%% $HOME<&>/centurion" service run --dir "/a \"b\" 5%% $$x"`,
		`Environment="PATH=/usr/bin:/o p/t%%"`, `Environment="CENTURION_HOME=/s \"t\" $a\te"`,
		"Type=simple", "Restart=on-failure", "RestartSec=10", "StartLimitIntervalSec=600", "StartLimitBurst=5", "KillMode=mixed", "TimeoutStopSec=60", "WantedBy=default.target", "[Unit]", "[Service]", "[Install]",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no line %s in\n%s", want, u.text)
		}
	}
	if got := systemdWord("a\nb\rc\\"); got != `"a\nb\rc\\"` {
		t.Errorf("line ends and backslashes are written as %s", got)
	}
	for _, exe := range []string{`/a"b`, `/a'b`, `/a\b`, "/a\nb"} {
		if _, err := New("linux", Program{Name: Serving, Executable: exe}); centurion.KindOf(err) != centurion.KindUsage || centurion.HintOf(err) == "" {
			t.Errorf("%q, which systemd refuses: %v", exe, err)
		}
	}
}

// systemd itself reads the unit without complaint, and finds the program in it.
func TestSystemdReadsUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("systemd-analyze is missing: scripts/tools.sh installs it")
	}
	if err != nil {
		t.Skip("no systemd-analyze here: scripts/tools.sh installs it")
	}
	dir := filepath.Join(t.TempDir(), `a b 100%n $HOME`)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	verify := func(exe string) string {
		s := odd
		s.Executable = exe
		file := filepath.Join(t.TempDir(), Resuming+".service")
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
		t.Fatalf("systemd-analyze does not look for programs here: %s", missing)
	}
	if out := verify(there); strings.Contains(out, Resuming+".service") || strings.Contains(out, "ommand") {
		t.Errorf("systemd says: %s", out)
	}
}

// A launchd agent is XML that holds what was meant, whatever the paths hold.
func TestLaunchAgent(t *testing.T) {
	u, err := New("darwin", odd)
	if err != nil {
		t.Fatal(err)
	}
	if want := "/home/o & o/Library/LaunchAgents/centurion.plist"; u.File != want {
		t.Errorf("it is written to %s, not %s", u.File, want)
	}
	if got := strings.Join(u.start, " "); got != "launchctl bootstrap gui/501 "+u.File {
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
		{"Label", "centurion", "ProgramArguments", odd.Executable, "service", "run", "--dir", `/a "b" 5% $x`, "EnvironmentVariables"},
		{"PATH", "/usr/bin:/o p/t%", "CENTURION_HOME", "/s \"t\" $a\te"},
		{"RunAtLoad", "KeepAlive", "SuccessfulExit", "ThrottleInterval", "10", "ExitTimeOut", "60"},
	} {
		at := slices.Index(texts, want[0])
		if at < 0 || !slices.Equal(texts[at:min(at+len(want), len(texts))], want) {
			t.Errorf("the agent does not hold %q: %q", want, texts)
		}
	}
	if strings.Count(u.text, "<true/>") != 1 || !strings.Contains(u.text, "<key>SuccessfulExit</key>\n\t\t<false/>") || !strings.Contains(u.text, "<key>RunAtLoad</key>\n\t<true/>") {
		t.Errorf("it is not run when it is loaded:\n%s", u.text)
	}
}

// Where no way is known, that is said and nothing is tried.
func TestNoSupervisor(t *testing.T) {
	for _, goos := range []string{"windows", "freebsd", "plan9"} {
		u, err := New(goos, odd)
		if u != nil || centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), goos) || centurion.HintOf(err) == "" {
			t.Errorf("%s: %v, %v", goos, u, err)
		}
	}
}

// A program that will be gone after a reboot is not installed: that of a test is one.
func TestExecutableStays(t *testing.T) {
	if got, err := Executable(os.Getenv("PATH")); centurion.KindOf(err) != centurion.KindUsage || centurion.HintOf(err) == "" {
		t.Errorf("%s, %v", got, err)
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
		if got := isTemporary(path, temp); got != want {
			t.Errorf("%s: passing is %t", path, got)
		}
	}
}

// Where the supervisor cannot be reached the file is there all the same; what has been started before is tried again until its old
// instance is gone, and a start that fails at once is told with the command. Removing takes the links away, too.
func TestInstallAndRemove(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	for name, c := range map[string]struct {
		reach, start      string
		forget            []string
		unreachable, fail bool
	}{
		"all well":               {"true", "true", nil, false, false},
		"nobody there":           {"echo no bus >&2; false", "false", nil, true, false},
		"it does not start":      {"true", "echo broken >&2; false", nil, false, true},
		"the old one still ends": {"true", "test -e again || { : > again; false; }", sh("true"), false, false},
	} {
		dir := t.TempDir()
		t.Chdir(dir)
		u := &Supervisor{File: filepath.Join(dir, "a", "x.service"), text: "[Unit]\n", reach: sh(c.reach), start: sh(c.start), stop: sh("true"), after: sh(": > after"), forget: c.forget, links: []string{filepath.Join(dir, "link")}}
		unreachable, err := u.Install(t.Context())
		if (unreachable != nil) != c.unreachable || (err != nil) != c.fail || c.fail && !strings.Contains(err.Error(), "broken") {
			t.Errorf("%s: %v, %v", name, unreachable, err)
		}
		if b, err := os.ReadFile(u.File); err != nil || string(b) != u.text {
			t.Errorf("%s: the file holds %q, %v", name, b, err)
		}
		if c.unreachable { // it has made no link then
			u.links = append(u.links, filepath.Join(dir, "none"))
		} else if err := os.Symlink(u.File, u.links[0]); err != nil {
			t.Fatal(err)
		}
		if had, running, err := u.Remove(t.Context()); !had || running != nil || err != nil {
			t.Errorf("%s: removed %v, %v, %v", name, had, running, err)
		}
		if _, err := os.Lstat(u.links[0]); err == nil {
			t.Errorf("%s: the link stays", name)
		}
		if _, err := os.Stat("after"); err != nil {
			t.Errorf("%s: the supervisor is not told that the file is gone: %v", name, err)
		}
		if had, _, err := u.Remove(t.Context()); had || err != nil {
			t.Errorf("%s: removed again: %v, %v", name, had, err)
		}
	}
}

// A service runs when one whole line says so, and a command is told so that it can be typed.
func TestRunningAndTyped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	for said, want := range map[string]bool{"active": true, " active ": true, "inactive": false, "a\nactive": true, "": false} {
		u := &Supervisor{state: []string{"printf", "%s", said}, active: "active"}
		if got := u.Running(t.Context()); got != want {
			t.Errorf("%q: it runs: %v", said, got)
		}
	}
	if got := Typed([]string{"a-b", "it's", "x y", "$HOME"}); got != `a-b 'it'\''s' 'x y' '$HOME'` {
		t.Error(got)
	}
}
