package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"centurion"
	"centurion/sandbox/confine"
	"centurion/text"
)

// HelperCommand is the first argument of a helper process; see [Helper].
const HelperCommand = "__sandbox"

var errHelperGone = errors.New("the helper process of this workspace has ended")

// Confinement says how the commands of a [Runner] are confined. Paths are absolute.
type Confinement struct {
	Way     confine.Way
	Write   []string // where commands may write beside their workspace
	Read    []string // what they may read even if it lies in something hidden
	Hide    []string // files and directories that are not there for them
	Protect []string // names in a workspace that they may only read
	Empty   []string // shared directories for temporary files; nil means [TempDirs]
	Home    string   // the person's home directory, which can be read also below one of Empty; "" for none
	Caches  []string // directories that they may fill; what they write is dropped with the workspace
	Limits  confine.Limits
	Cache   string // an existing directory for the caches of builds where Caches cannot be laid over; "" for none
	Dir     string // where temporary directories of workspaces are made

	starting sync.Mutex // held while a helper starts
}

// Hidden returns what is hidden by default from the commands of a person with this home directory: keys, passwords, and sockets by which
// a command would get more rights than it has.
func Hidden(home string) []string {
	hidden := []string{"/run/user/" + strconv.Itoa(os.Getuid()), "/run/docker.sock", "/run/containerd", "/run/podman", "/run/crio", "/run/dbus", "/run/snapd.socket"}
	for _, name := range []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials",
		".password-store", ".mozilla", ".config/gcloud", ".config/gh", ".config/op", ".config/google-chrome", ".config/chromium", ".config/opencode",
		".config/centurion", ".config/anthropic", ".claude", ".codex", ".local/share/keyrings", ".local/share/opencode", ".local/share/centurion",
		".local/state/centurion", ".bash_history", ".zsh_history", ".colima", ".orbstack", "Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail",
		"Library/Messages", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox", "Library/Application Support/com.apple.TCC"} {
		if home != "" {
			hidden = append(hidden, filepath.Join(home, name))
		}
	}
	return hidden
}

// Caches returns the directories in which builds keep what they have downloaded and built: those below home, and others that the
// environment names.
func Caches(home string, env func(string) string) (caches []string) {
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache", "GRADLE_USER_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR"} {
		if dir := env(name); filepath.IsAbs(dir) {
			caches = append(caches, dir)
		}
	}
	for _, name := range []string{".cache", "go/pkg", ".npm", ".cargo", ".rustup", ".m2", ".gradle", ".nuget", ".bun", ".deno", ".yarn", ".local/share/pnpm"} {
		if home != "" {
			caches = append(caches, filepath.Join(home, name))
		}
	}
	return caches
}

// MakeCaches makes the usual cache directories that are missing below home, for the programs on this machine: a layer needs a directory
// to lie over. What cannot be made stays missing.
func MakeCaches(home string) {
	for _, c := range []struct{ program, dir string }{{"sh", ".cache"}, {"go", "go/pkg"}, {"npm", ".npm"}, {"cargo", ".cargo"}, {"mvn", ".m2"},
		{"gradle", ".gradle"}, {"dotnet", ".nuget"}, {"bun", ".bun"}, {"deno", ".deno"}, {"yarn", ".yarn"}, {"pnpm", ".local/share/pnpm"}} {
		if _, err := exec.LookPath(c.program); err == nil && home != "" {
			_ = os.MkdirAll(filepath.Join(home, c.dir), 0o755)
		}
	}
}

// defaultProcesses leaves room for a parallel build on a large machine.
const defaultProcesses = 512

// TempDirs are the shared directories for temporary files. A workspace has them for itself where they can be emptied.
var TempDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// cache returns the directory for the caches of builds where those of the person cannot be laid over: checks have their own.
func (c *Confinement) cache(checks bool) string {
	switch {
	case c.Cache == "":
		return ""
	case checks:
		return filepath.Join(c.Cache, "checks")
	}
	return filepath.Join(c.Cache, "agents")
}

// separate returns the variables by which programs find a workspace's own temporary directory and, where the person's caches are
// read-only, caches of its own.
func separate(temp, cache string) []string {
	env := []string{"TMPDIR=" + temp}
	if cache == "" {
		return env
	}
	return append(env, "XDG_CACHE_HOME="+cache, "GOCACHE="+filepath.Join(cache, "go-build"), "npm_config_cache="+filepath.Join(cache, "npm"))
}

