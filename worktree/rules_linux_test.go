package worktree

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an agent leaves is stored as git stores it, whatever rules there are, and which rule it takes.
func TestFilesAreStoredAsGitDoes(t *testing.T) {
	dos := `printf 'one\r\ntwo\r\n' > d/new.txt; `
	for name, test := range map[string]struct {
		files  map[string]string
		config [2]string
		info   string // info/attributes
		script string
	}{
		"no rules":                    {script: dos + "echo more >> d/a.txt; chmod +x d/b.sh; rm d/c.txt; : > empty"},
		"text=auto":                   {files: map[string]string{".gitattributes": "* text=auto\n"}, script: dos},
		"for other files":             {files: map[string]string{".gitattributes": "*.crlf text eol=crlf\n"}, script: dos},
		"for one of the files":        {files: map[string]string{".gitattributes": "b.* text\n"}, script: dos + "printf 'x\\r\\n' > d/b.sh"},
		"unset below":                 {files: map[string]string{".gitattributes": "* text=auto\n", "d/.gitattributes": "* -text\n"}, script: dos + "printf 'x\\r\\n' > x"},
		"rules are removed":           {files: map[string]string{".gitattributes": "* text=auto\n", "d/.gitattributes": "* -text\n"}, script: dos + "rm d/.gitattributes"},
		"their directory is replaced": {files: map[string]string{".gitattributes": "* text=auto\n", "d/.gitattributes": "* -text\n"}, script: "rm -r d; mkdir d; " + dos},
		"rules are added":             {script: dos + "echo '*.txt text' > .gitattributes"},
		"ignored rules are added":     {files: map[string]string{".gitignore": ".gitattributes\n"}, script: dos + "echo '*.txt text' > d/.gitattributes"},
		"autocrlf":                    {config: [2]string{"core.autocrlf", "input"}, script: dos},
		"autocrlf true":               {config: [2]string{"core.autocrlf", "true"}, script: dos},
		"no modes":                    {config: [2]string{"core.fileMode", "false"}, script: "chmod +x d/a.txt; echo x > new; chmod +x new; echo x >> d/a.txt"},
		"info/attributes":             {info: "*.txt text\n", script: dos},
		"a link":                      {script: dos + "ln -s a.txt d/link; echo more >> d/a.txt"},
		"a large file":                {script: dos + "head -c 3000000 /dev/zero > d/large"},
		"ignored files":               {files: map[string]string{".gitignore": "*.log\n!keep.log\nbuild/\n\\!odd\n", "d/.gitignore": "gen*\n"}, script: "cd d; for f in x.log keep.log gen1 build '!odd' n.txt; do echo x > $f; done"},
		"rules of its own":            {files: map[string]string{".gitignore": "*.log\n"}, script: "echo x > d/x.log; echo x > d/y.tmp; echo '*.tmp' >> .gitignore; echo x > d/z.log"},
		"info/exclude":                {script: "echo x > d/x.excluded; echo x > d/y"},
		"a name with a line feed":     {script: "echo x > 'd/a\nb'; echo x > 'd/ü'"},
		"many files":                  {files: map[string]string{".gitignore": "*7\n"}, script: "i=0; while [ $i -lt 1500 ]; do echo $i > d/file$i; i=$((i+1)); done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"d/a.txt": "a\n", "d/b.sh": "b\n", "d/c.txt": "c\n"}
			maps.Copy(files, test.files)
			x := layeredRig(t, files)
			if test.config[0] != "" {
				x.person("config", test.config[0], test.config[1])
			}
			put(t, filepath.Join(x.top, ".git/info/exclude"), "*.excluded\n")
			if test.info != "" {
				put(t, filepath.Join(x.top, ".git/info/attributes"), test.info)
			}
			c := x.takeHead("work")
			x.sh(c, test.script)
			done := commit(t, c)
			plain := filepath.Join(t.TempDir(), "plain")
			for _, run := range [][]string{{"cp", "-r", x.top, plain}, {"sh", "-c", "cd '" + plain + "'\n" + test.script}} {
				if out, err := exec.Command(run[0], run[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v", out, err)
				}
			}
			gitIn(t, plain, "add", "-A")
			if got, want := x.person("ls-tree", "-r", done.ID), gitIn(t, plain, "ls-tree", "-r", gitIn(t, plain, "write-tree")); got != want {
				t.Errorf("stored is\n%s\ngit stores\n%s", got, want)
			}
		})
	}
}

