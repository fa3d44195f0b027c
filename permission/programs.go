package permission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// readers are programs that only read, with the options that make them do more. Letters are single-letter options,
// words long ones, also when they are cut short as GNU programs allow, and all of a family with a final star. List says that file names from a listing may be
// given to it: it has no dangerous option that a file name could be taken for.
type reader struct {
	letters string
	words   []string
	list    bool
	inert   bool // its arguments are text, not paths
	max     int  // operands it may have; more would be written to; 0 means any number
}

var readers = map[string]reader{
	"ls": {list: true}, "cat": {list: true}, "head": {list: true}, "tail": {list: true, letters: "fF", words: []string{"follow", "retry"}},
	"wc": {list: true, words: []string{"files0-from"}}, "nl": {list: true}, "cut": {list: true}, "stat": {list: true},
	"du": {list: true, words: []string{"files0-from"}}, "df": {}, "grep": {list: true, letters: "f", words: []string{"file"}},
	"egrep": {list: true, letters: "f"}, "fgrep": {list: true, letters: "f"},
	"rg":   {list: true, letters: "zufL.", words: []string{"pre", "pre-glob", "hostname-bin", "search-zip", "unrestricted", "no-ignore*", "file", "follow", "hidden"}},
	"sort": {letters: "oT", words: []string{"output", "compress-program", "temporary-directory", "files0-from"}},
	"uniq": {max: 1}, "tr": {inert: true}, "diff": {letters: "l", words: []string{"paginate"}}, "cmp": {}, "comm": {}, "column": {}, "fold": {},
	"paste": {}, "tac": {list: true}, "rev": {}, "file": {list: true, letters: "Cm", words: []string{"compile", "magic-file"}},
	"basename": {inert: true}, "dirname": {inert: true}, "realpath": {}, "readlink": {}, "md5sum": {}, "sha1sum": {}, "sha256sum": {}, "cksum": {},
	"date": {letters: "sfr", words: []string{"set", "file", "reference"}}, "pwd": {}, "cd": {}, "echo": {inert: true}, "printf": {inert: true, letters: "v"},
	"true": {inert: true}, "false": {inert: true}, ":": {inert: true}, "test": {}, "[": {}, "seq": {inert: true}, "sleep": {inert: true},
	"which": {}, "type": {}, "whoami": {}, "id": {}, "uname": {}, "nproc": {}, "arch": {}, "tree": {letters: "oR", words: []string{"output"}},
	"exit": {inert: true}, "return": {inert: true}, "break": {inert: true}, "continue": {inert: true}, "expr": {inert: true}, "hexdump": {}, "od": {},
	"strings": {}, "command": {}, "jq": {letters: "fL", words: []string{"from-file", "rawfile", "slurpfile"}},
}

func inert(name string) bool { return readers[name].inert }

// whyNotReadOnly says why a command does not plainly only read, or "".
func whyNotReadOnly(name string, args []arg) string {
	rest := args[1:]
	switch name {
	case "find":
		return whyFind(rest)
	case "git":
		return whyGit(rest)
	case "sed":
		return whySed(rest)
	case "go":
		return whyGo(rest)
	case "node", "python", "python3", "npm", "cargo", "rustc", "java", "make", "gcc", "ruby", "deno", "bun":
		if len(rest) == 1 && (rest[0].match == "--version" || rest[0].match == "-V" && name != "npm") {
			return ""
		}
		return notListed(name)
	case "command":
		if len(rest) == 2 && (rest[0].match == "-v" || rest[0].match == "-V") {
			return ""
		}
		return "command runs its arguments"
	case "cd":
		if len(rest) != 1 || strings.HasPrefix(rest[0].match, "-") {
			return "cd without a directory leaves the project"
		}
	}
	r, ok := readers[name]
	if !ok {
		return notListed(name)
	}
	return whyReader(name, r, rest)
}

func notListed(name string) string {
	return fmt.Sprintf("%s is not on the list of programs that only read", name)
}