// policy returns the policy for a workspace whose temporary directory is aside.
func (c *Confinement) policy(workspace, aside, cache string) confine.Policy {
	p := confine.Policy{Write: slices.Concat([]string{workspace}, c.Write, single(cache)), Read: c.Read, Hide: c.Hide, Caches: c.Caches, Empty: c.Empty, Home: c.Home,
		Aside: filepath.Join(aside, "caches"), Temp: filepath.Join(aside, "tmp")}
	if p.Empty == nil {
		p.Empty = TempDirs
	}
	for _, name := range c.Protect {
		p.Protect = append(p.Protect, filepath.Join(workspace, name))
	}
	return p
}

// held says what confinement seems to have kept a command from, by its output; "" if nothing. A command that hides its errors is not
// advised.
func (r *Runner) held(c centurion.Command, code int, output string) string {
	if r.Confine == nil || code == 0 || !r.Confine.Way.Holds(confine.Files) {
		return ""
	}
	return advice(runtime.GOOS, output, c.Network)
}

// advice is what a model is told about a failed command with an output, which had the network or not.
func advice(system, output string, network bool) string {
	const files = "commands are confined: they write in the workspace and in temporary directories, but not .git and .opencode. " +
		"Leave commits and branches to the host, which takes your files as they are"
	const offline = "commands are confined: this one had no network. If it needs it, report that a person has to allow it with a permission rule"
	says := func(signs ...string) bool {
		return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(output, sign) })
	}
	switch {
	case says("Read-only file system", "EROFS", ".lock': Permission denied"):
		return files
	case !network && says("Network is unreachable", "Could not resolve host", "Temporary failure in name resolution", "EAI_AGAIN", "ENETUNREACH", "no such host",
		"network is unreachable", "nodename nor servname", "ENOTFOUND"):
		return offline
	case CrossesDevices(output):
		return "this workspace lies over shared files, where a program cannot rename a directory that was there before; `mv` can: mv a b && git add -A"
	case system == "darwin" && says("Operation not permitted", "operation not permitted", "EPERM"): // of files and of addresses
		return files + text.When(!network, ". "+offline)
	}
	return ""
}

// CrossesDevices reports whether a command says that it could not rename something from one file system to another.
func CrossesDevices(output string) bool {
	return strings.Contains(strings.ToLower(output), "invalid cross-device link") || strings.Contains(output, "EXDEV")
}

// refusals are the connections that a command did not get.
type refusals struct {
	mu   sync.Mutex
	said []string
}

// maxRefusals is how many different refusals a model is told.
const maxRefusals = 3

// watch returns connect, with its refusals noted.
func (r *refusals) watch(connect centurion.Dial) centurion.Dial {
	if connect == nil {
		return nil
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := connect(ctx, address)
		if err != nil && ctx.Err() == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			if said := err.Error(); len(r.said) < maxRefusals && !slices.Contains(r.said, said) {
				r.said = append(r.said, said)
			}
		}
		return conn, err
	}
}

// told says which connections were not made, and why; "" if none.
func (r *refusals) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.said) == 0 {
		return ""
	}
	return "commands are confined and connect by name: " + strings.Join(r.said, "; ")
}

// single returns a path as a list, which is empty without it.
func single(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}

// place is a workspace whose commands are confined alike. The zero place confines nothing.
type place struct {
	once  sync.Once
	err   error
	aside string // its temporary directory
	dirs  string // [centurion.Command.Dirs], one a line
	confined

	lending sync.Mutex     // held while something is lent or taken back; protects the next one
	lent    map[string]int // directories, and how often
}

// placeKey names a place: checks have one of their own, beside that of a workspace's other commands, and so have commands with directories.
type placeKey struct {
	workspace string
	checks    bool
	dirs      string
}

// placeOf returns the place for a command, which is opened at its first one. It is not replaced before the command with that id is
// forgotten; an empty id is a look or a loan.
func (r *Runner) placeOf(c centurion.Command, id string) (*place, error) {
	if r.Confine == nil || r.Confine.Way == confine.None {
		return &place{}, nil
	}
	dirs := strings.Join(c.Dirs, "\n")
	key := placeKey{cmp.Or(c.Workspace, c.Dir), c.Check, dirs}
	_, mounted := r.layers.of(key.workspace)
	if mounted { // two helpers over one layer would not see each other's files
		key.checks, key.dirs = false, ""
	}
	r.mu.Lock()
	if r.places == nil {
		r.places, r.placed = map[placeKey]*place{}, map[string]*place{}
	}
	p := r.places[key]
	other := mounted && p != nil && p.dirs != dirs && c.Script != "" && // its helper sees other ones; looking at its files changes nothing
		!slices.Contains(slices.Collect(maps.Values(r.placed)), p)
	if p == nil || p.gone() || other {
		if p != nil {
			_ = p.end()
		}
		p = &place{dirs: dirs}
		r.places[key] = p
	}
	if id != "" {
		r.placed[id] = p
	}
	r.mu.Unlock()
	p.once.Do(func() { p.err = r.openPlace(p, key, c.Lend) })
	return p, p.err
}

