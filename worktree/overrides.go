package worktree

import (
	"centurion"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// overrides disables filters and merge drivers that come only from a repository's own configuration. The person's global ones stay, as
// do git-lfs's own commands, written by `git lfs install --local`. The result is cached until one of the files it was read from
// changes. The zero value is ready to use.
type overrides struct {
	mu   sync.Mutex
	seen map[string]found // by git directory
}

// found is the result for one git directory.
type found struct {
	files   map[string]stamp
	entries []setting
	off     []pair
	who     committer
}

// pair is a key of git's configuration and its value. A key may contain any character, even =.
type pair struct{ key, value string }

// stamp detects changes of a file.
type stamp struct {
	size  int64
	nanos int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime().UnixNano()}
}

func (f found) fresh() bool {
	for path, s := range f.files {
		if stampOf(path) != s {
			return false
		}
	}
	return true
}

// of returns the settings for a call that follow from its repository's configuration.
func (o *overrides) of(ctx context.Context, p *program, c call) (found, error) {
	if c.GitDir == "" {
		return found{who: committerOf(nil)}, nil
	}
	o.mu.Lock()
	f, ok := o.seen[c.GitDir]
	o.mu.Unlock()
	if ok && f.fresh() {
		return f, nil
	}
	// The stamps are taken before the files are read, so that a change in between is noticed the next time.
	f = found{files: map[string]stamp{}}
	for _, path := range configFiles(c.GitDir) {
		f.files[path] = stampOf(path)
	}
	out, err := p.exec(ctx, call{Dir: c.Dir, GitDir: c.GitDir, Args: []string{"config", "--list", "-z", "--show-scope", "--show-origin"}}, found{})
	if err != nil {
		return found{}, err
	}
	entries := parseConfig(out)
	for _, e := range entries {
		if path, ok := strings.CutPrefix(e.origin, "file:"); ok {
			if !filepath.IsAbs(path) {
				path = filepath.Join(c.Dir, path)
			}
			if _, seen := f.files[path]; !seen {
				f.files[path] = stampOf(path)
			}
		}
	}
	f.entries, f.off, f.who = entries, untrusted(entries), committerOf(entries)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]found{}
	}
	o.seen[c.GitDir] = f
	return f, nil
}

// configFiles are the possible configuration files of a git directory, including missing ones.
func configFiles(gitDir string) []string {
	files := []string{filepath.Join(gitDir, "config"), filepath.Join(gitDir, "config.worktree")}
	if b, err := os.ReadFile(filepath.Join(gitDir, "commondir")); err == nil {
		common := strings.TrimSpace(string(b))
		if !filepath.IsAbs(common) {
			common = filepath.Join(gitDir, common)
		}
		files = append(files, filepath.Join(common, "config"))
	}
	return files
}

// setting is one value of a configuration.
type setting struct{ scope, origin, key, value string }

// parseConfig parses the output of `git config --list -z --show-scope --show-origin`: scope, origin, and the key with a line feed
// before its value, each terminated by a NUL.
func parseConfig(out []byte) []setting {
	f := fields(out)
	var all []setting
	for ; len(f) >= 3; f = f[3:] {
		key, value, _ := strings.Cut(f[2], "\n")
		all = append(all, setting{f[0], f[1], key, value})
	}
	return all
}

// untrusted returns the settings that disable commands of the repository's own configuration.
func untrusted(entries []setting) []pair {
	own, person := map[string]string{}, map[string]string{}
	for _, e := range entries {
		if !runs(e.key) {
			continue
		}
		switch e.scope {
		case "system", "global":
			person[e.key] = e.value
		case "local", "worktree":
			own[e.key] = e.value
		}
	}
	var off []pair
	for _, key := range slices.Sorted(maps.Keys(own)) {
		theirs, has := person[key]
		switch {
		case has:
			off = append(off, pair{key, theirs})
		case slices.Contains(lfsOwn[key], own[key]):
		case strings.HasPrefix(key, "merge."):
			// An empty command would succeed and keep one side: do what git does for text.
			off = append(off, pair{key, "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"})
		case strings.HasSuffix(key, ".required"):
			off = append(off, pair{key, "false"})
		case strings.HasPrefix(key, "gpg."):
			off = append(off, pair{key, signers[key]})
		default:
			off = append(off, pair{key, ""})
		}
	}
	return off
}

// running matches the settings that name a command that checkouts, commits, merges or diffs run, or that make one of them required. git-lfs
// runs its extensions, and fails on an empty one: a file that needs it cannot be stored in another form unnoticed.
// Keys are as printed by git: section and name in lower case.
var running = centurion.Pattern(`(?s)^(diff\.external|gpg\.program|filter\..*\.(clean|smudge|process|required)|merge\..*\.driver|` +
	`diff\..*\.(command|textconv)|gpg\..*\.(program|defaultkeycommand)|lfs\.extension\..*\.(clean|smudge))$`)

func runs(key string) bool { return running().MatchString(key) }

// signers are git's default programs for keys of its section gpg; without one, it finds a default key.
var signers = map[string]string{"gpg.program": "gpg", "gpg.openpgp.program": "gpg", "gpg.x509.program": "gpgsm", "gpg.ssh.program": "ssh-keygen"}

// lfsOwn are the values that git-lfs itself writes.
var lfsOwn = map[string][]string{
	"filter.lfs.required": {"true"},
	"filter.lfs.clean":    {"git-lfs clean -- %f"},
	"filter.lfs.smudge":   {"git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"},
	"filter.lfs.process":  {"git-lfs filter-process", "git-lfs filter-process --skip"},
}
