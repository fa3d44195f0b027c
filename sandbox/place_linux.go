package sandbox

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"centurion"
	"centurion/sandbox/confine"
)

var systemWays = []confine.Way{confine.Full, confine.Files}

// confined is how the commands of a place are started on Linux: by a helper, or not confined.
type confined struct {
	env     []string // added to the environment of commands
	layered bool     // the workspace is mounted for the helper only

	mu     sync.Mutex // protects keeper
	keeper *keeper
}

// open begins to confine by a policy. Where the person's caches are read-only, builds are sent to others.
func (c *confined) open(how *Confinement, p confine.Policy, cache string, env []string) (err error) {
	c.layered = p.Overlay != nil
	if how.Way == confine.Full {
		c.env = []string{"TMPDIR=" + p.Empty[0]}
		p.Hide = slices.Concat(p.Hide, services(p.Write)) // the list is that of all workspaces
	} else {
		c.env = separate(p.Temp, cache)
	}
	k, err := startKeeper(how, p, env)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeper = k
	return err
}

func (c *confined) helper() *keeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keeper
}

// gone reports whether a helper that was started has ended.
func (c *confined) gone() bool {
	k := c.helper()
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// start starts a command.
func (c *confined) start(m centurion.Command, args, env []string, id string, s streams) (process, error) {
	helper := c.helper()
	if helper == nil {
		return startChild(m, args, env, s)
	}
	dir := m.Cwd()
	if !c.layered {
		real, err := filepath.EvalSymlinks(dir) // a link may lie in something hidden
		if err != nil {
			return nil, err
		}
		dir = real
	}
	k, err := helper.start(toHelper{ID: id, Args: args, Dir: dir, Env: append(env, c.env...), Network: m.Network, Input: s.in != nil}, s, m.Connect)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// lend lets commands write below a directory but for some names in it, or with back no more.
func (c *confined) lend(dir string, names []string, back bool) error {
	k := c.helper()
	if k == nil {
		return nil
	}
	_, err := k.start(toHelper{ID: rand.Text(), Lend: dir, Names: names, Back: back}, streams{}, nil)
	return err
}

// outside returns the path by which this process reaches a directory of the place.
func (c *confined) outside(dir string) string {
	return "/proc/" + strconv.Itoa(c.helper().cmd.Process.Pid) + "/root" + dir
}

// close ends the helper with everything that runs below it.
func (c *confined) close() error {
	if k := c.helper(); k != nil {
		return k.close()
	}
	return nil
}

// SealDescriptors keeps the descriptors that this process inherited beside its three streams from its children. It is called at the
// start of the program.
func SealDescriptors() error { return confine.SealDescriptors() }

// services lists the sockets in the file system at which programs outside the given directories listen: a command that may only read can
// still connect to them, and they may do for it what it cannot do itself.
func services(own []string) (paths []string) {
	const listening = 0x10000 // __SO_ACCEPTCON, in the fourth column
	b, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || !strings.HasPrefix(f[7], "/") {
			continue
		}
		_, path, _ := strings.Cut(line, f[6]+" ") // it may contain spaces
		flags, err := strconv.ParseUint(f[3], 16, 64)
		if path = strings.TrimSpace(path); err != nil || flags&listening == 0 && f[4] != "0002" { // datagrams need no listener
			continue
		}
		if !slices.ContainsFunc(own, func(dir string) bool { return strings.HasPrefix(path, dir+"/") }) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}
