package service

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"centurion"
)

var plain = Program{Name: Serving, About: "serve", Args: []string{"serve", "--dir", "/a b"}, Executable: "/opt/centurion", Env: []string{"PATH=/bin", "A=b=c"},
	Home: "/h", Config: "/c", UID: 501}

const plainUnit = `[Unit]
Description=Centurion: serve
StartLimitIntervalSec=600
StartLimitBurst=5

[Service]
Type=simple
ExecStart="/opt/centurion" serve --dir "/a b"
Environment="PATH=/bin"
Environment="A=b=c"
Restart=on-failure
RestartSec=10
KillMode=mixed
TimeoutStopSec=60

[Install]
WantedBy=default.target
`

const plainAgent = xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>centurion-serve</string>
	<key>ProgramArguments</key>
	<array>
		<string>/opt/centurion</string>
		<string>serve</string>
		<string>--dir</string>
		<string>/a b</string>
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>PATH</key>
		<string>/bin</string>
		<key>A</key>
		<string>b=c</string>
	</dict>
	<key>StandardErrorPath</key>
	<string>/h/Library/Logs/centurion-serve.log</string>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ThrottleInterval</key>
	<integer>10</integer>
	<key>ExitTimeOut</key>
	<integer>60</integer>
</dict>
</plist>
`

// What is written and which commands are run, whole, on both systems.
func TestSupervisorIsWhole(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	reload, enable := []string{"systemctl", "--user", "daemon-reload"}, []string{"systemctl", "--user", "enable", "--now", "centurion-serve.service"}
	agent := "/h/Library/LaunchAgents/centurion-serve.plist"
	bootstrap, bootout := []string{"launchctl", "bootstrap", "gui/501", agent}, []string{"launchctl", "bootout", "gui/501/centurion-serve"}
	for goos, want := range map[string]*Supervisor{
		"linux": {File: "/c/systemd/user/centurion-serve.service", text: plainUnit, links: []string{"/c/systemd/user/default.target.wants/centurion-serve.service"},
			reach: reload, start: enable, Later: [][]string{reload, enable}, stop: []string{"systemctl", "--user", "disable", "--now", "centurion-serve.service"},
			after: reload, state: []string{"systemctl", "--user", "is-active", "centurion-serve.service"}, active: "active"},
		"darwin": {File: agent, text: plainAgent, reach: []string{"launchctl", "print", "gui/501"}, forget: bootout, start: bootstrap, Later: [][]string{bootstrap},
			stop: bootout, state: []string{"launchctl", "print", "gui/501/centurion-serve"}, active: "state = running"},
	} {
		if got, err := New(goos, plain); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\ngot  %+v\nwant %+v", goos, err, got, want)
		}
	}
}

// A person reads what failed, in the words of the supervisor, and what to do next.
func TestErrors(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	dir := t.TempDir()
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	file := filepath.Join(dir, "a", "x.service")
	for want, command := range map[string][]string{
		"`sh -c 'exit 3'` says: exit status 3":                                          sh("exit 3"),
		"`sh -c 'echo; echo one >&2; echo two >&2; false'` says: one":                   sh("echo; echo one >&2; echo two >&2; false"),
		"there is no centurion-supervisor here":                                         {"centurion-supervisor", "x"},
		"start service: " + file + " is written, but `sh -c false` says: exit status 1": nil,
	} {
		u := &Supervisor{File: file, reach: command, start: sh("true")}
		if command == nil {
			u.reach, u.start = sh("true"), sh("false")
		}
		unreachable, err := u.Install(t.Context())
		if command == nil && centurion.HintOf(err) != "try it again with: sh -c false" {
			t.Errorf("its hint: %s", centurion.HintOf(err))
		}
		if command != nil {
			unreachable, err = err, unreachable
		}
		if unreachable != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v; want %s", unreachable, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u := &Supervisor{File: filepath.Join(dir, "file", "x"), stop: sh("echo it hangs >&2; false"), state: sh("echo active; false"), active: "active"}
	if _, err := u.Install(t.Context()); centurion.KindOf(err) != centurion.KindConfig || centurion.HintOf(err) != "make "+filepath.Join(dir, "file")+" a directory that you can write" {
		t.Errorf("a file in the way: %v (%s)", err, centurion.HintOf(err))
	}
	if u.Running(t.Context()) {
		t.Error("what its supervisor reports as failed runs")
	}
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	u.File = full
	had, running, err := u.Remove(t.Context())
	if !had || running == nil || running.Error() != "`sh -c 'echo it hangs >&2; false'` says: it hangs" || centurion.KindOf(err) != centurion.KindConfig || centurion.HintOf(err) != "remove the file "+full {
		t.Errorf("what cannot be removed: %v, %v, %v (%s)", had, running, err, centurion.HintOf(err))
	}
	if _, err := New("plan9", plain); err.Error() != "find service manager: how a service is installed on plan9 is not known here" || centurion.HintOf(err) != "let the system start `centurion service run` when you log in" {
		t.Errorf("%v (%s)", err, centurion.HintOf(err))
	}
	odd := plain
	odd.Executable = "/a'b"
	if _, err := New("linux", odd); err.Error() != `install service: systemd takes no program whose path holds quotes, backslashes or control characters: "/a'b"` || centurion.HintOf(err) != "put the program where its path holds none, as in ~/.local/bin" {
		t.Errorf("%v (%s)", err, centurion.HintOf(err))
	}
}

// Where this program is found again after an update: by its name in the PATH, where that is the same file, else by its own path.
func TestExecutable(t *testing.T) {
	if os.Getenv("CENTURION_SERVICE_CHILD") != "" {
		got, err := Executable(os.Getenv("CENTURION_SERVICE_PATH"))
		fmt.Printf("%s %v\n", got, err)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"real", "links", "other", "temp"} {
		if err := os.Mkdir(at(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(at("real/centurion"), data, 0o700), os.WriteFile(at("other/centurion"), nil, 0o700),
		os.Symlink(at("real/centurion"), at("links/centurion")), os.Symlink(at("real/centurion"), at("temp/centurion"))); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": at("real/centurion"), at("other"): at("real/centurion"), at("none") + ":" + at("other") + ":" + at("links"): at("links/centurion"),
		at("links") + ":" + at("real"): at("links/centurion"), "links": at("real/centurion"),
	} {
		cmd := exec.CommandContext(t.Context(), at("real/centurion"), "-test.run", "^TestExecutable$")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CENTURION_SERVICE_CHILD=1", "CENTURION_SERVICE_PATH="+path, "TMPDIR="+at("temp"))
		out, err := cmd.Output()
		if first, _, _ := strings.Cut(string(out), "\n"); err != nil || first != want+" <nil>" {
			t.Errorf("PATH=%s: %s, %v; want %s", path, first, err, want)
		}
	}
	cmd := exec.CommandContext(t.Context(), at("real/centurion"), "-test.run", "^TestExecutable$")
	cmd.Env = append(os.Environ(), "CENTURION_SERVICE_CHILD=1", "TMPDIR="+at("real"))
	out, err := cmd.Output()
	if first, _, _ := strings.Cut(string(out), "\n"); err != nil || first != " install service: "+at("real/centurion")+" is in a temporary directory and will be gone after a reboot" {
		t.Errorf("a temporary one: %s, %v", first, err)
	}
}

// Only a plain yes means that a person's services start before they log in.
func TestLingers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no service of this kind")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for script, want := range map[string]bool{
		`test "$*" = "show-user $(id -u) --property=Linger --value" && echo yes`: true, "echo no": false, "echo yes; false": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, "loginctl"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := Lingers(t.Context()); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
	if got := Typed([]string{"a1", "-b=2", "c:d,e+f@g", "h*"}); got != "a1 -b=2 c:d,e+f@g 'h*'" {
		t.Error(got)
	}
}