func (r *Runner) openPlace(p *place, key placeKey, lend []string) error {
	layers, mounted := r.layers.of(key.workspace)
	workspace, err := filepath.EvalSymlinks(cmp.Or(layers.At, key.workspace))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Confine.Dir, 0o700); err != nil {
		return err
	}
	if p.aside, err = os.MkdirTemp(r.Confine.Dir, "w"); err != nil {
		return err
	}
	cache := r.Confine.cache(key.checks || layers.Check)
	if cache != "" {
		if err := os.MkdirAll(cache, 0o700); err != nil {
			return err
		}
	}
	policy := r.Confine.policy(workspace, p.aside, cache)
	for _, dir := range lend {
		if r.Confine.Way != confine.Full {
			break
		}
		policy.Lend = append(policy.Lend, dir)
		policy.Read = slices.DeleteFunc(slices.Clone(policy.Read), func(read string) bool { return read == dir })
		for _, name := range r.Confine.Protect {
			policy.Protect = append(policy.Protect, filepath.Join(dir, name))
		}
	}
	if p.dirs != "" {
		dirs := strings.Split(p.dirs, "\n")
		policy.Write = append(policy.Write, dirs...)
		policy.Hide = slices.DeleteFunc(slices.Clone(policy.Hide), func(name string) bool { return slices.Contains(dirs, name) })
	}
	if mounted {
		policy.Overlay = &confine.Overlay{At: workspace, Lower: layers.Lower, Upper: layers.Upper, Work: layers.Work, Binds: layers.Binds}
		policy.Aside, policy.Below = cmp.Or(layers.Caches, policy.Aside), layers.CachesBelow
		policy.Protect = nil // what is not the workspace's own is shown read-only
		policy.Read = slices.DeleteFunc(slices.Clone(policy.Read), func(dir string) bool { return dir == workspace || strings.HasPrefix(dir, workspace+"/") })
	}
	if err := errors.Join(os.MkdirAll(policy.Aside, 0o700), os.Mkdir(policy.Temp, 0o700)); err != nil {
		return err
	}
	var env []string
	if r.Mark != "" {
		env = append(env, hostVariable+"="+r.Mark)
	}
	return p.open(r.Confine, policy, cache, env)
}

// end ends what runs in a place and removes its temporary directory.
func (p *place) end() error {
	p.once.Do(func() { p.err = errHelperGone }) // it is not opened any more
	err := p.close()
	if p.aside == "" {
		return err
	}
	return errors.Join(err, RemovePlaces(p.aside))
}

// RemovePlaces removes [Confinement.Dir] as a host that died has left it, or one directory in it.
func RemovePlaces(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error { // overlays leave directories without rights
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Release ends everything that runs in a workspace, or below it. It is called when a workspace is given up.
func (r *Runner) Release(workspace string) error {
	var ended []*place
	r.mu.Lock()
	for key, p := range r.places {
		if key.workspace == workspace || strings.HasPrefix(key.workspace, workspace+string(filepath.Separator)) {
			ended = append(ended, p)
			delete(r.places, key)
		}
	}
	r.mu.Unlock()
	r.layers.mu.Lock()
	delete(r.layers.mounts, workspace)
	r.layers.mu.Unlock()
	var err error
	for _, p := range ended {
		err = errors.Join(err, p.end())
	}
	if err != nil {
		return &centurion.Error{Op: "end workspace", Kind: centurion.KindDisk, Err: err}
	}
	return nil
}

// Close ends everything that still runs in confined workspaces. No command may be started any more.
func (r *Runner) Close() error {
	r.mu.Lock()
	dirs := make([]string, 0, len(r.places))
	for key := range r.places {
		dirs = append(dirs, key.workspace)
	}
	r.mu.Unlock()
	var err error
	for _, dir := range dirs {
		err = errors.Join(err, r.Release(dir))
	}
	return err
}