func whyReader(name string, r reader, rest []arg) string {
	operands, ended := 0, false
	for _, w := range rest {
		switch {
		case w.dynamic() && !r.inert && !(w.list && r.list):
			return fmt.Sprintf("the value of %s is not known before it runs", w.show)
		case w.glob && !ended && strings.IndexAny(w.match, "*?[") == 0 && (r.letters+strings.Join(r.words, "")) != "" && !r.list && !r.inert:
			return fmt.Sprintf("a file that %s matches could be taken for an option of %s", w.show, name)
		case w.match == "--":
			ended = true
		case w.flag() && !ended:
			if f := badFlag(r, w.match); f != "" {
				return fmt.Sprintf("%s with %s does more than read", name, f)
			}
		default:
			operands++
		}
	}
	if r.max > 0 && operands > r.max {
		return fmt.Sprintf("%s writes to its second operand", name)
	}
	return ""
}

// badFlag returns the option if it is one of r's dangerous ones.
func badFlag(r reader, f string) string {
	if long, ok := strings.CutPrefix(f, "--"); ok {
		name, _, _ := strings.Cut(long, "=")
		for _, w := range r.words {
			family, many := strings.CutSuffix(w, "*")
			if name != "" && strings.HasPrefix(w, name) || many && strings.HasPrefix(name, family) {
				return f
			}
		}
		return ""
	}
	if strings.ContainsAny(f[1:], r.letters) && r.letters != "" {
		return f
	}
	return ""
}

var findTests = []string{"-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-maxdepth", "-mindepth", "-size", "-mtime", "-mmin",
	"-newer", "-not", "-o", "-or", "-a", "-and", "-print", "-print0", "-prune", "-empty", "-regex", "-iregex", "-regextype", "-depth", "-ls", "-printf",
	"-quit", "-perm", "-user", "-group", "-readable", "-writable", "-executable", "-xdev", "-mount", "-true", "-false", "-links", "-atime",
	"-ctime", "-amin", "-cmin", "-samefile", "-H", "-P", "-O1", "-O2", "-O3"}

func whyFind(rest []arg) string {
	for _, w := range rest {
		if w.dynamic() {
			return fmt.Sprintf("the value of %s is not known before it runs", w.show)
		}
		if w.flag() && !slices.Contains(findTests, w.match) && strings.Trim(w.match[1:], "0123456789kMGcbw") != "" {
			return "find with " + w.match + " does more than read"
		}
	}
	return ""
}

// gitReaders are the subcommands of git that only read, with the options that change that.
var gitReaders = map[string]reader{
	"status": {}, "log": gitDiff, "diff": gitDiff, "show": gitDiff, "rev-parse": {}, "ls-files": {}, "ls-tree": {}, "blame": {words: []string{"contents"}},
	"shortlog": {}, "describe": {}, "rev-list": {}, "merge-base": {}, "cat-file": {words: []string{"textconv", "filters"}}, "name-rev": {}, "branch": {},
	"tag": {}, "remote": {}, "version": {}, "check-ignore": {}, "count-objects": {}, "for-each-ref": {}, "grep": {letters: "Of", words: []string{"open-files-in-pager", "textconv", "no-index"}},
	"whatchanged": gitDiff, "cherry": {}, "var": {}, "diff-tree": gitDiff, "stash": {}, "worktree": {}, "config": {}, "reflog": {},
}

var gitDiff = reader{letters: "O", words: []string{"output", "ext-diff", "textconv", "no-index", "open-files-in-pager"}}

