package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
)

// program is the git program of this machine; all git runs go through it.
type program struct {
	path string // the executable
	mark string // see [Options]
	over overrides
}

// call is one run of git.
type call struct {
	Args []string
	Dir  string // working directory; for Repo.git, empty means the top of the person's working tree
	// GitDir and WorkTree specify repository and files, so that git neither searches for them nor trusts a foreign .git in Dir. For
	// Repo.git, both empty means the person's.
	GitDir, WorkTree string
	Index            string    // an index other than the repository's own; absolute
	Env              []string  // "NAME=value", with the highest priority
	Config           []string  // "key=value", with the highest priority
	Stdin            io.Reader // nil for none
	Sign             bool      // makes a signed commit: the signing programs can find the person's keys
	// Seek lets git find the repository from Dir and check its owner; GitDir and WorkTree are then empty.
	Seek bool
}

// newProgram finds git. The error has centurion.KindNotFound if there is none.
func newProgram(mark string) (*program, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, &centurion.Error{Op: "find git", Kind: centurion.KindNotFound, Msg: "there is no git program in PATH",
			Hint: "install git 2.38 or newer, or use --isolation shared", Err: err}
	}
	return &program{path: path, mark: mark}, nil
}

// run runs git to its end and returns its output, even with an error: some commands answer by their exit code, see exitCode. A
// cancelled context ends git and its child processes, leaving time to remove locks.
func (p *program) run(ctx context.Context, c call) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := p.over.of(ctx, p, c)
	if err != nil {
		return nil, err
	}
	return p.exec(ctx, c, f)
}

// exec is run with the findings about the repository's configuration.
func (p *program) exec(ctx context.Context, c call, f found) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd := p.command(ctx, c, f)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return out.Bytes(), cause
	}
	return out.Bytes(), failure(c, errs.String(), err)
}

// command is a git that is not started yet.
func (p *program) command(ctx context.Context, c call, f found) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, c.Args...)
	cmd.Dir, cmd.Stdin, cmd.Env = c.Dir, c.Stdin, environment(c, f)
	if p.mark != "" {
		cmd.Env = append(cmd.Env, centurion.HostVariable+"="+p.mark)
	}
	cmd.WaitDelay = 5 * time.Second
	ownGroup(cmd)
	return cmd
}

// inherited are the variables passed on to git and the person's filters. Git's own are limited to those that locate the person's
// configuration: an inherited GIT_DIR or GIT_INDEX_FILE would misdirect our calls.
func inherited() []string {
	names := []string{"PATH", "HOME", "XDG_CONFIG_HOME", "LANG", "TMPDIR", "USER", "LOGNAME",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
			"COMSPEC", "PATHEXT", "PROGRAMDATA")
	}
	return names
}

// environment is the environment of git.
func environment(c call, f found) []string {
	env := make([]string, 0, 64)
	for _, name := range inherited() {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_EDITOR=false", "GIT_PAGER=cat", "GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_LITERAL_PATHSPECS=0")
	env = append(env, f.who.env...)
	if c.Sign {
		env = append(env, signingEnv()...)
	}
	for name, v := range map[string]string{"GIT_DIR": c.GitDir, "GIT_WORK_TREE": c.WorkTree, "GIT_INDEX_FILE": c.Index} {
		if v != "" {
			env = append(env, name+"="+v)
		}
	}
	config := slices.Concat(pairs(always()), f.off, pairs(c.Config))
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, s := range config {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return append(env, c.Env...)
}

// pairs splits "key=value".
func pairs(settings []string) []pair {
	all := make([]pair, 0, len(settings))
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		all = append(all, pair{key, value})
	}
	return all
}

// always is the configuration of every call, which overrides those of the repository and the person: nothing from the repository is
// executed, nothing is fetched, and output has a fixed format.
func always() []string {
	return []string{
		"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false",
		"core.sparseCheckout=false", "index.sparse=false", "core.safecrlf=false", "core.pager=cat", "core.editor=false",
		"core.sshCommand=false", "core.askPass=", "core.gitProxy=", "credential.helper=",
		"core.packedRefsTimeout=20000", "core.filesRefLockTimeout=20000", "core.longpaths=true",
		"commit.gpgSign=false", "tag.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
		"protocol.allow=never", "protocol.ext.allow=never", "protocol.file.allow=never", "fetch.recurseSubmodules=false",
		"lfs.fetchexclude=*", // only local objects are used; nothing is downloaded
		"color.ui=false", "diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.relative=false", "diff.ignoreSubmodules=none",
		"diff.submodule=short", "diff.suppressBlankEmpty=false", "merge.renames=true", "merge.directoryRenames=false",
		"status.showUntrackedFiles=all", "status.relativePaths=false", "core.quotePath=false",
		"advice.detachedHead=false", "advice.addEmbeddedRepo=false", "advice.addIgnoredFile=false", "advice.statusHints=false",
	}
}

// exitCode is the exit code of a git that ran and failed, otherwise 0.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return 0
}

