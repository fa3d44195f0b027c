package host

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/trust"
)

// pluginCode are the directories with a person's own plugins, and what these import, in OpenCode's configuration. Confined commands see them,
// though not what lies beside them, which may hold keys.
func pluginCode(home string) (dirs []string) {
	for _, name := range []string{"plugin", "plugins", "tool", "tools", "node_modules"} {
		if home != "" {
			dirs = append(dirs, filepath.Join(home, ".config/opencode", name))
		}
	}
	return dirs
}

// maxSettings is the size of a file with settings of a plugin, in bytes.
const maxSettings = 1 << 20

// ownConfig makes the directories for the configuration of a confined plugin, in own, and returns the variables that name them; none where it
// is not confined. They have links to what the person has, which the plugin cannot change, copies of the settings of plugins, which lie in a
// hidden directory, and room for what it adds: many write a file there when they begin or are called, and fail without.
func ownConfig(run *sandbox.Runner, own, program string) ([]string, error) {
	if run.Confine == nil || !run.Confine.Way.Holds(confine.Files) {
		return nil, nil
	}
	root, err := os.OpenRoot(own) // others may write there at the same time
	if err != nil {
		return nil, StateError(own, err)
	}
	defer root.Close()
	name := "config-" + trust.Sum(program)[:8]
	opencode, claude := filepath.Join(name, "opencode"), filepath.Join(name, "claude")
	err = errors.Join(root.RemoveAll(name), root.Mkdir(name, 0o700), root.Mkdir(opencode, 0o700))
	from := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(run.Confine.Home, ".config"))
	entries, _ := os.ReadDir(from) // the person may have none
	for _, e := range entries {
		if path := filepath.Join(from, e.Name()); err == nil && e.Name() != "opencode" && e.Name() != "claude" && !slices.Contains(run.Confine.Hide, path) {
			err = root.Symlink(path, filepath.Join(name, e.Name()))
		}
	}
	entries, _ = os.ReadDir(filepath.Join(from, "opencode"))
	for _, e := range entries {
		base, _, _ := strings.Cut(e.Name(), ".")
		if info, ierr := e.Info(); err != nil || ierr != nil || !info.Mode().IsRegular() || info.Size() > maxSettings || base == "opencode" || base == "config" {
			continue // OpenCode's own files may have keys
		}
		var b []byte
		if b, err = os.ReadFile(filepath.Join(from, "opencode", e.Name())); err == nil {
			err = root.WriteFile(filepath.Join(opencode, e.Name()), b, 0o600)
		}
	}
	if err = errors.Join(err, root.Mkdir(claude, 0o700)); err != nil {
		return nil, StateError(own, err)
	}
	return []string{"XDG_CONFIG_HOME=" + filepath.Join(own, name), "CLAUDE_CONFIG_DIR=" + filepath.Join(own, claude)}, nil
}