func whyGit(rest []arg) string {
	for len(rest) > 0 && rest[0].flag() {
		if !slices.Contains([]string{"--no-pager", "-P", "--version", "--no-optional-locks", "--literal-pathspecs"}, rest[0].match) {
			return "git with " + rest[0].show + " may run other programs"
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return ""
	}
	sub, rest := rest[0].match, rest[1:]
	r, ok := gitReaders[sub]
	if !ok {
		return fmt.Sprintf("git %s is not on the list of git commands that only read", strings.ReplaceAll(sub, unknown, "…"))
	}
	only := func(allowed ...string) string { // its first word decides, and it must have one unless "" is allowed
		first := ""
		if len(rest) > 0 {
			first = rest[0].match
		}
		if slices.Contains(allowed, first) {
			return ""
		}
		return fmt.Sprintf("git %s %s may change something", sub, first)
	}
	switch sub {
	case "branch", "tag":
		return whyGitList(sub, rest)
	case "remote":
		if len(rest) > 1 || len(rest) == 1 && rest[0].match != "-v" && rest[0].match != "--verbose" {
			return "git remote with arguments may change something"
		}
		return ""
	case "stash", "worktree":
		return cmpOr(only("list"), whyReader("git "+sub, gitDiff, rest))
	case "reflog":
		return cmpOr(only("", "show"), whyReader("git "+sub, gitDiff, rest))
	case "config":
		return only("--get", "--get-all", "--list", "-l", "--get-regexp", "get", "list")
	}
	return whyReader("git "+sub, r, rest)
}

// whyGitList allows git branch and git tag only with options that list.
func whyGitList(sub string, rest []arg) string {
	listing := len(rest) == 0
	for _, w := range rest {
		name, _, _ := strings.Cut(w.match, "=")
		switch name {
		case "--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current":
			listing = true
		case "-a", "-r", "-v", "-vv", "--all", "--remotes", "--verbose", "-n", "--sort", "--format", "--column", "--no-column", "--color", "--no-color", "-i", "--ignore-case":
			listing = listing || sub == "branch" && len(rest) == 1
		default:
			if w.flag() || w.dynamic() || !listing {
				return fmt.Sprintf("git %s %s may change something", sub, w.show)
			}
		}
	}
	if !listing {
		return fmt.Sprintf("git %s without --list may change something", sub)
	}
	return ""
}

var sedPrint = regexp.MustCompile(`^([0-9]+|\$|/[^/\\]*/)?(,([0-9]+|\$|\+[0-9]+|/[^/\\]*/))?p$`)

// whySed allows only the form that prints lines: sed -n '10,20p' file.
func whySed(rest []arg) string {
	const why = "sed may write files or run commands; only sed -n with line numbers and p plainly reads"
	if len(rest) < 2 || rest[0].match != "-n" {
		return why
	}
	for s := range strings.SplitSeq(rest[1].match, ";") {
		if !sedPrint.MatchString(strings.TrimSpace(s)) {
			return why
		}
	}
	for _, w := range rest[2:] {
		if w.flag() || w.glob && strings.IndexAny(w.match, "*?[") == 0 || w.dynamic() {
			return why
		}
	}
	return ""
}

var sedRun = regexp.MustCompile(`(^|[;{}\d$/\n])\s*e(\s|$)|[/|,#!:_]\d*[gpiImM]*e[gpiImMw]*($|[;}\s])`)

// sedRuns reports whether a sed script may hold the e command or the e flag, which run a shell.
func sedRuns(script string) bool { return sedRun.MatchString(script) }

func whyGo(rest []arg) string {
	if len(rest) > 0 {
		switch rest[0].match {
		case "version":
			if len(rest) == 1 {
				return ""
			}
		case "env":
			if !slices.ContainsFunc(rest[1:], func(w arg) bool { return w.flag() && w.match != "-json" || w.dynamic() }) {
				return ""
			}
		case "list":
			bad := slices.ContainsFunc(rest[1:], func(w arg) bool {
				return w.dynamic() || w.flag() && !slices.Contains([]string{"-f", "-json", "-m", "-deps", "-e", "-test"}, w.match)
			})
			if !bad {
				return ""
			}
		case "doc", "help":
			return ""
		}
	}
	return "go may build, run or write something; only go version, go env, go list and go doc plainly read"
}

// steers reports whether a variable decides which programs run, or what they run on the side.
func steers(name string) bool {
	for _, p := range []string{"LD_", "DYLD_", "GIT_", "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "npm_config_", "XDG_", "DOTNET_", "JAVA_", "_JAVA_"} {
		if strings.HasPrefix(name, p) && name != "PYTHONDONTWRITEBYTECODE" && name != "PYTHONUNBUFFERED" && name != "NODE_ENV" {
			return true
		}
	}
	switch name {
	case "PATH", "IFS", "ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE",
		"RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "CC", "CXX", "TAR_OPTIONS", "CDPATH", "HOME", "TMPDIR", "MAKEFLAGS",
		"RUSTC_WRAPPER", "RUSTC", "MANPAGER", "BROWSER", "FPATH", "ZDOTDIR", "TERMINFO", "CLASSPATH", "MAVEN_OPTS", "GRADLE_OPTS":
		return true
	}
	return false
}

// plainVariable reports whether giving a variable a value can do no more than fill it.
func plainVariable(name string) bool {
	switch name {
	case "LANG", "TZ", "CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "DEBUG", "TERM", "NODE_ENV", "CGO_ENABLED", "GOOS", "GOARCH":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.ToUpper(name) != name || len(name) == 1
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "posh", "yash", "fish", "csh", "tcsh", "pwsh", "powershell":
		return true
	}
	return false
}

// interpreter returns the letters of the options that take code, "program" for those whose first operand is code, and
// "" for what is no interpreter.
func interpreter(name string) string {
	if base := strings.TrimRight(name, "0123456789."); base != "" {
		name = base
	}
	switch name {
	case "python", "pypy":
		return "c"
	case "perl", "ruby":
		return "eE"
	case "node", "nodejs", "bun", "deno":
		return "ep"
	case "php":
		return "rBRE"
	case "lua", "luajit", "Rscript", "osascript", "julia", "elixir", "ghc", "groovy", "scala":
		return "eE"
	case "tclsh", "expect", "ed", "ex", "vi", "vim", "nvim", "emacs":
		return "cesS+"
	case "awk", "gawk", "mawk", "nawk":
		return "program"
	}
	return ""
}

// wrapper is a program that runs its arguments.
type wrapper struct {
	values     string   // single-letter options that take a value
	longs      []string // long options that take a value in the next word
	skip       int      // operands of its own before the command
	plain      bool     // it changes nothing about the command: a rule for the command is enough
	assigns    bool     // NAME=value may stand before the command
	joined     bool     // the arguments are joined to a script
	script     string   // an option whose value is a script
	longScript string
	why        string // why what it runs does not plainly only read; "" keeps the command's own answer
}

var wrappers = map[string]wrapper{
	"time":             {values: "fo", plain: true},
	"nice":             {values: "n", longs: []string{"adjustment"}, plain: true},
	"nohup":            {plain: true, why: "nohup lets it outlive its caller and may write nohup.out"},
	"timeout":          {values: "sk", longs: []string{"signal", "kill-after"}, skip: 1, plain: true},
	"gtimeout":         {values: "sk", longs: []string{"signal", "kill-after"}, skip: 1, plain: true},
	"command":          {plain: true},
	"stdbuf":           {values: "ioe", plain: true},
	"ionice":           {values: "cnp", plain: true},
	"env":              {values: "uC", longs: []string{"unset", "chdir"}, plain: true, assigns: true, script: "-S", longScript: "--split-string", why: "env runs its arguments"},
	"builtin":          {plain: true},
	"exec":             {values: "a", plain: true, why: "exec replaces the shell"},
	"noglob":           {plain: true, why: "noglob runs its arguments"},
	"xargs":            {values: "IJRnPLdasE", longs: []string{"max-args", "max-procs", "replace", "delimiter", "arg-file"}, why: "xargs runs a command with what it reads"},
	"sudo":             {values: "ugphCDRrtTU", longs: []string{"user", "group"}, assigns: true, why: "sudo runs it with other rights"},
	"doas":             {values: "uC", why: "doas runs it with other rights"},
	"run0":             {why: "run0 runs it with other rights"},
	"pkexec":           {why: "pkexec runs it with other rights"},
	"su":               {values: "sg", skip: 1, script: "-c", longScript: "--command", why: "su runs it with other rights"},
	"runuser":          {values: "usg", script: "-c", longScript: "--command", why: "runuser runs it with other rights"},
	"busybox":          {why: "busybox runs its first argument"},
	"toybox":           {why: "toybox runs its first argument"},
	"setsid":           {why: "setsid lets it outlive its caller"},
	"chroot":           {skip: 1, why: "chroot runs a command"},
	"unshare":          {why: "unshare runs a command"},
	"nsenter":          {values: "t", why: "nsenter runs a command"},
	"setpriv":          {why: "setpriv runs a command"},
	"chrt":             {skip: 1, why: "chrt runs a command"},
	"taskset":          {skip: 1, why: "taskset runs a command"},
	"numactl":          {why: "numactl runs a command"},
	"flock":            {values: "wE", skip: 1, script: "-c", longScript: "--command", why: "flock runs a command"},
	"script":           {script: "-c", longScript: "--command", skip: 1, why: "script runs a command"},
	"watch":            {values: "n", longs: []string{"interval"}, joined: true, why: "watch runs a command again and again"},
	"parallel":         {values: "jN", why: "parallel runs commands"},
	"strace":           {values: "oeps", why: "strace runs a command"},
	"ltrace":           {values: "oeps", why: "ltrace runs a command"},
	"gdb":              {why: "gdb runs a program"},
	"systemd-run":      {values: "puE", longs: []string{"unit", "property"}, why: "systemd-run runs a command elsewhere"},
	"unbuffer":         {plain: true, why: "unbuffer runs its arguments"},
	"caffeinate":       {values: "tw", plain: true, why: "caffeinate runs its arguments"},
	"fakeroot":         {why: "fakeroot runs a command"},
	"xvfb-run":         {values: "ens", why: "xvfb-run runs a command"},
	"dbus-run-session": {why: "dbus-run-session runs a command"},
	"ssh":              {values: "bcDEeFIiJLlmOopQRSWw", skip: 1, joined: true, why: "ssh runs a command elsewhere"},
	"npx":              {values: "p", why: "npx fetches and runs a package"},
	"bunx":             {why: "bunx fetches and runs a package"},
	"uvx":              {why: "uvx fetches and runs a package"},
	"pipx":             {skip: 1, why: "pipx fetches and runs a package"},
}

// usesNetwork reports whether a command reaches the network, and whether it publishes something there.
func usesNetwork(name string, args []arg) (network, push bool) {
	var words []string // operands
	for _, w := range args[1:] {
		if !w.flag() {
			words = append(words, w.match)
		}
	}
	has := func(options ...string) bool {
		return slices.ContainsFunc(words[:min(len(words), 3)], func(s string) bool { return slices.Contains(options, s) })
	}
	switch name {
	case "curl", "wget", "ssh", "scp", "sftp", "ftp", "rsync", "nc", "ncat", "netcat", "telnet", "socat", "ping", "dig", "nslookup", "host",
		"traceroute", "whois", "http", "https", "aria2c", "lynx", "w3m", "gh", "glab", "aws", "gcloud", "az", "kubectl", "helm", "terraform",
		"npx", "bunx", "uvx", "pipx", "apt", "apt-get", "yum", "dnf", "apk", "brew", "pacman", "openssl":
		return true, has("push", "publish", "apply", "deploy", "release")
	case "git":
		push = has("push", "send-email", "send-pack")
		return push || has("fetch", "pull", "clone", "ls-remote", "submodule", "archive", "lfs", "svn") || has("remote") && has("update", "show", "prune"), push
	case "npm", "pnpm", "yarn", "bun":
		push = has("publish", "unpublish", "deprecate")
		return push || has("install", "i", "ci", "add", "update", "upgrade", "exec", "dlx", "create", "init", "audit", "view", "login", "x") ||
			name == "yarn" && len(words) == 0, push
	case "pip", "pip3", "uv", "poetry", "pdm", "conda", "gem", "bundle", "composer", "cpan", "twine":
		push = has("publish", "upload", "push")
		return push || has("install", "download", "add", "update", "sync", "search", "lock", "require", "create"), push
	case "go":
		return has("get", "install") || has("mod") && has("download", "tidy"), false
	case "cargo":
		push = has("publish", "yank")
		return push || has("install", "fetch", "update", "add", "search", "login"), push
	case "docker", "podman", "nerdctl", "skopeo":
		push = has("push")
		return push || has("pull", "login", "run", "build", "search", "copy"), push
	}
	return false, false
}

// patternOperands returns the indexes, in args[1:], of operands that are patterns or code and no paths.
func patternOperands(name string, args []arg) []int {
	var out []int
	rest := args[1:]
	switch name {
	case "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "jq":
		given := slices.ContainsFunc(rest, func(w arg) bool { return w.match == "-e" || w.match == "-f" || strings.HasPrefix(w.match, "--regexp") })
		for i, w := range rest {
			if w.flag() {
				continue
			}
			if i > 0 && rest[i-1].match == "-e" || !given && !(i > 0 && takesValue(rest[i-1].match)) {
				out = append(out, i)
				if !given {
					break
				}
			}
		}
	case "find":
		for i := 1; i < len(rest); i++ {
			switch rest[i-1].match {
			case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-printf":
				out = append(out, i)
			}
		}
	case "git":
		for i := 1; i < len(rest); i++ {
			switch rest[i-1].match {
			case "-m", "-am", "--message", "--grep", "--author", "-S", "-G", "--format", "--since", "--until":
				out = append(out, i)
			}
		}
	case "sh", "bash", "dash", "zsh", "ksh", "eval", "trap", "alias", "python", "python3", "perl", "ruby", "node", "php":
		for i, w := range rest {
			if strings.ContainsAny(w.match, " \t\n;") {
				out = append(out, i)
			}
		}
	}
	return out
}

// takesValue reports whether an option of grep or rg takes the next word.
func takesValue(f string) bool {
	return slices.Contains([]string{"-A", "-B", "-C", "-m", "-g", "-t", "-T", "--glob", "--type", "--include", "--max-count", "-F", "-v"}, f) && f != "-F" && f != "-v"
}

// twoWords are programs whose second word says what they do, so that "always" covers only that.
var twoWords = []string{"git", "go", "npm", "pnpm", "yarn", "bun", "cargo", "docker", "podman", "kubectl", "make", "gh", "pip", "pip3", "uv",
	"poetry", "dotnet", "mvn", "gradle", "deno", "terraform", "helm", "brew", "apt", "apt-get", "systemctl", "just", "task", "mix", "rake", "bundle"}

// alwaysPattern returns the pattern that an "always" would allow: the program, its subcommand, and any arguments.
func alwaysPattern(name string, args []arg) string {
	if isShell(name) || interpreter(name) != "" && interpreter(name) != "program" || args[0].dynamic() || strings.ContainsAny(args[0].match, "*?") {
		text := matchArgs(args)
		if strings.ContainsAny(text, "*?"+unknown) {
			return ""
		}
		return text
	}
	words := 1
	if slices.Contains(twoWords, name) {
		if len(args) > 1 && args[1].flag() {
			return exact(args)
		}
		words = 2
		third := len(args) > 2 && (args[1].match == "run" && name != "go" || slices.Contains([]string{"remote", "stash", "mod", "config", "submodule", "worktree"}, args[1].match))
		if third {
			words = 3
		}
	}
	head := args[:min(words, len(args))]
	if slices.ContainsFunc(head, func(w arg) bool { return w.dynamic() || strings.ContainsAny(w.match, "*?") || !wordLike(w.match) }) {
		return exact(args)
	}
	return matchArgs(head) + " *"
}

func exact(args []arg) string {
	text := matchArgs(args)
	if strings.ContainsAny(text, "*?"+unknown) {
		return ""
	}
	return text
}

func wordLike(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t\n;|&") && (syntax.ValidName(s) || !strings.HasPrefix(s, "-"))
}
