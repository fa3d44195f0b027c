package permission

import (
	"path"
	"slices"
	"strings"

	"centurion/text"
)

// absolute returns the target of a path in the script: an absolute path, or one that starts with ~ for another user's home.
func (a *analyzer) absolute(name string) string {
	if strings.HasPrefix(name, "~") {
		return name
	}
	if path.IsAbs(name) || drive(name) {
		return path.Clean(slash(name))
	}
	return path.Join(a.start(), slash(name))
}

// start is where the script begins to run.
func (a *analyzer) start() string { return path.Join(slash(a.place.Dir), slash(a.place.Workdir)) }

// relative returns a path in the form of file rules: relative to the directory if it is inside.
func (a *analyzer) relative(name string) string {
	abs := a.absolute(name)
	if rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(slash(a.place.Dir), "/")+"/"); ok {
		return rel
	}
	return abs
}

func (a *analyzer) inside(abs string) bool {
	dir := path.Clean(slash(a.place.Dir))
	return abs == dir || dir == "/" || strings.HasPrefix(abs, dir+"/")
}

// touch records a path outside the directory.
func (a *analyzer) touch(name string) {
	if name == "" || harmlessDevice(name) {
		return
	}
	if abs := a.absolute(name); !a.inside(abs) && !slices.Contains(a.outside, abs) {
		a.outside = append(a.outside, abs)
	}
}

// maxDirs limits the directories that a script's uses of cd may lead to.
const maxDirs = 16

// enter notes that commands may run in another directory from here on. It reports why that cannot be followed.
func (a *analyzer) enter(to string) (why string) {
	if a.loops > 0 {
		return "it changes directories in a loop"
	}
	for _, dir := range slices.Clone(a.dirs) {
		if path.IsAbs(slash(to)) || drive(to) {
			dir = ""
		}
		if next := path.Join(dir, slash(to)); !slices.Contains(a.dirs, next) {
			a.dirs = append(a.dirs, next)
		}
	}
	return text.When(len(a.dirs) > maxDirs, "it changes directories too often to be followed")
}

const tooMany = "it reads too many files to follow every link"

// follow records where a word leads if it names a file or several. deep says that links below a directory are followed, too. It reports
// false if these are too many.
func (a *analyzer) follow(w arg, deep, write bool) bool {
	if a.place.Follow == nil || w.match == "" || harmlessDevice(w.match) {
		return true
	}
	for _, dir := range a.dirs {
		name := slash(w.match)
		if !path.IsAbs(name) && !drive(name) {
			name = dir + "/" + name // not cleaned: a .. after a link leads to where the link's target lies
		}
		targets, ok := a.place.Follow(name, w.glob, deep)
		if !ok {
			return false
		}
		for _, t := range targets {
			switch {
			case path.IsAbs(t) || drive(t):
				a.touch(t)
			case write:
				a.writes = append(a.writes, t)
			default:
				a.reads = append(a.reads, t)
			}
		}
	}
	return true
}

// read records a word that may name a file to be read.
func (a *analyzer) read(w arg) {
	if w.match == "" || w.dynamic() {
		return
	}
	a.reads = append(a.reads, a.relative(w.match))
	if w.glob {
		a.reads = append(a.reads, globbedSecrets(w.match)...)
	}
}

// globbedSecrets returns secret files that a pattern would match. A lone star is fine: it skips hidden files.
func globbedSecrets(pattern string) []string {
	base := path.Base(pattern)
	if strings.Trim(base, "*") == "" {
		return nil
	}
	var out []string
	for _, s := range []string{".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pgpass", ".git-credentials", "id_rsa", "id_ed25519",
		"server.pem", "server.key", "credentials", "credentials.json", "secrets.json", "secrets.yaml"} {
		if ok, _ := path.Match(base, s); ok && (s[0] != '.' || base[0] == '.') {
			out = append(out, path.Join(path.Dir(pattern), s))
		}
	}
	return out
}

func slash(s string) string {
	if windows {
		s = strings.ReplaceAll(s, `\`, "/")
	}
	return s
}

// drive reports whether a path starts with a drive letter of Windows.
func drive(s string) bool {
	return windows && len(s) > 2 && s[1] == ':' && (s[2] == '/' || s[2] == '\\')
}
