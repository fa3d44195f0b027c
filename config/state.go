package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"centurion/guard/durable"
)

// StateDir returns Centurion's state directory: $CENTURION_HOME, otherwise $XDG_DATA_HOME/centurion, otherwise
// ~/.local/share/centurion. It creates nothing. A nil env means os.Getenv. The error has KindConfig if none of the variables, including
// HOME, is set.
func StateDir(env func(string) string) (string, error) { return Options{Env: env}.stateDir() }

func (o Options) stateDir() (string, error) {
	if dir := o.env("CENTURION_HOME"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := o.base("XDG_DATA_HOME", ".local", "share"); dir != "" {
		return filepath.Join(dir, "centurion"), nil
	}
	return "", configError("no place for the state directory: neither CENTURION_HOME nor XDG_DATA_HOME nor HOME is set",
		"set CENTURION_HOME to a directory that only you can read")
}

// ProjectDir returns a project's directory below a state directory: projects/<name>-<hash>, with the first 8 hexadecimal digits of the
// SHA-256 of the project's absolute path, with links resolved, so that two paths to a directory share their state. The name is for
// people; only the hash distinguishes projects.
func ProjectDir(state, project string) string {
	if abs, err := filepath.Abs(project); err == nil {
		project = abs
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(state, "projects", fileName(filepath.Base(project))+"-"+hex.EncodeToString(sum[:4]))
}

// fileName keeps characters that every file system accepts: letters, digits and a few signs, at most 40.
func fileName(s string) string {
	out := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, strings.ToValidUTF8(s, "-"))
	if r := []rune(out); len(r) > 40 {
		out = string(r[:40])
	}
	if out = strings.Trim(out, ".-"); out == "" {
		return "root"
	}
	return out
}

// writePrivate replaces a file atomically; only its owner can read it. It creates a missing directory.
func writePrivate(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, data, 0o600)
}
