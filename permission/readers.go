package permission

import (
	"centurion"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion/text"
)

// reader is a program that only reads, with the options that make it do more.
type reader struct {
	letters string   // single-letter options
	words   []string // long options, also when they are cut short as GNU programs allow; a final star stands for a family
	list    bool     // no file name from a listing could be taken for a dangerous option
	inert   bool     // its arguments are text, not paths
	max     int      // maximum operands, since more would be written to; 0 means any number
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

// whyNotReadOnly says why a command is not plainly read-only, or returns "".
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
		version := len(rest) == 1 && (rest[0].match == "--version" || rest[0].match == "-V" && name != "npm")
		return text.When(!version, notListed(name))
	case "command":
		looksUp := len(rest) == 2 && (rest[0].match == "-v" || rest[0].match == "-V")
		return text.When(!looksUp, "command runs its arguments")
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

// recurses reports whether a command that reads follows links in the directories that it is given.
func recurses(name string, args []arg) bool {
	letter, word := "R", "--dereference-recursive"
	switch name {
	case "diff":
		letter, word = "r", "--recursive"
	case "grep", "egrep", "fgrep":
	default:
		return false
	}
	return slices.ContainsFunc(args[1:], func(w arg) bool {
		return w.flag() && (strings.HasPrefix(word, w.match) && len(w.match) > 3 || w.match[1] != '-' && strings.Contains(w.match, letter))
	})
}

func notListed(name string) string {
	return fmt.Sprintf("%s may do more than read", name)
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
	return text.When(r.max > 0 && operands > r.max, name+" writes to its second operand")
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
	return text.When(strings.ContainsAny(f[1:], r.letters), f)
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
	only := func(allowed ...string) string { // its first word decides, and is required unless "" is allowed
		first := ""
		if len(rest) > 0 {
			first = rest[0].match
		}
		return text.When(!slices.Contains(allowed, first), fmt.Sprintf("git %s %s may change something", sub, first))
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
		return cmp.Or(only("list"), whyReader("git "+sub, gitDiff, rest))
	case "reflog":
		return cmp.Or(only("", "show"), whyReader("git "+sub, gitDiff, rest))
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
	return text.When(!listing, fmt.Sprintf("git %s without --list may change something", sub))
}

var sedPrint = centurion.Pattern(`^([0-9]+|\$|/[^/\\]*/)?(,([0-9]+|\$|\+[0-9]+|/[^/\\]*/))?p$`)

// whySed allows only the form that prints lines: sed -n '10,20p' file.
func whySed(rest []arg) string {
	const why = "sed may write files or run commands; only sed -n with line numbers and p plainly reads"
	if len(rest) < 2 || rest[0].match != "-n" {
		return why
	}
	for s := range strings.SplitSeq(rest[1].match, ";") {
		if !sedPrint().MatchString(strings.TrimSpace(s)) {
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

var sedRun = centurion.Pattern(`(^|[;{}\d$/\n])\s*e(\s|$)|[/|,#!:_]\d*[gpiImM]*e[gpiImMw]*($|[;}\s])`)

// sedRuns reports whether a sed script may hold the e command or the e flag, which run a shell.
func sedRuns(script string) bool { return sedRun().MatchString(script) }

func whyGo(rest []arg) string {
	flags := map[string][]string{"env": {"-json"}, "list": {"-f", "-json", "-m", "-deps", "-e", "-test"}}
	reads := false
	if len(rest) > 0 {
		switch sub := rest[0].match; sub {
		case "version":
			reads = len(rest) == 1
		case "env", "list":
			reads = !slices.ContainsFunc(rest[1:], func(w arg) bool { return w.dynamic() || w.flag() && !slices.Contains(flags[sub], w.match) })
		case "doc", "help":
			reads = true
		}
	}
	return text.When(!reads, "go may build, run or write something; only go version, go env, go list and go doc plainly read")
}
