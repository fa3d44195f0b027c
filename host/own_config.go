package host

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/trust"
)

// ownConfig makes the directory for the configuration of a confined program, in own, and returns the variable that names it; nothing where
// it is not confined. It has links to what the person has, which the program cannot change, and room for what it adds: many plugins write a
// default file when they begin, and fail without.
func ownConfig(run *sandbox.Runner, own, program string) ([]string, error) {
	if run.Confine == nil || !run.Confine.Way.Holds(confine.Files) {
		return nil, nil
	}
	root, err := os.OpenRoot(own) // other programs may write there at the same time
	if err != nil {
		return nil, StateError(own, err)
	}
	defer root.Close()
	name := "config-" + trust.Sum(program)[:8]
	err = errors.Join(root.RemoveAll(name), root.Mkdir(name, 0o700), root.Mkdir(filepath.Join(name, "opencode"), 0o700))
	from := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(run.Confine.Home, ".config"))
	for _, dir := range []string{"", "opencode"} {
		entries, _ := os.ReadDir(filepath.Join(from, dir)) // the person may have none
		for _, e := range entries {
			if err == nil && (dir != "" || e.Name() != "opencode") {
				err = root.Symlink(filepath.Join(from, dir, e.Name()), filepath.Join(name, dir, e.Name()))
			}
		}
	}
	if err != nil {
		return nil, StateError(own, err)
	}
	return []string{"XDG_CONFIG_HOME=" + filepath.Join(own, name)}, nil
}
