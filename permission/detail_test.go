package permission

import (
	"strings"
	"testing"
)

// S2: what reaches the network or publishes something is known by the program and its subcommand, and asks although commands are
// confined; what does neither goes on.
func TestNetworkAsks(t *testing.T) {
	for what, scripts := range map[string][]string{
		"network": {
			`curl x`, `wget x`, `ssh host ls`, `gh pr list`, `kubectl get pods`, `npx x`, `apt-get install x`, `git fetch`, `git pull`, `git clone x`,
			`git ls-remote x`, `git submodule update`, `git archive x`, `git lfs pull`, `git svn fetch`, `git remote update`, `git remote show origin`,
			`git remote prune origin`, `npm install`, `npm ci`, `npm audit`, `pnpm add x`, `yarn`, `yarn add x`, `bun x y`, `pip install x`, `uv sync`,
			`poetry lock`, `bundle update`, `composer require x`, `go get x`, `go install x@latest`, `go mod download`, `go mod tidy`, `cargo fetch`,
			`cargo install x`, `docker pull x`, `docker run x`, `podman build .`, `cat < /dev/tcp/a/80`, `cat < /dev/udp/a/80`, `echo x > /dev/tcp/a/80`,
			`echo x > /dev/udp/a/80`, `curl -s x`,
		},
		"publishes": {
			`git push`, `git send-email x`, `git send-pack x`, `gh release create x`, `kubectl apply -f x`, `terraform apply`, `npm publish`, `npm unpublish x`,
			`pnpm publish`, `yarn publish`, `npm deprecate x y`, `twine upload x`, `poetry publish`, `gem push x`, `cargo publish`, `cargo yank x`, `docker push x`,
			`git --no-pager push`,
		},
		"": {
			`git commit -m x`, `git remote add origin x`, `git remote rename a b`, `git show update`, `npm test`, `npm run build`, `yarn build`, `npm`, `pip list`,
			`poetry run x`, `go build ./...`, `go mod verify`, `go vendor tidy`, `cargo build`, `docker ps`, `make`, `echo curl`, `git status`,
		},
	} {
		for _, script := range scripts {
			s := ParseShell(script, testDir, testHome)
			if s.Network != (what != "") || s.Push != (what == "publishes") {
				t.Errorf("%s: network %v, publishes %v, want %q", script, s.Network, s.Push, what)
			}
			want, word := Ask, map[string]string{"network": "it uses the network", "publishes": "it publishes something"}[what]
			if what == "" {
				want = Allow
			}
			if d := DecideShell(person(), script, testDir, testHome, true); d.Action != want || !strings.Contains(d.Reason, word) {
				t.Errorf("%s, confined: %s (%s)", script, d.Action, d.Reason)
			}
		}
	}
}

// S2: a variable whose value the script may change on its way is not known.
func TestVariablesThatChange(t *testing.T) {
	for _, script := range []string{
		`X=ls; X+=x; $X a`, `X=ls; X=$(cat f); $X a`, `X=ls; read X; $X a`, `X=ls; read -r Y X; $X a`, `X=ls; mapfile X; $X a`, `X=ls; printf -v X s; $X a`,
		`X=ls; unset X; $X a`, `X=ls; X[0]=pwd; $X a`, `X=(ls); $X a`, `for X; do $X a; done`, `X=ls; for X in $(cat f); do $X a; done`, `X=ls; export X; $X a`,
		`: ${X:=ls}; X=ls; $X a`, `: ${X=ls}; X=ls; $X a`, `X=1; ((X=2)); $X a`, `X=1; echo $((X++)); $X a`, `X=1; echo $((X=3)); $X a`,
		`for X in a b c d e f g h i; do $X a; done`, `HOME=$(pwd); ~/x`, `read HOME; $HOME/x`, `PWD=$(pwd); $PWD/x`,
	} {
		if d := DecideShell(allowAllBut("rm *"), script, testDir, testHome, true); d.Action != Ask {
			t.Errorf("%s\n\tgot %s (%s), want ask", script, d.Action, d.Reason)
		}
	}
	for _, script := range []string{`X=ls; $X a`, `for X in ls pwd; do $X a; done`, `for X in a b c d e f g h; do $X a; done`} {
		if d := DecideShell(allowAllBut("rm *"), script, testDir, testHome, true); d.Action != Allow {
			t.Errorf("%s\n\tgot %s (%s), want allow", script, d.Action, d.Reason)
		}
	}
}

