package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// servers answer for an address with a body, or with a status where the body is one; what is not listed cannot be reached.
type servers map[string]string

func (s servers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := s[r.URL.String()]
	switch {
	case !ok:
		return nil, errors.New("connection refused")
	case body == "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status := http.StatusOK
	if n, err := strconv.Atoi(body); err == nil {
		status, body = n, ""
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Issue "A person's first hour" 17: the doctor asks the servers that the person has configured before it says ok, and says what came back.
func TestServers(t *testing.T) {
	const url = "https://api.openai.com/v1/models"
	for name, tt := range map[string]struct {
		answers servers
		config  string // below home
		project string
		want    []string // each: status, then words
	}{
		"it answers":                      {answers: servers{url: `{"data":[{"id":"a"},{"id":"b"}]}`}, want: []string{"ok openai at https://api.openai.com/v1 answered: 2 models"}},
		"a wrong key":                     {answers: servers{url: "401"}, want: []string{"fail the key from OPENAI_API_KEY was refused"}},
		"nobody there":                    {want: []string{"fail cannot be reached: connection refused"}},
		"no answer":                       {answers: servers{url: "hang"}, want: []string{"fail gave no answer within 3s"}},
		"no such list":                    {answers: servers{url: "404"}, want: []string{"warn answered 404 Not Found"}},
		"another is down":                 {answers: servers{url: `{"data":[]}`}, config: `{"provider":{"corp":{"options":{"baseURL":"https://corp.example/v1"}}}}`, want: []string{"ok openai", "warn https://corp.example/v1 cannot be reached"}},
		"not a project's":                 {answers: servers{url: `{"data":[]}`}, project: `{"provider":{"corp":{"options":{"baseURL":"http://127.0.0.1:9/v1"}}}}`, want: []string{"ok openai"}},
		"named by a project, not trusted": {project: `{"model":"corp/m","provider":{"corp":{"options":{"baseURL":"http://127.0.0.1:9/v1"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"project/opencode.json": cmp.Or(tt.project, "{}"), "home/.config/opencode/opencode.json": cmp.Or(tt.config, "{}"),
				"home/.config/centurion/config.jsonc": "{}"}
			if tt.project == "" || !strings.Contains(tt.project, "model") {
				files["home/.config/centurion/config.jsonc"] = `{"model":"openai/gpt-5"}`
			}
			o := world(t, map[string]string{"OPENAI_API_KEY": "sk-canary"}, files)
			synctest.Test(t, func(t *testing.T) {
				o.HTTP = &http.Client{Transport: tt.answers}
				found := (&doctor{o}).configuration(t.Context())
				var got []Finding
				for _, f := range found {
					if f.Name == "server" {
						got = append(got, f)
					}
					if strings.Contains(f.Detail+f.Hint, "canary") {
						t.Errorf("a key is told: %+v", f)
					}
				}
				if len(got) != len(tt.want) {
					t.Fatalf("%+v", got)
				}
				for i, want := range tt.want {
					status, words, _ := strings.Cut(want, " ")
					if string(got[i].Status) != status || !strings.Contains(got[i].Detail, words) || (got[i].Hint == "") != (status == "ok") {
						t.Errorf("%+v, want %s", got[i], want)
					}
				}
			})
		})
	}
}

// What of the project's files is not in force without trust is told, rules too.
func TestUntrusted(t *testing.T) {
	o := world(t, nil, map[string]string{"project/opencode.json": `{"permission":{"bash":"allow"}}`, "home/.config/opencode/opencode.json": "{}"})
	for _, f := range (&doctor{o}).configuration(t.Context()) {
		if f.Status == Warn && strings.Contains(f.Detail, `opencode.json came with the project and is not trusted; not in force: permission bash "*": allow (see: centurion trust)`) {
			return
		}
	}
	t.Error("it is not told")
}

// world is options with a home and a project of their own; files are written below both.
func world(t *testing.T, env map[string]string, files map[string]string) Options {
	t.Helper()
	base := t.TempDir()
	home, dir := filepath.Join(base, "home"), filepath.Join(base, "project")
	for _, d := range []string{home, dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(base, "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return Options{Dir: dir, Home: home, HTTP: &http.Client{Transport: refuse{}}, Out: out, Env: func(name string) string {
		if name == "HOME" {
			return home
		}
		return env[name]
	}}
}

func find(t *testing.T, all []Finding, name string) []Finding {
	t.Helper()
	var out []Finding
	for _, f := range all {
		if f.Name == name {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		t.Fatalf("nothing is said of %s", name)
	}
	return out
}

func TestHealthy(t *testing.T) {
	o := world(t, map[string]string{"OPENAI_API_KEY": "sk-canary", "GROQ_API_KEY": "gsk-canary"}, map[string]string{
		"project/opencode.json":                `{"theme":"x","shell":"fish"}`,
		"home/.config/opencode/opencode.json":  `{"model":"openai/gpt-5"}`,
		"home/.local/share/opencode/auth.json": `{"mistral":{"type":"api","key":"m-canary"}}`,
	})
	o.Notify = func() (bool, string) { return true, "" }
	o.HTTP = &http.Client{Transport: servers{"https://api.openai.com/v1/models": `{"data":[{"id":"gpt-5"}]}`}}
	all := Run(t.Context(), o)
	if m := find(t, all, "model")[0]; m.Status != OK || !strings.Contains(m.Detail, "openai/gpt-5") ||
		!strings.Contains(m.Detail, "OPENAI_API_KEY") || !strings.Contains(m.Detail, "opencode.json") {
		t.Errorf("model: %+v", m)
	}
	k := find(t, all, "keys")[0]
	for _, word := range []string{"OPENAI_API_KEY", "GROQ_API_KEY", "mistral", "auth.json"} {
		if !strings.Contains(k.Detail, word) {
			t.Errorf("keys %q do not name %q", k.Detail, word)
		}
	}
	if c := find(t, all, "configuration"); len(c) != 3 || c[1].Status != OK || !strings.Contains(c[1].Detail, "theme") ||
		c[2].Status != Warn || !strings.Contains(c[2].Detail, "shell is ignored: commands run in ") {
		t.Errorf("configuration: %+v", c)
	}
	if s := find(t, all, "server")[0]; s.Status != OK || s.Detail != "openai at https://api.openai.com/v1 answered: 1 model" {
		t.Errorf("server: %+v", s)
	}
	if s := find(t, all, "state")[0]; s.Status == Fail || !strings.Contains(s.Detail, "centurion") || !strings.Contains(s.Detail, "GB free") {
		t.Errorf("state: %+v", s)
	}
	if f := find(t, all, "terminal")[0]; f.Status != OK || !strings.Contains(f.Detail, "none") {
		t.Errorf("a file is no terminal: %+v", f)
	}
	for _, name := range []string{"git", "notices"} {
		find(t, all, name)
	}
	for _, f := range all {
		if strings.Contains(f.Detail+f.Hint, "canary") {
			t.Errorf("a key is told: %+v", f)
		}
		if f.Status != OK && f.Hint == "" && f.Name != "configuration" {
			t.Errorf("no next step: %+v", f)
		}
	}
	if Worst(all) == Fail {
		t.Errorf("a healthy machine fails: %+v", all)
	}
}

func TestWorst(t *testing.T) {
	for _, tt := range []struct {
		of   []Status
		want Status
	}{{nil, OK}, {[]Status{OK, OK}, OK}, {[]Status{OK, Warn, OK}, Warn}, {[]Status{Warn, Fail, Warn}, Fail}, {[]Status{Fail, Warn}, Fail}} {
		var findings []Finding
		for _, s := range tt.of {
			findings = append(findings, Finding{Status: s})
		}
		if got := Worst(findings); got != tt.want {
			t.Errorf("%v: %s", tt.of, got)
		}
	}
}

// What the model's finding says of key, price and doubt is what there is.
func TestModelFinding(t *testing.T) {
	for name, tt := range map[string]struct {
		config string // the person's own
		env    map[string]string
		status Status
		want   string
		keys   string
	}{
		"known, with a key": {`{"model":"openai/gpt-5"}`, map[string]string{"OPENAI_API_KEY": "k"}, OK, "openai/gpt-5 at https://api.openai.com/v1 (from ~/.config/centurion/config.jsonc), key from OPENAI_API_KEY", "OPENAI_API_KEY"},
		"local":             {`{"model":"ollama/x"}`, nil, OK, "ollama/x at http://127.0.0.1:11434/v1 (from ~/.config/centurion/config.jsonc)", "none in the environment or stored"},
		"unknown":           {`{"model":"openai/gpt-99"}`, map[string]string{"OPENAI_API_KEY": "k"}, Warn, "openai/gpt-99 at https://api.openai.com/v1 (from ~/.config/centurion/config.jsonc), key from OPENAI_API_KEY, price unknown", "OPENAI_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			o := world(t, tt.env, map[string]string{"home/.config/centurion/config.jsonc": tt.config})
			all := Run(t.Context(), o)
			m := find(t, all, "model")[0]
			if m.Status != tt.status || m.Detail != tt.want || (m.Hint == "") != (m.Status == OK) {
				t.Errorf("%+v", m)
			}
			if c := find(t, all, "configuration")[0]; c.Status != OK || c.Detail != filepath.Join(o.Home, ".config/centurion/config.jsonc") {
				t.Errorf("%+v", c)
			}
			if k := find(t, all, "keys"); len(k) != 1 || k[0].Status != OK || k[0].Detail != tt.keys {
				t.Errorf("%+v", k)
			}
		})
	}
	if c := find(t, Run(t.Context(), world(t, nil, nil)), "configuration")[0]; c.Status != OK || c.Detail != "no file: defaults are used" {
		t.Errorf("%+v", c)
	}
}

// What is said of git is what comes of it for a mission.
func TestGitFinding(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := world(t, nil, nil)
	if err := os.MkdirAll(filepath.Join(o.Dir, "deep", "er"), 0o700); err != nil {
		t.Fatal(err)
	}
	inside := o
	inside.Dir = filepath.Join(o.Dir, "deep", "er")
	for _, tt := range []struct {
		script, dir string
		want        Finding
	}{
		{"echo git version 2.50.1; echo more", "none", Finding{"git", OK, "git version 2.50.1; this directory is in no repository, which is not needed: sessions share it", ""}},
		{"echo git version 2.38.0", "", Finding{"git", OK, "git version 2.38.0; each session that writes gets a checkout of its own", ""}},
		{"echo git version 2.37.9", "", Finding{"git", Warn, "git version 2.37.9 is too old for checkouts: sessions share this directory", "install git 2.38 or newer"}},
		{"exit 3", "", Finding{"git", Warn, filepath.Join(bin, "git") + " --version: exit status 3", "install git: without it workers share one directory"}},
	} {
		program("git", tt.script)
		if tt.dir == "" {
			_ = os.Mkdir(filepath.Join(o.Dir, ".git"), 0o700)
		}
		if got := find(t, Run(t.Context(), inside), "git")[0]; got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
}

// What agents are told is named, and so is what of it they are not.
func TestInstructionsFinding(t *testing.T) {
	skill := func(name string) string { return "---\nname: " + name + "\ndescription: d\n---\nDo it.\n" }
	o := world(t, nil, map[string]string{"project/AGENTS.md": "Be brief.\n"})
	if got := find(t, Run(t.Context(), o), "instructions"); len(got) != 1 || got[0] != (Finding{"instructions", OK, "1 file (AGENTS.md), 0 skills", ""}) {
		t.Errorf("%+v", got)
	}
	if got := find(t, Run(t.Context(), world(t, nil, nil)), "instructions"); len(got) != 1 || got[0].Detail != "0 files, 0 skills" {
		t.Errorf("%+v", got)
	}
	o = world(t, nil, map[string]string{"project/AGENTS.md": strings.Repeat("A long line.\n", 10_000), "project/opencode.json": `{"instructions":[".env","no*.md"]}`, "project/.env": "KEY=canary",
		"project/.opencode/skills/one/SKILL.md": skill("one"), "project/.opencode/skills/two/SKILL.md": skill("other")})
	got := find(t, Run(t.Context(), o), "instructions")
	var all strings.Builder
	for _, f := range got {
		fmt.Fprintf(&all, "%s %s | %s\n", f.Status, f.Detail, f.Hint)
	}
	for _, want := range []string{"ok 1 file (AGENTS.md), 1 skill (", "warn 1 file shown in part only | keep each below", ".env", ".opencode/skills/two", "correct or remove it"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is not in\n%s", want, all.String())
		}
	}
	if strings.Contains(all.String(), "canary") {
		t.Errorf("a secret is told:\n%s", all.String())
	}
	for s, want := range map[string]string{"a\x1b[31mb\u0085\x7f\xffü": "a[31mb?ü", strings.Repeat("x", 400): strings.Repeat("x", 400), strings.Repeat("x", 401): strings.Repeat("x", 400) + "…"} {
		if got := safe(s); got != want {
			t.Errorf("%q: %q", s, got)
		}
	}
}

func TestNoticesAndMissions(t *testing.T) {
	o := world(t, nil, nil)
	for _, tt := range []struct {
		ok   bool
		why  string
		want Finding
	}{
		{true, "", Finding{"notices", OK, "desktop notices can be shown", ""}},
		{true, "by notify-send", Finding{"notices", OK, "by notify-send", ""}},
		{false, "", Finding{"notices", Warn, "not available", "desktop notifications are off; the terminal shows the same"}},
		{false, "no desktop", Finding{"notices", Warn, "no desktop", "desktop notifications are off; the terminal shows the same"}},
	} {
		o.Notify = func() (bool, string) { return tt.ok, tt.why }
		if got := find(t, Run(t.Context(), o), "notices")[0]; got != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
	o.Missions = func(context.Context) []Finding { return []Finding{{Name: "missions", Status: Warn, Detail: "2 wait"}} }
	if got := find(t, Run(t.Context(), o), "missions")[0]; got.Detail != "2 wait" {
		t.Errorf("%+v", got)
	}
}

func TestNothingConfigured(t *testing.T) {
	all := Run(t.Context(), world(t, nil, nil))
	if m := find(t, all, "model")[0]; m.Status != Fail || !strings.Contains(m.Hint, "OPENAI_API_KEY") {
		t.Errorf("model: %+v", m)
	}
	if Worst(all) != Fail {
		t.Error("without a model a mission cannot run")
	}
}

func TestBadConfiguration(t *testing.T) {
	all := Run(t.Context(), world(t, map[string]string{"XAI_API_KEY": "x"}, map[string]string{"project/.opencode/centurion.jsonc": "{\n\"modle\":1}"}))
	if c := find(t, all, "configuration")[0]; c.Status != Fail || !strings.Contains(c.Detail, "centurion.jsonc:2") || c.Hint == "" {
		t.Errorf("configuration: %+v", c)
	}
	find(t, all, "keys")
}

func TestStateDirectory(t *testing.T) {
	o := world(t, map[string]string{}, map[string]string{"home/file": ""})
	env := o.Env
	home := env("HOME")
	o.Env = func(name string) string {
		if name == "CENTURION_HOME" {
			return filepath.Join(home, "file", "below")
		}
		return env(name)
	}
	if s := find(t, Run(t.Context(), o), "state")[0]; s.Status != Fail || !strings.Contains(s.Hint, "CENTURION_HOME") {
		t.Errorf("a file where the directory should be: %+v", s)
	}
	o.Env = env
	if s := find(t, Run(t.Context(), o), "state")[0]; !strings.Contains(s.Detail, "can be created") {
		t.Errorf("state: %+v", s)
	}
	o.Env = func(name string) string {
		if name == "CENTURION_HOME" {
			return home
		}
		return env(name)
	}
	if s := find(t, Run(t.Context(), o), "state")[0]; s.Status == Fail || strings.Contains(s.Detail, "can be created") {
		t.Errorf("one that is there: %+v", s)
	}
	o.Env = func(name string) string {
		if name == "CENTURION_HOME" {
			return "/proc/sys/nowhere"
		}
		return env(name)
	}
	if s := find(t, Run(t.Context(), o), "state")[0]; runtime.GOOS == "linux" && (s.Status != Fail || !strings.Contains(s.Detail, "cannot be written")) {
		t.Errorf("where nobody can write: %+v", s)
	}
	left, err := os.ReadDir(home)
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() != "file" }) {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeyFileOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permission bits say nothing here")
	}
	o := world(t, nil, map[string]string{"home/.local/share/centurion/auth.json": `{}`})
	for mode, told := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o600: false} {
		if err := os.Chmod(filepath.Join(o.Home, ".local/share/centurion/auth.json"), mode); err != nil {
			t.Fatal(err)
		}
		keys := find(t, Run(t.Context(), o), "keys")
		if (len(keys) == 2) != told || told && (keys[1].Status != Warn || !strings.Contains(keys[1].Hint, "chmod 600")) {
			t.Errorf("%v: keys: %+v", mode, keys)
		}
	}
}

func TestSandboxTellsTheTruth(t *testing.T) {
	o := world(t, nil, nil)
	o.InForce = []string{"a process group", "time limits"}
	for _, test := range []struct {
		way    centurion.Confinement
		why    error
		status Status
		detail string
	}{
		{centurion.Confinement{Way: "full", Gaps: []string{"x", "y"}}, nil, OK, "full; not stopped: x, y"},
		{centurion.Confinement{Way: "files", Gaps: []string{"sockets"}}, errors.New("full: no namespaces"), Warn, "files; not stopped: sockets"},
		{centurion.Confinement{Way: "none", Gaps: []string{"anything"}}, nil, Warn, "none; not stopped: anything"},
	} {
		o.Confinement = func() (centurion.Confinement, error) { return test.way, test.why }
		s := find(t, Run(t.Context(), o), "sandbox")
		if s[0].Status != test.status || !strings.Contains(s[0].Detail, test.detail) || (s[0].Hint == "") != (test.status == OK) {
			t.Errorf("%+v", s[0])
		}
		if !strings.Contains(s[1].Detail, "a process group, time limits") {
			t.Errorf("%+v", s[1])
		}
		if runtime.GOOS == "linux" && (!strings.Contains(s[2].Detail, "Landlock") || !strings.Contains(s[2].Detail, "namespaces") ||
			!strings.Contains(s[2].Detail, "bubblewrap")) {
			t.Errorf("%+v", s[2])
		}
	}
}

// On Ubuntu the hint is a command that writes and loads a profile for this very program.
func TestAppArmorCommand(t *testing.T) {
	self, _ := os.Executable()
	command := appArmorCommand()
	for _, part := range []string{"userns,", self, "sudo apparmor_parser -r /etc/apparmor.d/centurion"} {
		if !strings.Contains(command, part) {
			t.Errorf("%q is not in %s", part, command)
		}
	}
	on := filepath.Join(t.TempDir(), "switch")
	if err := os.WriteFile(on, []byte("1\n"), 0o600); err != nil || !restricted(on) || restricted(on+"2") {
		t.Errorf("restricted is %v, %v", restricted(on), err)
	}
}

func TestColours(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"no colours":                   {},
		"no colours (NO_COLOR is set)": {"NO_COLOR": "1", "TERM": "xterm-256color"},
		"16 colours":                   {"TERM": "xterm"},
		"256 colours":                  {"TERM": "screen-256color"},
		"16 million colours":           {"TERM": "xterm-256color", "COLORTERM": "truecolor"},
	} {
		if got := colours(func(n string) string { return env[n] }); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
	for _, env := range []map[string]string{{"TERM": "xterm", "COLORTERM": "24bit"}, {"TERM": "xterm-direct"}} {
		if got := colours(func(n string) string { return env[n] }); got != "16 million colours" {
			t.Errorf("%v: %q", env, got)
		}
	}
	if got := colours(func(n string) string { return map[string]string{"TERM": "dumb", "COLORTERM": "truecolor"}[n] }); got != "no colours" {
		t.Errorf("a dumb terminal shows %s", got)
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("git\x1b[31m 2\x07.5\u009b\xff" + strings.Repeat("x", 200)); strings.ContainsAny(got, "\x1b\x07\u009b") || !utf8.ValidString(got) || len([]rune(got)) != 100 {
		t.Errorf("%q", got)
	}
}

func TestPanicInACheckIsAFinding(t *testing.T) {
	o := world(t, nil, nil)
	o.Notify = func() (bool, string) { panic("boom") }
	if n := find(t, Run(t.Context(), o), "notices")[0]; n.Status != Fail || !strings.Contains(n.Detail, "boom") {
		t.Errorf("%+v", n)
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	all := Run(t.Context(), world(t, nil, nil))
	if f := find(t, all, "git")[0]; f.Status != Warn || f.Detail != "not on PATH" || f.Hint == "" {
		t.Errorf("%+v", f)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if len(Run(ctx, world(t, nil, nil))) == 0 {
		t.Error("no findings")
	}
}

func TestOlderGit(t *testing.T) {
	for line, want := range map[string]bool{"git version 2.37.9": true, "git version 2.38.0": false, "git version 2.39.5 (Apple Git-154)": false,
		"git version 1.99.1": true, "git version 3.0.1": false, "no version": false} {
		if got := older(line, 2, 38); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// A program that leaves something behind which holds its output does not hold up the check.
func TestVersionOfAProgramThatLeavesAChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script cannot stand in for a program")
	}
	program := filepath.Join(t.TempDir(), "program")
	syscall.ForkLock.RLock() // a child that begins meanwhile would hold the file open
	err := os.WriteFile(program, []byte("#!/bin/sh\nsleep 5 &\necho 1.2\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if v, err := version(t.Context(), program); err == nil || time.Since(began) > 4*time.Second {
		t.Errorf("%q after %v, %v", v, time.Since(began), err)
	}
}