// A task in an overlay whose files no rule concerns costs no process of git once others have been.
func TestProcessesOfOneTaskInAnOverlay(t *testing.T) {
	x := layeredRig(t, map[string]string{"out/a.txt": "a\n", ".gitignore": "*.log\n", ".gitattributes": "*.png -text\n"})
	spent := counted(t, x.Repo)
	tip := x.person("rev-parse", "HEAD")
	var all []*Checkout
	for n := range 3 {
		c := x.takeHead(fmt.Sprint("work", n))
		at, _, err := c.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(at, "out", fmt.Sprint("new", n)), "x\n")
		done := commit(t, c)
		laid, err := x.Rebase(t.Context(), done.ID, tip)
		if err == nil {
			tip = laid.Commit
			err = c.Move(t.Context(), tip)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if got := spent(); n > 1 && got > 0 {
			t.Errorf("task %d takes %d processes of git", n, got)
		}
	}
	for _, c := range all { // others have landed since
		if kept, err := c.Release(t.Context(), tip); kept != "" || err != nil {
			t.Errorf("the branch %s is kept, %v", kept, err)
		}
	}
	if got := spent(); got > 0 {
		t.Errorf("giving them back takes %d processes of git", got)
	}
}

// The processes that answer about rules are those of one tree, and end with the repository's use.
func TestAnswersEnd(t *testing.T) {
	x := layeredRig(t, map[string]string{"a.txt": "a\n"})
	for n := range 3 {
		c := x.takeHead(fmt.Sprint("work", n))
		at, _, err := c.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(at, "b.txt"), "b\n")
		commit(t, c)
		x.write("a.txt", strings.Repeat("a\n", n+2))
		x.person("commit", "-q", "-a", "-m", "next")
	}
	if n := len(answering(t, x)); n != 2 { // one about ignored files, one about attributes
		t.Errorf("%d processes wait", n)
	}
	x.Close()
	if left := answering(t, x); len(left) > 0 {
		t.Errorf("%s go on", left)
	}
}

// answering lists the processes of git that wait for questions about rules of a rig's repository.
func answering(t *testing.T, x *rig) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, cwd := range all {
		if at, err := os.Readlink(cwd); err == nil && strings.HasPrefix(at, filepath.Dir(x.top)) && filepath.Base(at) == "none" {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(cwd), "cmdline"))
			found = append(found, string(args))
		}
	}
	return found
}

// A file of .opencode/ that a later commit has changed is no change of an agent that works on it: the project's own directory is shown there.
func TestPrivateFilesOfALaterCommit(t *testing.T) {
	x := layeredRig(t, map[string]string{".opencode/agents/a.md": "one\n", "a.txt": "a\n"})
	first := x.takeHead("first")
	x.write(".opencode/agents/a.md", "two\n")
	x.write(".opencode/agents/b.md", "new\n")
	x.write("a.txt", "b\n")
	x.person("add", "-A", "-f")
	x.person("commit", "-q", "-m", "next")
	later := x.takeHead("later")
	for name, c := range map[string]*Checkout{"first": first, "later": later} {
		if got := x.sh(c, "git status --short; cat .opencode/agents/b.md"); got != "new\n" {
			t.Errorf("%s: an agent sees %q", name, got)
		}
		if files, err := c.Uncommitted(t.Context()); len(files) > 0 || err != nil {
			t.Errorf("%s: uncommitted are %v, %v", name, files, err)
		}
	}
}