// S2: what a rule speaks of may hide in what is not known, wherever that stands.
func TestCouldMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"rm -rf *", "rm ?", true}, {"git push", "git ?", true}, {"git push", "? push", true}, {"git push", "?", true}, {"git push", "??", true}, {"a!c", "a?c", true},
		{"a!", "ab", true}, {"a", "ab", false}, {"ab", "a?", true}, {"ab", "ab?", true}, {"abc", "a?d", false}, {"*x", "?y", false}, {"x*", "yx?", false},
		{"rm *", "rm", true}, {"*b", "ab", true}, {"*b", "b", true}, {"*", "", true}, {"a*", "ba", false}, {"a*c", "a?", true}, {"!", "", false}, {"!b", "?b", true},
		{"git push", "git commit ?", false}, {"git * --force", "git push ?", true}, {"b", "?a", false},
	} {
		unknowns := func(s string) string { return strings.NewReplacer("?", unknown, "!", "?").Replace(s) }
		if got := couldMatch(strings.ReplaceAll(test.pattern, "!", "?"), unknowns(test.text)); got != test.want {
			t.Errorf("%q could match %q: %v", test.pattern, test.text, got)
		}
	}
}

// S2: which rules an unknown part meets: those of the same permission, in the order in which they count.
func TestDoubt(t *testing.T) {
	for _, test := range []struct {
		rules  []Rule
		script string
		want   Action
	}{
		{[]Rule{{"*", "*", Allow}, {"edit", "x*", Deny}}, `echo $X`, Allow},
		{[]Rule{{"*", "*", Allow}, {"edit", "x*", Deny}}, `echo a > $X`, Ask},
		{[]Rule{{"*", "*", Allow}, {"edit", "x*", Deny}}, `echo a > xy`, Deny},
		{[]Rule{{"*", "*", Allow}, {"bash", "git *", Deny}, {"bash", "git log *", Allow}}, `git log $X`, Allow},
		{[]Rule{{"*", "*", Allow}, {"bash", "git log -p *", Deny}, {"bash", "git log *", Allow}}, `git log $X`, Allow},
		{[]Rule{{"*", "*", Allow}, {"bash", "git log *", Allow}, {"bash", "git log -p *", Ask}}, `git log $X`, Ask},
		{[]Rule{{"bash", "make *", Allow}}, `make $X`, Allow},
		{[]Rule{{"*", "*", Allow}, {"bash", "git * *", Deny}}, `git`, Allow}, // what is known is taken literally
		{[]Rule{{"bash", "*", Allow}, {"read", "secret", Deny}}, `cat secret`, Deny},
		{[]Rule{{"bash", "*", Allow}, {"read", "secret", Deny}}, `cat < secret`, Deny},
		{[]Rule{{"bash", "*", Allow}}, `cat /etc/passwd`, Ask},
		{[]Rule{{"bash", "*", Allow}, {"external_directory", "/etc/*", Allow}}, `cat /etc/passwd`, Allow},
		{[]Rule{{"bash", "ls *", Ask}}, `ls a`, Ask},
		{[]Rule{{"bash", "make *", Allow}, {"bash", "/opt/x/make *", Ask}}, `/opt/x/make all`, Ask},
		{[]Rule{{"bash", "sh *", Allow}}, `sh -c "$X"`, Ask},
		{[]Rule{{"bash", "bash *", Allow}}, `bash -s x < y`, Ask},
		{[]Rule{{"*", "*", Allow}, {"edit", "*", Deny}, {"edit", "src/*", Ask}}, `echo a > $X`, Deny}, // a doubt lifts no deny
		{nil, `make --file=.env`, Ask},
		{[]Rule{{"*", "*", Allow}, {"bash", "timeout *", Deny}}, `timeout 5 ls`, Deny},       // the wrapper itself
		{[]Rule{{"*", "*", Allow}, {"bash", "make install", Ask}}, `make $X install`, Allow}, // that text is only held: a deny alone counts
		{[]Rule{{"*", "*", Allow}, {"bash", "make install", Deny}}, `make $X install`, Deny},
	} {
		if d := DecideShell(person(test.rules...), test.script, testDir, testHome, true); d.Action != test.want {
			t.Errorf("%v %s: %s (%s), want %s", test.rules, test.script, d.Action, d.Reason, test.want)
		}
	}
}

