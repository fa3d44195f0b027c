package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"centurion"
	"centurion/sandbox/confine"
)

// confined is how the commands of a place are started on Linux: by a helper, or by a confined thread of this process.
type confined struct {
	policy confine.Policy
	caches []string // environment that sends builds to their own caches where the person's are read-only

	mu      sync.Mutex // protects the fields below
	keeper  *keeper
	threads map[bool]*confine.Launcher // with and without the network
}

// open begins to confine by a policy.
func (c *confined) open(how *Confinement, p confine.Policy, cache string, env []string) (err error) {
	c.policy = p
	if how.Way != confine.Full {
		if cache != "" {
			c.caches = []string{"XDG_CACHE_HOME=" + cache, "GOCACHE=" + filepath.Join(cache, "go-build"), "npm_config_cache=" + filepath.Join(cache, "npm")}
		}
		return nil
	}
	p.Hide = append(p.Hide, services(p.Write)...)
	k, err := startKeeper(p, how.Limits, env, &how.starting)
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
func (c *confined) start(m centurion.Command, args, env []string, id string, out *os.File) (process, error) {
	if helper := c.helper(); helper != nil {
		dir, err := filepath.EvalSymlinks(m.Dir) // a link may lie in something hidden
		if err != nil {
			return nil, err
		}
		k, err := helper.start(toHelper{ID: id, Args: args, Dir: dir, Env: append(env, "TMPDIR="+c.policy.Empty[0]), Network: m.Network}, out, m.Connect)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	if len(c.policy.Write) == 0 {
		return startChild(m, args, env, out)
	}
	l, err := c.thread(m.Network)
	if err != nil {
		return nil, err
	}
	var p *child
	err = l.Do(func() (err error) {
		p, err = startChild(m, args, append(append(env, "TMPDIR="+c.policy.Temp), c.caches...), out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// thread returns the confined thread with or without the network.
func (c *confined) thread(network bool) (*confine.Launcher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.threads[network]; l != nil {
		return l, nil
	}
	l, err := c.policy.Launch(confine.Files, network)
	if err != nil {
		return nil, err
	}
	if c.threads == nil {
		c.threads = map[bool]*confine.Launcher{}
	}
	c.threads[network] = l
	return l, nil
}

// close ends the helper with everything that runs in it, or the threads, whose commands stay confined.
func (c *confined) close() error {
	if k := c.helper(); k != nil {
		return k.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, l := range c.threads {
		err = errors.Join(err, l.Close())
	}
	c.threads = nil
	return err
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
