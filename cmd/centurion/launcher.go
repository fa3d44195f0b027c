package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"centurion"
	"centurion/host"
	"centurion/host/service"
)

// launcherMark begins every launcher, by which an older one is known.
const launcherMark = "#!/bin/sh\n# Written by: centurion serve --install-launcher\n"

// installLauncher writes a program named opencode into a directory, which serves as OpenCode's does: OpenCode's SDK starts it.
func (c *cli) installLauncher(dir string) error {
	const op = "install launcher"
	if runtime.GOOS == "windows" {
		return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: "the launcher is a shell script, which Windows does not run",
			Hint: "start `centurion serve` yourself, and give the SDK its address: createOpencodeClient"}
	}
	exe, err := host.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "opencode")
	old, err := os.ReadFile(path)
	_, there := os.Lstat(path)
	switch {
	case errors.Is(there, fs.ErrNotExist):
	case err != nil || !strings.HasPrefix(string(old), launcherMark):
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Err: err, Msg: path + " is another program, and stays",
			Hint: "name a directory of its own, and put it first in the PATH of what uses the SDK"}
	}
	text := launcherMark + `case "$1" in serve) exec ` + service.Typed([]string{exe}) + ` "$@" ;; esac
echo "this opencode only serves, as Centurion: it is for OpenCode's SDK" >&2
exit 2
`
	err = os.WriteFile(path+".new", []byte(text), 0o755)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return &centurion.Error{Op: op, Kind: centurion.KindConfig, Err: err, Hint: "name a directory that exists and that you can write"}
	}
	return c.say(nil, "wrote "+path+"; put "+dir+" first in the PATH of what uses OpenCode's SDK")
}
