package permission

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// linked is a project with links, by their absolute names: each leads elsewhere, the other files to themselves.
func linked() Place {
	links := map[string]string{"/home/ada/project/key": "/home/ada/.ssh/id_ed25519", "/home/ada/project/sub/key": "/home/ada/.ssh/id_ed25519", "/home/ada/project/notes": ".env",
		"/home/ada/project/inner": "sub", "/home/ada/project/out": "/var/out", "/home/ada/project/rc": "/home/ada/.bashrc", "/home/ada/project/a/a/key": "/home/ada/.ssh/id_ed25519"}
	return Place{Dir: testDir, Home: testHome, Follow: func(name string, glob, deep bool) (targets []string, ok bool) {
		if strings.HasSuffix(name, "/huge") {
			return nil, false
		}
		for link, to := range links {
			found := path.Clean(name) == link
			if glob {
				found, _ = path.Match(name, link)
			}
			if found || deep && strings.HasPrefix(link, path.Clean(name)+"/") {
				targets = append(targets, to)
			}
		}
		return targets, true
	}, GitRuns: func(dir string) string {
		if dir == testDir+"/hostile" {
			return "git runs ./x"
		}
		return ""
	}}
}

// S1, S2, issue "Trust" 2: what a path leads to is decided, not only its name.
func TestLinksAreFollowed(t *testing.T) {
	for script, want := range map[string]Action{
		`cat a.go`: Allow, `cat inner`: Allow, `ls -la sub`: Allow, `grep -r x sub`: Allow, `diff a b`: Allow, `cat *.go`: Allow, `grep key a.go`: Allow, `wc -l $(git ls-files)`: Ask,
		`cat key`: Ask, `cat < key`: Ask, `cat k*`: Ask, `f="a.go k*"; cat $f`: Ask, `cat */key`: Ask, `cat [k]ey`: Ask, `head -n 1 sub/../key`: Ask, `cat /home/ada/project/key`: Ask, `cat "$PWD/key"`: Ask, `cat ./key`: Ask,
		`cat notes`: Ask, `timeout 5 cat key`: Ask, `x=key; cat $x`: Ask, `for f in k*; do cat "$f"; done`: Ask, `cd sub && cat key`: Ask, `cd sub; cd ..; cat key`: Ask, `(cd sub && cat key)`: Ask,
		`cd sub && ls`: Allow, `cd a && cd a && cat key`: Ask, `for i in 1 2; do cd a; cat key; done`: Ask, `for i in 1 2; do cat key; cd a; done`: Ask, `while true; do cd sub; done`: Ask, `grep -R x sub`: Ask,
		`grep --dereference-rec x .`: Ask, `grep -Rn x`: Ask, `grep -- x a.go`: Allow, `grep -r x .`: Allow, `diff -r sub other`: Ask, `cat huge`: Ask, `grep x huge`: Ask, `cat < huge`: Ask, `ls out`: Ask, `echo "$(cat key)"`: Ask, `cat a.go | sort - key`: Ask,
		`git diff`: Allow, `cd hostile && git diff`: Ask, `cd hostile && ls`: Allow, `git -C hostile diff`: Ask, `git diff; cd hostile`: Allow, `sort -k1 --files0-from=key`: Ask, `git blame --ignore-revs-file=key a`: Ask,
	} {
		if d := linked().Decide(person(), script, false); d.Action != want {
			t.Errorf("%s: %s (%s)", script, d.Action, d.Reason)
		}
		if s := linked().Parse(script); s.ReadOnly != (want == Allow) || s.ReadOnly != (s.Why == "") {
			t.Errorf("%s: only reads %v, %q", script, s.ReadOnly, s.Why)
		}
	}
	denied := person(Rule{"*", "*", Allow}, Rule{"external_directory", "*/.ssh/*", Deny}, Rule{"read", ".env", Deny}, Rule{"external_directory", "/home/ada/.bashrc", Deny}, Rule{"edit", ".env", Deny})
	for script, want := range map[string]Action{`cat key`: Deny, `cp key x`: Deny, `cat notes`: Deny, `echo x > rc`: Deny, `echo x > notes`: Deny, `echo x > inner`: Allow, `echo x >> rc`: Deny, `tee rc`: Deny, `cat out`: Allow, `python3 key`: Deny, `make -C sub`: Allow} {
		if d := linked().Decide(denied, script, true); d.Action != want {
			t.Errorf("%s by rule: %s (%s)", script, d.Action, d.Reason)
		}
	}
	if s := linked().Parse("cat key"); !slices.Equal(s.Outside, []string{"/home/ada/.ssh/id_ed25519"}) {
		t.Errorf("outside %q", s.Outside)
	}
}

// S2: whatever wraps a denied command, it stays denied.
func FuzzDeniedStaysDenied(f *testing.F) {
	programs := []string{"X", "env X", "timeout 5 X", "nice -n 5 X", "sudo -u a X", "docker run alpine X", "find . -exec X {} +", "ip netns exec n X", "bwrap --bind / / X", "unshare -r X", "strace -f X",
		"busybox X", "xargs -n 1 X", "sh -c 'X'", "tar -I 'X' -cf a b", "at now <<< 'X'", "eval 'X'", "make -f - <<< 'a: ; X'"}
	shells := []string{"X", "X | cat", "( X )", "if true; then X; fi", "echo $(X)", "f() { X; }; f", "while X; do break; done", "! X", "X &", "x=$(X) ls", "cat <(X)"}
	for i := range programs {
		f.Add(uint8(i), uint8(i+3), uint8(i), "-rf build")
	}
	levels := allowAllBut(forbidden...)
	f.Fuzz(func(t *testing.T, inner, outer, around uint8, operands string) {
		if strings.Trim(operands, "abcdefghijklmnopqrstuvwxyz0123456789-./ ") != "" || len(operands) > 100 {
			return
		}
		within := func(wrap string, script string) string { return strings.ReplaceAll(wrap, "X", script) }
		script := within(programs[int(inner)%len(programs)], "rm "+operands)
		if !strings.Contains(script, "'") {
			script = within(programs[int(outer)%len(programs)], script)
		}
		script = within(shells[int(around)%len(shells)], script)
		if d := DecideShell(levels, script, testDir, testHome, true); d.Action != Deny {
			t.Errorf("%q: %s (%s)", script, d.Action, d.Reason)
		}
	})
}
