package host

import (
	"cmp"
	"os"
	"path/filepath"

	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/trust"
)

// maxMirrored is how many files of a person's configuration a program finds one by one; what is beyond is there as whole directories.
const maxMirrored = 2000

// ownConfig makes the directories for the configuration of a confined program, in own, and returns the variables that name them; none where
// it is not confined. They have links to what the person has, which the program cannot change, and room for what it adds: many plugins write
// there when they begin or are called, and fail without.
func ownConfig(run *sandbox.Runner, own, program string) (env []string, err error) {
	if run.Confine == nil || !run.Confine.Way.Holds(confine.Files) {
		return nil, nil
	}
	m := mirror{}
	if m.root, err = os.OpenRoot(own); err != nil { // other programs may write there at the same time
		return nil, StateError(own, err)
	}
	defer m.root.Close()
	for _, c := range []struct{ variable, usual, deep string }{{"XDG_CONFIG_HOME", ".config", "opencode"}, {"CLAUDE_CONFIG_DIR", ".claude", ""}} {
		name := filepath.Base(c.usual)[1:] + "-" + trust.Sum(program)[:8]
		if err = m.root.RemoveAll(name); err == nil {
			err = m.dir(name, cmp.Or(os.Getenv(c.variable), filepath.Join(run.Confine.Home, c.usual)), c.deep)
		}
		if err != nil {
			return nil, StateError(own, err)
		}
		env = append(env, c.variable+"="+filepath.Join(own, name))
	}
	return env, nil
}

// mirror fills a directory with links.
type mirror struct {
	root *os.Root
	n    int
}

// dir makes a directory like another one. The directories in it are links if deep names another one; that one is made in any case.
func (m *mirror) dir(name, from, deep string) error {
	if err := m.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	entries, _ := os.ReadDir(from) // the person may have none
	for _, e := range entries {
		to, path := filepath.Join(name, e.Name()), filepath.Join(from, e.Name())
		var err error
		switch m.n++; {
		case deep != "" && e.Name() == deep:
			continue
		case e.IsDir() && deep == "" && m.n < maxMirrored:
			err = m.dir(to, path, "")
		default:
			err = m.root.Symlink(path, to)
		}
		if err != nil {
			return err
		}
	}
	if deep == "" {
		return nil
	}
	return m.dir(filepath.Join(name, deep), filepath.Join(from, deep), "")
}
