package permission

import (
	"strings"
	"testing"
)

// What rules match of a script, what an answer of always opens for the future, what lies outside, and what is decided where commands are
// confined and nobody has written a rule: an always for less would ask again, one for more would allow what nobody has seen.
func TestScriptFacts(t *testing.T) {
	confined := []Level{{Name: DefaultLevel, Rules: Defaults(true)}}
	for _, test := range []struct {
		script                    string
		confined                  Action
		commands, always, outside string // each separated by |
	}{
		{`go test ./...`, Allow, "go test ./...", "go test *", ""},
		{`python3 -c 'import os; os.system("curl x")'`, Ask, `python3 -c import os; os.system("curl x")`, "", ""},
		{`grep -f/etc/passwd x`, Ask, "grep -f/etc/passwd x", "grep *", "/etc/passwd"},
		{`watchexec -- rm x`, Allow, "watchexec -- rm x", "watchexec *", ""},
		{`cat ~bob/x`, Ask, "cat ~bob/x", "", "~bob/x"},
		{`complete -C 'rm x' ls`, Allow, "rm x|ls|complete -C rm x ls", "rm *|complete *", ""},
		{`exec sh <<< 'rm x'`, Allow, "rm x|sh", "rm *", ""},
		{`bash x.sh`, Allow, "bash x.sh", "", ""},
		{`bash -c 'touch x; rm y'`, Allow, "touch x|rm y|bash -c touch x; rm y", "touch *|rm *", ""},
		{`X=ls; $X a`, Allow, "$X a|a", "a *", ""},
		{`find . -type f -execdir rm -f {} +`, Allow, "rm -f {}|find . -type f -execdir rm -f {} +", "rm *|find *", ""},
		{`x='$(date)'; echo ${x@P}`, Ask, "echo ${x@P}|${x@P}", "", ""},
		{`/tmp/ls`, Ask, "/tmp/ls", "/tmp/ls *", "/tmp/ls"},
		{`./run.sh a`, Allow, "./run.sh a", "./run.sh *", ""},
		{`f() { ls; }; f`, Allow, "ls|function f|f", "ls *|f *", ""},
		{`setsid rm x`, Allow, "rm x|setsid rm x", "rm *", ""},
		{`sudo -u root make install`, Allow, "make install|sudo -u root make install", "make install *", ""},
		{`env A=b make`, Allow, "make", "make *", ""},
		{`nohup make`, Allow, "make", "make *", ""},
		{`timeout 5 make test`, Allow, "make test", "make test *", ""},
		{`xargs -n 1 touch < list`, Allow, "touch|xargs -n 1 touch", "touch *", ""},
		{`docker run --rm alpine make`, Ask, "docker run --rm alpine make", "docker run --rm alpine make", ""},
		{`git push origin main`, Ask, "git push origin main", "git push *", ""},
		{`git -c a=b commit`, Allow, "git -c a=b commit", "", ""},
		{`npm publish`, Ask, "npm publish", "npm publish *", ""},
		{`npm run build`, Allow, "npm run build", "npm run build *", ""},
		{`curl https://x`, Ask, "curl https://x", "curl *", ""},
		{`make > /tmp/out/log`, Ask, "make", "make *", "/tmp/out/log"},
		{`make 2>&1 | tee log`, Allow, "make|tee log", "make *|tee *", ""},
		{`eval "$x"`, Ask, "eval $x", "", ""},
		{`eval touch x`, Allow, "touch x|eval touch x", "touch *", ""},
		{`trap 'rm x' EXIT`, Allow, "rm x|EXIT|trap rm x EXIT", "rm *|EXIT *|trap *", ""},
		{`awk '{print $1}' f`, Allow, "awk {print $1} f", "awk *", ""},
		{`awk 'BEGIN { system("rm x") }'`, Ask, `awk BEGIN { system("rm x") }`, "", ""},
		{`sed -i s/a/b/ f`, Allow, "sed -i s/a/b/ f", "sed *", ""},
		{`sed 's/a/date/e' f`, Ask, "sed s/a/date/e f", "", ""},
		{`at now <<< 'touch x'`, Allow, "at now", "at *", ""},
		{`ssh host rm x`, Ask, "rm x|ssh host rm x", "rm *|ssh *", ""},
		{`for i in 1 2; do touch $i; done`, Allow, "touch $i|touch", "touch *", ""},
		{`make &`, Allow, "make", "make *", ""},
		{`echo x > a.txt`, Allow, "echo x", "echo *", ""},
		{`cat < /dev/tcp/a/80`, Ask, "cat|< /dev/tcp/a/80", "", ""},
		{`exec 3<>/dev/tcp/a/80`, Ask, "exec|> /dev/tcp/a/80", "exec *", ""},
		{`source x`, Ask, "source x", "", ""},
		{`PATH=. make`, Ask, "make|PATH=…", "make *", ""},
		{`FOO=x make`, Allow, "make|FOO=…", "make *", ""},
		{`local -n c=y; y='rm x'; $c`, Allow, "local -n c=y|$c|rm x", "y *|rm *", ""},
		{`ln -s /etc x`, Ask, "ln -s /etc x", "ln *", "/etc"},
		{`tar -I 'zstd -1' -cf a b`, Allow, "tar -I zstd -1 -cf a b", "tar *", ""},
		{`command -v go`, Allow, "command -v go", "command *", ""},
		{`test -v 'a[$(x)]'`, Ask, "test -v a[$(x)]|$((…))", "", ""},
		{`seq 1 3 | head -1`, Allow, "seq 1 3|head -1", "seq *|head *", ""}, // only a rule asks about it, and "always" answers that
		{`echo $((1+1))`, Allow, "echo $((1 + 1))", "echo *", ""},
	} {
		s := ParseShell(test.script, testDir, testHome)
		for what, c := range map[string]struct {
			got  []string
			want string
		}{"commands": {s.Commands, test.commands}, "always": {s.Always, test.always}, "outside": {s.Outside, test.outside}} {
			if got := strings.Join(c.got, "|"); got != c.want {
				t.Errorf("%s: %s %q, want %q", test.script, what, got, c.want)
			}
		}
		if d := DecideShell(confined, test.script, testDir, testHome, true); d.Action != test.confined {
			t.Errorf("%s: confined %s (%s), want %s", test.script, d.Action, d.Reason, test.confined)
		}
	}
}
