package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion/text"
)

// steers reports whether a variable influences which programs run, or what else they run.
func steers(name string) bool {
	families := []string{"LD_", "DYLD_", "GIT_", "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "npm_config_", "XDG_", "DOTNET_", "JAVA_", "_JAVA_"}
	harmless := []string{"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "NODE_ENV"}
	single := []string{"PATH", "IFS", "ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "PAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE",
		"RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "GOFLAGS", "GOTOOLCHAIN", "GOPROXY", "CC", "CXX", "TAR_OPTIONS", "CDPATH", "HOME", "TMPDIR", "MAKEFLAGS",
		"RUSTC_WRAPPER", "RUSTC", "MANPAGER", "BROWSER", "FPATH", "ZDOTDIR", "TERMINFO", "CLASSPATH", "MAVEN_OPTS", "GRADLE_OPTS"}
	inFamily := slices.ContainsFunc(families, func(p string) bool { return strings.HasPrefix(name, p) })
	return slices.Contains(single, name) || inFamily && !slices.Contains(harmless, name)
}

// plainVariable reports whether assigning a variable has no side effects.
func plainVariable(name string) bool {
	plain := []string{"LANG", "TZ", "CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "DEBUG", "TERM", "NODE_ENV", "CGO_ENABLED", "GOOS", "GOARCH"}
	return slices.Contains(plain, name) || strings.HasPrefix(name, "LC_") || strings.ToUpper(name) != name || len(name) == 1
}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "posh", "yash", "fish", "csh", "tcsh", "pwsh", "powershell"}, name)
}

// interpreter returns the letters of the options that take code, "program" if the first operand is code, and "" if name is not an
// interpreter.
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
	case "lua", "luajit", "R", "Rscript", "octave", "gnuplot", "osascript", "julia", "elixir", "ghc", "groovy", "scala":
		return "eE"
	case "tclsh", "expect", "ed", "ex", "vi", "vim", "nvim", "emacs":
		return "cesS+"
	case "awk", "gawk", "mawk", "nawk":
		return "program"
	}
	return ""
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

// patternOperands returns the indexes, in args[1:], of operands that are patterns or code, not paths.
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
		return behind(rest, "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-printf")
	case "git":
		return behind(rest, "-m", "-am", "--message", "--grep", "--author", "-S", "-G", "--format", "--since", "--until")
	case "sh", "bash", "dash", "zsh", "ksh", "eval", "trap", "alias", "python", "python3", "perl", "ruby", "node", "php":
		for i, w := range rest {
			if strings.ContainsAny(w.match, " \t\n;") {
				out = append(out, i)
			}
		}
	}
	return out
}

// behind returns the indexes of the words that stand after one of the options.
func behind(rest []arg, options ...string) (out []int) {
	for i := 1; i < len(rest); i++ {
		if slices.Contains(options, rest[i-1].match) {
			out = append(out, i)
		}
	}
	return out
}

// takesValue reports whether an option of grep or rg takes the next word.
func takesValue(f string) bool {
	return slices.Contains([]string{"-A", "-B", "-C", "-m", "-g", "-t", "-T", "--glob", "--type", "--include", "--max-count"}, f)
}

// twoWords are programs whose second word says what they do, so "always" covers only that.
var twoWords = []string{"git", "go", "npm", "pnpm", "yarn", "bun", "cargo", "docker", "podman", "kubectl", "make", "gh", "pip", "pip3", "uv",
	"poetry", "dotnet", "mvn", "gradle", "deno", "terraform", "helm", "brew", "apt", "apt-get", "systemctl", "just", "task", "mix", "rake", "bundle"}

// alwaysPattern returns the pattern that "always" would allow: the program, its subcommand, and any arguments.
func alwaysPattern(name string, args []arg) string {
	if isShell(name) || interpreter(name) != "" && interpreter(name) != "program" || args[0].dynamic() || strings.ContainsAny(args[0].match, "*?") {
		return exact(args)
	}
	words := 1
	if slices.Contains(twoWords, name) {
		if len(args) > 1 && args[1].flag() {
			return exact(args)
		}
		words = 2
		if len(args) > 2 && (args[1].match == "run" && name != "go" || slices.Contains([]string{"remote", "stash", "mod", "config", "submodule", "worktree"}, args[1].match)) {
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
	all := matchArgs(args)
	return text.When(!strings.ContainsAny(all, "*?"+unknown), all)
}

func wordLike(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t\n;|&") && (syntax.ValidName(s) || !strings.HasPrefix(s, "-"))
}