// failure converts git's error output.
func failure(c call, stderr string, err error) error {
	said := complaint(stderr)
	e := &centurion.Error{Op: "git " + subcommand(c.Args), Kind: centurion.KindInternal, Msg: said, Err: err}
	low := strings.ToLower(stderr)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		e.Kind = centurion.KindNotFound
	case strings.Contains(low, "dubious ownership"):
		e.Kind = centurion.KindPermission
		e.Msg = "the repository at " + cmp.Or(c.Dir, ".") + " belongs to another user"
		e.Hint = "if you trust it: git config --global --add safe.directory " + cmp.Or(c.Dir, "DIR")
	case strings.Contains(low, "no space left on device"), strings.Contains(low, "disk quota exceeded"), strings.Contains(low, "input/output error"),
		strings.Contains(low, "read-only file system"), strings.Contains(low, "unable to write file") && !strings.Contains(low, "permission denied"):
		e.Kind = centurion.KindDisk
	case strings.Contains(low, "not a git repository"):
		e.Kind = centurion.KindNotFound
	case strings.Contains(low, ".lock': file exists"), strings.Contains(low, "cannot lock ref"):
		e.Kind = centurion.KindConflict
		e.Hint = "another git is at work in this repository; if none is, remove the lock that is named"
	case strings.Contains(low, "remote end hung up"): // no network is involved: it is a filter's process
		first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
		e.Kind, e.Msg = centurion.KindConfig, "a filter of this repository has failed: "+first
		e.Hint = "install what it needs (git-lfs, say), or look at: git config --get-regexp ^filter"
	case c.Sign:
		e.Kind, e.Msg = centurion.KindConfig, "the commit cannot be signed: "+said
		e.Hint = "unlock the key and try again, or commit unsigned here: git config commit.gpgSign false"
	case strings.Contains(low, "permission denied"):
		e.Kind = centurion.KindPermission
	}
	return e
}

// complaint is the most informative line of git's standard error: the last one marked as an error, otherwise the last.
func complaint(stderr string) string {
	var last, marked string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		last = line
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			marked = line
		}
	}
	said := cmp.Or(marked, last)
	said = strings.TrimPrefix(strings.TrimPrefix(said, "fatal: "), "error: ")
	if len(said) > 500 {
		said = strings.ToValidUTF8(said[:500], "") + " …"
	}
	return said
}

// kindOf is the kind of a file system error.
func kindOf(err error) centurion.Kind {
	switch {
	case diskFailed(err):
		return centurion.KindDisk
	case errors.Is(err, os.ErrPermission):
		return centurion.KindPermission
	case errors.Is(err, os.ErrNotExist):
		return centurion.KindNotFound
	}
	return centurion.KindInternal
}

// subcommand is the git command, for an error message.
func subcommand(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// fields splits git's output with -z.
func fields(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// line is a one-line output.
func line(out []byte) string { return strings.TrimRight(string(out), "\r\n") }
