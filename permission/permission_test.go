package permission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/guard/cputime"
)

func TestParseRules(t *testing.T) {
	tests := []struct {
		raw  string
		want []Rule
	}{
		{``, nil},
		{`null`, nil},
		{`{}`, nil},
		{`"allow"`, []Rule{{"*", "*", Allow}}},
		{`{"edit": "deny", "bash": {"*": "ask", "git *": "allow", "git push *": "deny"}, "z": "ask", "a": "ask"}`, []Rule{
			{"edit", "*", Deny}, {"bash", "*", Ask}, {"bash", "git *", Allow}, {"bash", "git push *", Deny}, {"z", "*", Ask}, {"a", "*", Ask}}},
		{`{"bash": {"b": "deny", "a": "allow", "b": "ask"}}`, []Rule{{"bash", "b", Deny}, {"bash", "a", Allow}, {"bash", "b", Ask}}},
		{`{"bash": null}`, nil},
	}
	for _, test := range tests {
		got, err := ParseRules(json.RawMessage(test.raw))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.raw, got, err, test.want)
		}
	}
}

func TestParseRulesBad(t *testing.T) {
	tests := []struct{ raw, key, hint string }{
		{`"alow"`, "permission:", `did you mean "allow"?`},
		{`{"bash": "yes"}`, "permission.bash:", `did you mean "allow"?`},
		{`{"bash": {"git *": 3}}`, "permission.bash.git *: 3 is not an action", wantAction},
		{`{"bash": {"git *": "Denny"}}`, "permission.bash.git *:", `did you mean "deny"?`},
		{`{"bash": {"git *": "whatever"}}`, "permission.bash.git *:", `use "allow", "ask" or "deny"`},
		{`{"bash": {"git *": true}}`, "permission.bash.git *:", `use "allow", "ask" or "deny"`},
		{`{"bash": ["ask"]}`, "permission.bash:", `use "allow"`},
		{`[]`, "permission:", ""},
		{`3`, "permission:", ""},
		{`{"bash": {`, "permission.bash", ""},
		{`{"bash"`, "permission", ""},
		{`"ask" "ask"`, "permission:", ""},
	}
	for _, test := range tests {
		_, err := ParseRules(json.RawMessage(test.raw))
		if err == nil || !strings.Contains(err.Error(), test.key) || !strings.Contains(centurion.HintOf(err), test.hint) {
			t.Errorf("%s: got %v (%s), want %s (%s)", test.raw, err, centurion.HintOf(err), test.key, test.hint)
		}
		if centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("%s: kind %s", test.raw, centurion.KindOf(err))
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"*", "a/b c", true}, {"", "", true}, {"", "a", false}, {"git push *", "git push", true}, {"git push *", "git push x y", true},
		{"git push *", "git pushx", false}, {"git push*", "git pushx", true}, {"*.env", ".env", true}, {"*.env", "a/b.env", true}, {"*.env", ".env.x", false},
		{"a?c", "abc", true}, {"a?c", "aüc", true}, {"a?c", "a" + unknown + "c", false}, {"a*c", "a" + unknown + "c", true}, {"a?c", "ac", false}, {"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"src/*", "src/a/b", true},
		{"a.c", "abc", false}, {"**", "x", true}, {"[ab]", "a", false}, {"[ab]", "[ab]", true},
	}
	for _, test := range tests {
		if got := Match(test.pattern, test.s); got != test.want {
			t.Errorf("Match(%q, %q) = %v", test.pattern, test.s, got)
		}
	}
}

func TestDecide(t *testing.T) {
	def := Level{Name: DefaultLevel, Rules: Defaults(false)}
	global := func(r ...Rule) Level { return Level{Name: "global", Rules: r} }
	project := func(r ...Rule) Level { return Level{Name: "project", Rules: r} }
	tests := []struct {
		name       string
		levels     []Level
		permission string
		patterns   []string
		want       Action
		level      string
	}{
		{"no rule asks", nil, "edit", []string{"a"}, Ask, ""},
		{"default read", []Level{def}, "read", []string{"a.go"}, Allow, DefaultLevel},
		{"default secret", []Level{def}, "read", []string{"sub/.env"}, Ask, DefaultLevel},
		{"default secret example", []Level{def}, "read", []string{".env.example"}, Allow, DefaultLevel},
		{"default key", []Level{def}, "read", []string{"id_rsa"}, Ask, DefaultLevel},
		{"default no key", []Level{def}, "read", []string{"src/grid_rsa.go"}, Allow, DefaultLevel},
		{"default edit", []Level{def}, "edit", []string{"a.go"}, Allow, DefaultLevel},
		{"default web", []Level{def}, "webfetch", []string{"https://x"}, Ask, DefaultLevel},
		{"default network", []Level{def}, "network", []string{"x"}, Ask, DefaultLevel},
		{"default loop", []Level{def}, "doom_loop", []string{"bash"}, Ask, DefaultLevel},
		{"default outside", []Level{def}, "external_directory", []string{"/tmp/x"}, Ask, DefaultLevel},
		{"unknown tool asks", []Level{def}, "some_mcp_tool", nil, Ask, ""},
		{"last match wins in a level", []Level{global(Rule{"bash", "git *", Deny}, Rule{"bash", "git log *", Allow})}, "bash", []string{"git log"}, Allow, "global"},
		{"and order matters", []Level{global(Rule{"bash", "git log *", Allow}, Rule{"bash", "git *", Deny})}, "bash", []string{"git log"}, Deny, "global"},
		{"a later level lifts an ask", []Level{def, global(Rule{"webfetch", "*", Allow})}, "webfetch", nil, Allow, "global"},
		{"a later level tightens", []Level{def, global(Rule{"edit", "*", Ask})}, "edit", []string{"a"}, Ask, "global"},
		{"no later level lifts a deny", []Level{def, global(Rule{"edit", "*.lock", Deny}), project(Rule{"edit", "*", Allow})}, "edit", []string{"a.lock"}, Deny, "global"},
		{"which speaks of nothing else", []Level{def, global(Rule{"edit", "*.lock", Deny}), project(Rule{"edit", "*", Ask})}, "edit", []string{"a.go"}, Ask, "project"},
		{"the strictest of several", []Level{def}, "read", []string{"a", ".env", "b"}, Ask, DefaultLevel},
		{"a bare action", []Level{def, global(Rule{"*", "*", Allow})}, "some_mcp_tool", []string{"x"}, Allow, "global"},
		{"untrusted cannot loosen", []Level{def, {Name: "repo", Untrusted: true, Rules: []Rule{{"*", "*", Allow}}}}, "webfetch", nil, Ask, DefaultLevel},
		{"untrusted can tighten", []Level{def, {Name: "repo", Untrusted: true, Rules: []Rule{{"edit", "*", Deny}}}}, "edit", []string{"a"}, Deny, "repo"},
	}
	for _, test := range tests {
		d := Decide(test.levels, test.permission, test.patterns)
		if d.Action != test.want || d.Level != test.level || d.Reason == "" {
			t.Errorf("%s: got %s from %q (%s), want %s from %q", test.name, d.Action, d.Level, d.Reason, test.want, test.level)
		}
	}
}

func TestNamesHosts(t *testing.T) {
	rule := Rule{"network", "x", Allow}
	for name, test := range map[string]struct {
		level Level
		want  bool
	}{
		"a host":         {Level{Rules: []Rule{rule}}, true},
		"a repository's": {Level{Rules: []Rule{rule}, Untrusted: true}, false},
		"denied":         {Level{Rules: []Rule{{"network", "x", Deny}}}, false},
		"others":         {Level{Rules: []Rule{{"bash", "x", Allow}}}, false},
	} {
		if got := NamesHosts([]Level{{Name: DefaultLevel, Rules: Defaults(true)}, test.level}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReasonNamesRuleAndPlace(t *testing.T) {
	levels := person(Rule{"bash", "git push *", Deny}, Rule{"bash", "rm *", Ask}, Rule{"bash", "ls *", Allow})
	for command, want := range map[string]string{
		"git push": `bash of "git push" is denied by the rule bash "git push *": deny in opencode.json; change that rule to permit it`,
		"rm x":     `bash of "rm x" needs approval by the rule bash "rm *": ask in opencode.json (an allow rule stops this question)`,
		"ls":       `bash of "ls" is allowed by the rule bash "ls *": allow in opencode.json`,
	} {
		if d := Decide(levels, "bash", []string{command}); d.Reason != want {
			t.Errorf("reason %q, want %q", d.Reason, want)
		}
	}
	const none = `x needs approval: no rule covers it (a rule for "x" in the permission configuration stops this question)`
	if d := Decide(levels, "x", nil); d.Reason != none {
		t.Errorf("reason %q, want %q", d.Reason, none)
	}
	if d := DecideShell(levels, "", testDir, testHome, false); d.Level != DefaultLevel || d.Reason != "it does nothing" {
		t.Errorf("nothing: %+v", d)
	}
}

func TestExpandHome(t *testing.T) {
	in := []Rule{{"external_directory", "~/src/*", Allow}, {"read", "$HOME/x", Deny}, {"read", "~x", Deny}, {"read", "a~/b", Ask}, {"read", "~", Ask}, {"read", "${HOME}/y", Ask}}
	want := []string{"/home/ada/src/*", "/home/ada/x", "~x", "a~/b", "/home/ada", "/home/ada/y"}
	for i, r := range ExpandHome(in, testHome) {
		if r.Pattern != want[i] {
			t.Errorf("%q became %q, want %q", in[i].Pattern, r.Pattern, want[i])
		}
	}
	if got := ExpandHome(in, ""); !slices.Equal(got, in) {
		t.Errorf("without a home the patterns are %v", got)
	}
}

func TestDecideShellByRule(t *testing.T) {
	tests := []struct {
		name     string
		rules    []Rule
		script   string
		confined bool
		want     Action
	}{
		{"unconfined asks", nil, `go test ./...`, false, Ask},
		{"confined allows", nil, `go test ./... > out.txt`, true, Allow},
		{"confined network asks", nil, `curl https://x`, true, Ask},
		{"confined named network", []Rule{{"network", "x", Allow}}, `curl https://y`, true, Allow},
		{"confined named push asks", []Rule{{"network", "x", Allow}}, `git push`, true, Ask},
		{"unconfined named network", []Rule{{"network", "x", Allow}}, `curl https://x`, false, Ask},
		{"confined push asks", nil, `git push`, true, Ask},
		{"confined outside asks", nil, `cp a /tmp/b`, true, Ask},
		{"confined secret asks", nil, `cat .env`, true, Ask},
		{"confined search for a secret asks", nil, `cat $(find . -name .env)`, true, Ask},
		{"confined search by a pattern asks", nil, `head -3 "$(find sub -name '*.pem')"`, true, Ask},
		{"confined search in a place of keys asks", nil, `grep x $(find .ssh -type f)`, true, Ask},
		{"confined search that reads asks", nil, `find . -name '.e*' -exec cat {} +`, true, Ask},
		{"confined search that is passed on asks", nil, `find . -name .env -print0 | xargs -0 cat`, true, Ask},
		{"confined search that is passed on later asks", nil, `find . -name '*.pem' |& sort | head -1 | xargs -n 1 head -3`, true, Ask},
		{"confined search whose names are passed on", nil, `find . -name .env | xargs echo; find . -name '*.go' | xargs cat; ls | xargs cat`, true, Allow},
		{"confined search for names", nil, `echo $(find . -name .env); find . -name .env -exec echo {} ';'`, true, Allow},
		{"confined search for others", nil, `cat $(find . -name '*.go'); find . -name '*.go' -exec cat {} +`, true, Allow},
		{"a search for what may be read", []Rule{{"read", "*.env", Allow}}, `cat $(find . -name .env)`, true, Allow},
		{"confined unknown asks", nil, `eval "$x"`, true, Ask},
		{"confined unparsable asks", nil, `echo "`, true, Ask},
		{"a rule allows", []Rule{{"bash", "go test *", Allow}}, `go test ./...`, false, Allow},
		{"and what it is piped to", []Rule{{"bash", "go test *", Allow}}, `cd src && go test ./... 2>&1 | tail -20`, false, Allow},
		{"through a plain wrapper", []Rule{{"bash", "go test *", Allow}}, `timeout 60 go test ./...`, false, Allow},
		{"not what follows", []Rule{{"bash", "go test *", Allow}}, `go test ./... && rm x`, false, Ask},
		{"not through sudo", []Rule{{"bash", "go test *", Allow}}, `sudo go test`, false, Ask},
		{"not with another PATH", []Rule{{"bash", "go test *", Allow}}, `PATH=. go test`, false, Ask},
		{"not another program of that name", []Rule{{"bash", "go test *", Allow}}, `./go test`, false, Ask},
		{"not outside", []Rule{{"bash", "cat *", Allow}}, `cat /etc/passwd`, false, Ask},
		{"outside by rule", []Rule{{"bash", "cat *", Allow}, {"external_directory", "/etc/*", Allow}}, `cat /etc/passwd`, false, Allow},
		{"outside by home", []Rule{{"external_directory", "~/notes/*", Allow}}, `cat ~/notes/a`, false, Allow},
		{"outside denied", []Rule{{"external_directory", "*", Deny}}, `cat /etc/passwd`, false, Deny},
		{"a write is an edit", []Rule{{"bash", "*", Allow}, {"edit", "*", Deny}}, `echo x > a.go`, false, Deny},
		{"a write somewhere may be", []Rule{{"bash", "*", Allow}, {"edit", "*.go", Deny}}, `echo x > $F`, false, Ask},
		{"a read is a read", []Rule{{"bash", "*", Allow}, {"read", "secret/*", Deny}}, `cat secret/a`, false, Deny},
		{"all allowed but secrets", []Rule{{"bash", "*", Allow}}, `cat .env`, false, Ask},
		{"a person's ask for everything", []Rule{{"bash", "*", Ask}}, `ls`, true, Ask},
		{"a person's ask in disguise", []Rule{{"bash", "*", Allow}, {"bash", "rm *", Ask}}, `env r"m" x`, false, Ask},
		{"a person's deny for everything", []Rule{{"bash", "*", Deny}}, `ls`, true, Deny},
		{"an exception inside a level", []Rule{{"bash", "git *", Deny}, {"bash", "git status *", Allow}}, `git status $X`, false, Allow},
		{"a program outside", []Rule{{"bash", "*", Allow}, {"external_directory", "/opt/*", Deny}}, `/opt/tool/run a`, false, Deny},
		{"a system's program", []Rule{{"bash", "*", Allow}, {"external_directory", "*", Deny}}, `/usr/bin/ls a`, false, Allow},
		{"the value of an option outside", []Rule{{"bash", "*", Allow}, {"external_directory", "/etc/*", Deny}}, `tool -f/etc/passwd`, false, Deny},
		{"the value of a long option", []Rule{{"bash", "*", Allow}, {"read", "*.env", Deny}}, `tool --config=.env`, false, Deny},
		{"outside from an unknown place", []Rule{{"bash", "*", Allow}, {"external_directory", "/etc/*", Deny}}, `cat $X/../../../../etc/passwd`, false, Deny},
		{"a path among several in a word", []Rule{{"bash", "*", Allow}, {"read", "secret/*", Deny}}, `tool x:../project/secret/a`, false, Deny},
		{"a file that a variable names", []Rule{{"bash", "*", Allow}, {"read", "secret/*", Deny}}, `f=secret/a; cat < $f`, false, Deny},
		{"a file that a variable names is written", []Rule{{"bash", "*", Allow}, {"edit", "secret/*", Deny}}, `f=secret/a; echo x > $f`, false, Deny},
		{"what find runs", []Rule{{"bash", "find *", Allow}, {"bash", "touch {}", Allow}}, `find . -exec touch {} \; -print`, false, Allow},
		{"what find runs once", []Rule{{"bash", "find *", Allow}, {"bash", "touch {}", Allow}}, `find . -exec touch {} + -print`, false, Allow},
		{"find without a command", []Rule{{"bash", "find *", Allow}}, `find . -exec`, false, Allow},
		{"a subcommand behind options asks", []Rule{{"bash", "*", Allow}, {"bash", "git push *", Ask}}, `git -c a=b push`, false, Ask},
		{"another permission's rule on what is unknown", []Rule{{"bash", "*", Allow}, {"read", "*.key", Deny}, {"edit", "*.go", Ask}}, `eval "$x"`, false, Allow},
		{"everything allowed", []Rule{{"*", "*", Allow}}, `curl x | sh; rm -rf /`, false, Allow},
		{"an empty script", nil, ``, false, Allow},
		{"a rule does not cover the unknown", []Rule{{"bash", "sh *", Allow}}, `sh -c "$x"`, false, Ask},
		{"a denied word as an argument", []Rule{{"bash", "*", Allow}, {"bash", "rm *", Deny}}, `echo rm -rf x; git commit -m 'rm x'`, false, Allow},
	}
	for _, test := range tests {
		levels := []Level{{Name: DefaultLevel, Rules: Defaults(test.confined)}, {Name: "opencode.json", Rules: test.rules}}
		d := DecideShell(levels, test.script, testDir, testHome, test.confined)
		if d.Action != test.want || d.Reason == "" {
			t.Errorf("%s: %s: got %s (%s), want %s", test.name, test.script, d.Action, d.Reason, test.want)
		}
	}
}

// S2: the analysis stays bounded, whatever it is fed.
func TestParseShellBounded(t *testing.T) {
	for _, script := range []string{
		strings.Repeat("(", 3_000), strings.Repeat("$(", 3_000), strings.Repeat("(", 5_000) + "rm" + strings.Repeat(")", 5_000),
		strings.Repeat(`"${x:-`, 3_000), strings.Repeat("{a,b}", 1000), "echo {1..1000000000}", strings.Repeat("eval ", 2_000) + "rm x",
		strings.Repeat("env ", 2_000) + "rm x", strings.Repeat("x=a;x=b;$x;", 500), strings.Repeat("a", 1<<20),
		"A=1 A=2; " + strings.Repeat(`sh -c "A=1; A=2; A=3; `, 6) + `$A` + strings.Repeat(`"`, 6), strings.Repeat("rm x\n", 2_000),
	} {
		before := cputime.Used()
		d := DecideShell(allowAllBut("rm *"), script, testDir, testHome, false)
		if d.Action == Allow && strings.Contains(script, "rm") {
			t.Errorf("%.40q… is allowed", script)
		}
		if took := cputime.Used() - before; took > 2*time.Second {
			t.Errorf("%.40q… took %s of a processor", script, took)
		}
	}
}

func FuzzParseShell(f *testing.F) {
	for _, d := range disguises(f) {
		f.Add(d.script)
	}
	f.Add("for i in {1..3}; do echo $i > /dev/null; done")
	levels := allowAllBut("rm *")
	f.Fuzz(func(t *testing.T, script string) {
		s := ParseShell(script, testDir, testHome)
		if s.ReadOnly != (s.Why == "") {
			t.Errorf("read-only %v but why %q", s.ReadOnly, s.Why)
		}
		if s.Err != nil && s.ReadOnly {
			t.Error("what cannot be parsed counts as read-only")
		}
		if d := DecideShell(levels, script, testDir, testHome, false); s.Err != nil && d.Action == Allow {
			t.Error("what cannot be parsed is allowed although something is denied")
		}
		if len(script) < 1000 && s.Err == nil && !strings.HasSuffix(script, `\`) && !strings.Contains(script, "<<") && !strings.Contains(script, "#") {
			joined := "true\nrm x\n" + script
			if ParseShell(joined, testDir, testHome).Err == nil {
				if d := DecideShell(levels, joined, testDir, testHome, false); d.Action != Deny {
					t.Errorf("%q hides rm", joined)
				}
			}
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add(`{"bash": {"*": "ask"}}`)
	f.Add(`"deny"`)
	f.Fuzz(func(t *testing.T, raw string) {
		rules, err := ParseRules(json.RawMessage(raw))
		if err != nil && centurion.KindOf(err) != centurion.KindConfig {
			t.Errorf("kind %s", centurion.KindOf(err))
		}
		for _, r := range rules {
			if r.Action != Allow && r.Action != Ask && r.Action != Deny {
				t.Errorf("rule %v", r)
			}
		}
	})
}

func BenchmarkDecideShell(b *testing.B) {
	levels := allowAllBut("rm *", "git push *")
	for b.Loop() {
		DecideShell(levels, `cd src && timeout 60 go test ./... 2>&1 | grep -v '^ok' | tail -50`, testDir, testHome, false)
	}
}

// S4, issue "Truth" 2: a project's file that asks is taken at its word: what a script's analysis allows by default asks then, and its allow changes nothing.
func TestUntrustedAskHolds(t *testing.T) {
	def := Level{Name: DefaultLevel, Rules: Defaults(false)}
	for action, want := range map[Action]Action{Allow: Allow, Ask: Ask, Deny: Deny} {
		theirs := Level{Name: "project", Untrusted: true, Rules: []Rule{{"bash", "*", action}}}
		if d := DecideShell([]Level{def, theirs}, "ls", testDir, testHome, false); d.Action != want {
			t.Errorf("ls with %s in the project: %+v", action, d)
		}
		if d := DecideShell([]Level{def, theirs}, "touch x", testDir, testHome, false); d.Action == Allow {
			t.Errorf("touch with %s in the project: %+v", action, d)
		}
	}
}

// Widens names what an untrusted level cannot do, also where it covers a stricter pattern, and nothing that is as strict.
func TestWidens(t *testing.T) {
	def := Level{Name: DefaultLevel, Rules: Defaults(false)}
	mine := Level{Name: "global", Rules: []Rule{{"bash", "go test *", Allow}, {"edit", "*.lock", Deny}}}
	for rule, want := range map[Rule]bool{
		{"*", "*", Allow}: true, {"bash", "rm *", Allow}: true, {"bash", "go test *", Allow}: false, {"read", "*", Allow}: true, {"read", "a.go", Allow}: false,
		{"edit", "*", Ask}: true, {"edit", "a.go", Ask}: false, {"bash", "*", Ask}: false, {"*", "*", Deny}: false, {"webfetch", "*", Allow}: true,
	} {
		if got := len(Widens([]Level{def, mine}, []Rule{rule})) > 0; got != want {
			t.Errorf("%s widens: %v", rule, got)
		}
	}
}

// A project's own file that is as strict as what stands above it changes nothing: what decided is what a person can trust.
func TestUntrustedDecidesOnlyStricter(t *testing.T) {
	for action, level := range map[Action]string{Allow: "global", Ask: "global", Deny: "project"} {
		d := Decide([]Level{{Name: "global", Rules: []Rule{{"bash", "*", Ask}}}, {Name: "project", Untrusted: true, Rules: []Rule{{"bash", "ls", action}}}}, "bash", []string{"ls"})
		if d.Level != level {
			t.Errorf("%s in the project: %+v", action, d)
		}
	}
}
