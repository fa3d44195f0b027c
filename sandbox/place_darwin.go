package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/sandbox/confine"
)

var systemWays = []confine.Way{confine.Full, confine.Files}

// sandboxExec starts a command by a profile of Seatbelt and becomes it.
const sandboxExec = "/usr/bin/sandbox-exec"

// temporarySuffix is the variable that names a process's own directory in the person's directory for temporary files. macOS's libraries,
// and mktemp, ask for that instead of looking at TMPDIR. It also marks the processes of a place.
const temporarySuffix = "DIRHELPER_USER_DIR_SUFFIX"

// confined is how the commands of a place are started on macOS: each by a profile, or not confined.
type confined struct {
	policy confine.Policy // with links followed; its Temp is "" if nothing is confined
	env    []string       // added to the environment of commands
}

// open begins to confine by a policy. The person's caches are read-only, so that builds are sent to others.
func (c *confined) open(how *Confinement, p confine.Policy, cache string, _ []string) (err error) {
	if how.Way != confine.Files {
		return errors.New("macOS has no namespaces")
	}
	out, err := exec.Command("/usr/bin/getconf", "DARWIN_USER_TEMP_DIR").Output()
	if err != nil {
		return err
	}
	if p.Temp, err = os.MkdirTemp(strings.TrimSpace(string(out)), "centurion-"); err != nil {
		return err
	}
	c.policy = p.Followed()
	c.env = append(separate(c.policy.Temp, cache), temporarySuffix+"="+filepath.Base(p.Temp),
		"xcrun_db="+filepath.Join(c.policy.Temp, "xcrun_db"), "CLANG_MODULE_CACHE_PATH="+filepath.Join(c.policy.Temp, "clang"))
	return nil
}

func (c *confined) gone() bool { return false }

// start starts a command.
func (c *confined) start(m centurion.Command, args, env []string, _ string, s streams) (process, error) {
	if c.policy.Temp == "" {
		return startChild(m, args, env, s)
	}
	profile := c.policy.Seatbelt(m.Network)
	return startChild(m, append(append([]string{sandboxExec}, profile...), args...), append(env, c.env...), s)
}

func (c *confined) lend(string, []string, bool) error { return nil }

// close ends what commands have left behind, as far as it can be found, and removes their temporary files.
func (c *confined) close() error {
	if c.policy.Temp == "" {
		return nil
	}
	endMarked(0, temporarySuffix+"="+filepath.Base(c.policy.Temp))
	return RemovePlaces(c.policy.Temp)
}

// DefaultLimits returns none: macOS limits processes and memory for all of a person's programs together only.
func DefaultLimits() (none confine.Limits) { return none }