// S2: what nobody can read to its end is not known, and asks although commands are confined.
func TestTooMuchToFollow(t *testing.T) {
	deep := "ls"
	for range maxDepth + 1 {
		deep = "eval " + deep
	}
	for name, script := range map[string]string{
		"too long":      "ls " + strings.Repeat("a", maxText),
		"too deep":      deep,
		"too wrapped":   strings.Repeat("env ", maxWraps+1) + "ls",
		"too many":      strings.Repeat("make\n", maxUnits+1),
		"no script":     `sh -c 'if'`,
		"another shell": `x='a[$(date)]'; [[ $x -eq 1 ]]`,
		"a subscript":   `x='a[$(date)]'; [[ -v $x ]]`,
		"let":           `x='a[$(date)]'; let y=x`,
	} {
		if d := DecideShell(person(), script, testDir, testHome, true); d.Action != Ask {
			t.Errorf("%s: %s (%s)", name, d.Action, d.Reason)
		}
	}
	if d := DecideShell(person(), strings.Repeat("make\n", maxUnits), testDir, testHome, true); d.Action != Allow {
		t.Errorf("as many as there may be: %s (%s)", d.Action, d.Reason)
	}
	if d := DecideShell(person(), strings.TrimPrefix(deep, "eval "), testDir, testHome, true); d.Action != Allow {
		t.Errorf("as deep as it may be: %s (%s)", d.Action, d.Reason)
	}
}

// The defaults: commands ask, or are allowed where they are confined; a shell's own analysis says why.
func TestDefaultsForCommands(t *testing.T) {
	for _, confined := range []bool{false, true} {
		levels := []Level{{Name: DefaultLevel, Rules: Defaults(confined)}}
		want := map[bool]Action{false: Ask, true: Allow}[confined]
		if d := Decide(levels, "bash", []string{"make"}); d.Action != want || d.Level != DefaultLevel {
			t.Errorf("confined %v: %+v", confined, d)
		}
		for script, why := range map[string]string{
			`ls`:         `"ls" plainly only reads`,
			`make`:       map[bool]string{false: `"make" needs approval: make may`, true: `"make" is allowed because commands are confined to the project`}[confined],
			``:           "it does nothing",
			`sh -c "$X"`: `needs approval`,
		} {
			if d := DecideShell(levels, script, testDir, testHome, confined); !strings.Contains(d.Reason, why) {
				t.Errorf("%s, confined %v: %s", script, confined, d.Reason)
			}
		}
	}
	d := DecideShell(person(Rule{"bash", "sh *", Allow}), `sh -c "$X"`, testDir, testHome, false)
	if d.Action != Ask || !strings.Contains(d.Reason, `asks although the rule bash "sh *": allow in opencode.json matches, because`) {
		t.Errorf("an allow rule for what is not known: %+v", d)
	}
}

// What an "always" offers: the program with its subcommand, of interpreters and shells the very command, of what is not known nothing.
func TestAlwaysPattern(t *testing.T) {
	for script, want := range map[string]string{
		`make all`: "make all *", `make`: "make *", `go test ./...`: "go test *", `go run .`: "go run *", `npm run build -- x`: "npm run build *", `npm -s test`: "npm -s test",
		`git stash pop`: "git stash pop *", `git remote add a b`: "git remote add *", `go mod tidy -v`: "go mod tidy *", `python3 x.py a`: "python3 x.py a", `python3 *.py`: "",
		`rm -rf a`: "rm *", `make -j 4`: "make -j 4", `make "a b"`: "make a b", `make $X`: "", `git -C x commit`: "git -C x commit", `awk 1 x`: "awk *", `bash x.sh`: "",
		`docker run x y`: "docker run x *", `git submodule add x`: "git submodule add *", `git worktree add x`: "git worktree add *", `git config a b`: "git config a *",
		`git -c core.hooksPath=x commit`: "",
	} {
		s := ParseShell(script, testDir, testHome)
		if got := strings.Join(s.Always, "|"); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// S2: a deny finds what it forbids behind every program that runs its arguments.
func TestDeniedBehindWrappers(t *testing.T) {
	for wrap := range strings.SplitSeq("time|nice|nohup|timeout 5|gtimeout 5|command|stdbuf -oL|ionice -c 3|env|builtin|exec|noglob|xargs|sudo|doas|doas -u root|run0|pkexec|busybox|toybox|setsid|"+
		"chroot /x|unshare|nsenter -t 1|setpriv|chrt 5|taskset 1|numactl|flock x|watch|parallel|strace|ltrace|gdb|systemd-run|unbuffer|caffeinate|fakeroot|xvfb-run|dbus-run-session|ssh host|"+
		"npx|bunx|uvx|pipx run|su ada -c|runuser -c|script -c", "|") {
		script := wrap + " rm -rf build"
		if strings.HasSuffix(wrap, "-c") {
			script = wrap + " 'rm -rf build'"
		}
		if d := DecideShell(allowAllBut("rm *"), script, testDir, testHome, false); d.Action != Deny {
			t.Errorf("%s: %s (%s)", script, d.Action, d.Reason)
		}
	}
}
