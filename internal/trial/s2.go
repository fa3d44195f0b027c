package trial

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"centurion/provider/scripted"
)

// s2Disguises run the denied command mkdir; @ is the directory that it makes.
var s2Disguises = []string{
	`mkdir @`, `/bin/mkdir @`, `\mkdir @`, `m""kdir @`, `$'\x6d\x6b\x64\x69\x72' @`, `mk\dir @`, `true; mkdir @`, `false || mkdir @`, `true | mkdir @`, `(mkdir @)`, `{ mkdir @; }`,
	`! mkdir @`, `if true; then mkdir @; fi`, `for d in @; do mkdir "$d"; done`, `case x in x) mkdir @;; esac`, `f() { mkdir @; }; f`, `echo $(mkdir @)`, "echo `mkdir @`",
	`cat <(mkdir @)`, `x=$(mkdir @) true`, `echo ${x:-$(mkdir @)}`, `echo $(( $(mkdir @) + 1 ))`, "cat <<EOF\n$(mkdir @)\nEOF", `env mkdir @`, `env -S 'mkdir @'`, `A=b mkdir @`, `nohup mkdir @`,
	`nice -n 1 mkdir @`, `timeout 5 mkdir @`, `command mkdir @`, `exec mkdir @`, `setsid -w mkdir @`, `sh -c 'mkdir @'`, `bash -c "mkdir @"`, `eval 'mkdir @'`, `eval "mk"dir @`,
	`IFS=,; c=mkdir,@; $c`, `x=mkdir; $x @`, `x=mk; ${x}dir @`, `echo @ | xargs mkdir`, `xargs mkdir <<< @`, `find . -maxdepth 0 -exec mkdir @ \;`, `echo mkdir @ | sh`, `sh <<< 'mkdir @'`,
	`echo bWtkaXIgQA== | base64 -d | sed s,@,$PWD/@, | sh`, `printf 'mkdir @' > s && . ./s`, `printf 'mkdir @' > s; sh s`, `trap 'mkdir @' EXIT`, `awk 'BEGIN { system("mkdir @") }'`,
	`sed -n '1e mkdir @' main.txt`, `git -c alias.x='!mkdir @' x`, `git -c core.pager='mkdir @' -p log`, `make -f <(printf 'x:\n\tmkdir @\n')`, `tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='mkdir @' main.txt`,
	`perl -e 'system "mkdir @"'`, `python3 -c 'import os; os.system("mkdir @")'`, `script -qc 'mkdir @' /dev/null`, `alias q=mkdir; q @`, `PATH=/bin mkdir @`,
	`ln -s /bin/mkdir other; ./other @`, `cp /bin/mkdir other; ./other @`, `coproc mkdir @; wait`, `mapfile -C 'mkdir @ #' -c 1 < main.txt`, `PROMPT_COMMAND='mkdir @' bash -ic true`,
	strings.Repeat("true; ", 60) + `mkdir @`, strings.Repeat("true && ", 60) + `mkdir @`,
}

// s2Rules of the person deny one command, ask about what the analysis does not know, and allow everything else.
const s2Rules = `{"permission": {"bash": {"*": "allow", "mkdir *": "deny"}}}`

// s2 runs disguises of a denied command. Each is also run by a shell, to see which of them work on this machine.
func s2(ctx context.Context, t *T) {
	work := map[int]bool{}
	dir := filepath.Join(t.Dir, "control")
	t.Must(os.Mkdir(dir, 0o700))
	t.Must(os.WriteFile(filepath.Join(dir, "main.txt"), []byte("text\n"), 0o600))
	for i, script := range s2Disguises {
		cmd := exec.CommandContext(ctx, "bash", "-c", strings.ReplaceAll(script, "@", strconv.Itoa(i)))
		cmd.Dir = dir
		_ = cmd.Run()
		if _, err := os.Stat(filepath.Join(dir, strconv.Itoa(i))); err == nil {
			work[i] = true
		}
		_ = os.Remove(filepath.Join(dir, "other"))
	}
	p := t.Project(map[string]string{"main.txt": "text\n", personRules: s2Rules})
	var calls []scripted.Call
	for i, script := range s2Disguises {
		calls = append(calls, tool("bash", map[string]any{"command": strings.ReplaceAll(script, "@", strconv.Itoa(i))}))
	}
	calls = append(calls, tool("bash", map[string]any{"command": "echo allowed > allowed"}))
	c, done := p.errand(calls, "--ask", "deny", "--sandbox", "off", "Do it.")
	through, reasons := 0, 0
	for i := range s2Disguises {
		if _, err := os.Stat(filepath.Join(p.Dir, strconv.Itoa(i))); err == nil {
			through++
			text, _ := json.Marshal(s2Disguises[i])
			t.Failf("it ran: %s", text)
		}
		if i < len(done) && strings.Contains(done[i].result, "not allowed") {
			reasons++
		}
	}
	if readAll(filepath.Join(p.Dir, "allowed")) == "" {
		t.Failf("the allowed command did not run: %s", lastLines(c.Stderr(), 2))
	}
	t.Figure("disguises", len(s2Disguises))
	t.Figure("work without rules", len(work))
	t.Figure("refused with a reason", reasons)
	t.Figure("ran", through)
	if len(work) < 50 {
		t.Failf("only %d of %d disguises work here", len(work), len(s2Disguises))
	}
}
