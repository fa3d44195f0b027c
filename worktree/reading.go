package worktree

import (
	"centurion"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion/worktree/gitobj"
)

// Runs says why git commands that only read, such as status, log, diff, blame and grep, may run programs in a directory, or show files
// from elsewhere: because the repository around it says so in its own configuration, or has a hook for it. It is "" if they do not. The
// configuration of the person and of the system is theirs. No git is run, and what is not known to be harmless is named.
func Runs(dir string) (why string) {
	for {
		if isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) && !missing(filepath.Join(dir, "HEAD")) {
			return dir + " looks like a repository without working tree"
		}
		why, found := runsAt(dir, 0)
		up := filepath.Dir(dir)
		if why != "" || found || up == dir {
			return why
		}
		dir = up
	}
}

// maxModules limits how deep submodules lie in each other.
const maxModules = 4

// runsAt is [Runs] for the repository whose working tree has its top at dir. found is false if git would go on to search above it.
func runsAt(top string, depth int) (why string, found bool) {
	gitDir := filepath.Join(top, ".git")
	info, err := os.Stat(gitDir)
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		b, _ := os.ReadFile(gitDir)
		to, ok := strings.CutPrefix(line(b), "gitdir: ")
		if !ok || depth > maxModules {
			return gitDir + " cannot be followed", false
		}
		if gitDir = to; !filepath.IsAbs(gitDir) {
			gitDir = filepath.Join(top, to)
		}
	}
	files := configFiles(gitDir)
	common := filepath.Dir(files[len(files)-1])
	own := ownConfig{top: top, gitDir: gitDir, hooks: filepath.Join(common, "hooks"), oid: 20}
	for _, name := range append(files, filepath.Join(common, "config.worktree")) {
		if data, err := os.ReadFile(name); err == nil {
			if why := own.read(data); why != "" {
				return fmt.Sprintf("git may run other programs or read other files here: %s says %s", name, why), true
			}
		}
	}
	if hook := filepath.Join(own.hooks, "post-index-change"); !missing(hook) {
		return "git runs the hook " + hook, true
	}
	indexes, _ := filepath.Glob(filepath.Join(gitDir, "sharedindex.*"))
	for _, name := range append(indexes, filepath.Join(gitDir, "index")) {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		modules, ok := gitlinks(data, own.oid)
		if !ok {
			return name + " cannot be read", true
		}
		for _, m := range modules {
			if why, _ := runsAt(filepath.Join(top, filepath.FromSlash(m)), depth+1); why != "" {
				return why, true
			}
		}
	}
	head, _ := os.ReadFile(filepath.Join(gitDir, "HEAD"))
	return "", validHead().Match(head) && isDir(filepath.Join(common, "objects")) && isDir(filepath.Join(common, "refs"))
}

var validHead = centurion.Pattern(`^(ref:\s*refs/|[0-9a-f]{40})`)

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func missing(name string) bool {
	_, err := os.Lstat(name)
	return os.IsNotExist(err)
}

// ownConfig is what matters of a repository's own configuration.
type ownConfig struct {
	top, gitDir string
	hooks       string // the directory of its hooks
	oid         int    // bytes of an object's name
}

var (
	emptyLine   = centurion.Pattern(`^\s*([#;].*)?$`)
	sectionLine = centurion.Pattern(`^\s*\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]\s*$`)
	keyLine     = centurion.Pattern(`^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?)\s*)?$`)
)

// read looks at the lines of a configuration file and returns the first that is not known to be harmless.
func (c *ownConfig) read(data []byte) (why string) {
	section, sub := "", ""
	for l := range strings.Lines(string(data)) {
		l = strings.TrimRight(l, "\r\n")
		if emptyLine().MatchString(l) {
			continue
		}
		if m := sectionLine().FindStringSubmatch(l); m != nil {
			section, sub = strings.ToLower(m[1]), m[2]
			if head, rest, dotted := strings.Cut(section, "."); dotted {
				section, sub = head, rest
			}
			continue
		}
		m := keyLine().FindStringSubmatch(l)
		if m == nil || strings.HasSuffix(m[2], `\`) || !c.harmless(section, sub, strings.ToLower(m[1]), m[2]) {
			return fmt.Sprintf("%q", strings.TrimSpace(section+" "+sub)+": "+strings.TrimSpace(l))
		}
	}
	return ""
}

// harmlessSections hold nothing that a command that only reads would run, nor a name of a file that it would show.
var harmlessSections = strings.Fields(`advice alias am apply author branch checkout clean color column commit committer credential fetch feature format gc
	gitk grep gui http https index init log maintenance merge mergetool notes pack pretty pull push rebase receive remote repack rerere sequence stash
	status submodule svn svn-remote tag transfer url user versionsort worktree`)

// harmlessCore are such keys of the section core. Git pages and edits nothing without a terminal, and reaches no network when it reads.
var harmlessCore = strings.Fields(`abbrev askpass autocrlf bare bigfilethreshold checkstat commentchar commitgraph compression createobject deltabasecachelimit
	editor eol filemode filesreflocktimeout fscache fsync fsyncmethod fsyncobjectfiles ignorecase logallrefupdates longpaths loosecompression
	maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout pager precomposeunicode preloadindex protecthfs
	protectntfs quotepath repositoryformatversion restrictinheritedhandles safecrlf sharedrepository sparsecheckout sparsecheckoutcone
	splitindex sshcommand symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace`)

var lfsRuns = centurion.Pattern(`(?i)^(extension|customtransfer)\b`)

func (c *ownConfig) harmless(section, sub, key, value string) bool {
	switch section {
	case "core":
		switch key {
		case "hookspath":
			if c.hooks = strings.Trim(value, `"`); !filepath.IsAbs(c.hooks) {
				c.hooks = filepath.Join(c.top, c.hooks)
			}
			return !strings.ContainsAny(c.hooks, `"\~%#;`)
		case "fsmonitor":
			return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "1", "0"}, strings.ToLower(value))
		case "worktree": // of a submodule
			return filepath.Join(c.gitDir, value) == c.top
		}
		return slices.Contains(harmlessCore, key)
	case "diff":
		if sub != "" {
			return slices.Contains([]string{"binary", "cachetextconv", "funcname", "xfuncname", "wordregex"}, key)
		}
		return key != "external" && key != "orderfile"
	case "blame":
		return key != "ignorerevsfile"
	case "remote": // what is missing in a partial clone is fetched when it is read
		return key != "promisor" && key != "partialclonefilter"
	case "extensions":
		if key == "objectformat" && value == "sha256" {
			c.oid = 32
		}
		return key != "partialclone" && (key != "objectformat" || value == "sha256" || value == "sha1")
	case "filter", "lfs":
		own := lfsOwn[section+"."+sub+"."+key]
		return slices.Contains(own, value) || slices.Contains(own, strings.Trim(value, `"`)) || section == "lfs" && !lfsRuns().MatchString(sub)
	}
	return slices.Contains(harmlessSections, section)
}

// gitlinks lists the submodules of an index, which is in git's own format. ok is false if it is not.
func gitlinks(data []byte, oid int) (names []string, ok bool) {
	ok = gitobj.EachIndexed(data, oid, func(name string, e entry) {
		if e.Mode == gitobj.ModeSubmodule {
			names = append(names, name)
		}
	})
	return names, ok
}
