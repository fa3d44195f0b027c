package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/server"
	"centurion/tui"
)

func (c *cli) serviceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "service", Short: "Bring missions back after a reboot",
		Long: "Bring missions back after a reboot: a systemd user unit (Linux) or a launchd agent (macOS) starts `centurion service run`,\n" +
			"which goes on with what the end of the machine has interrupted, in every project.",
		Example: "  centurion service install\n  centurion service status", Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(
		&cobra.Command{Use: "install", Short: "Install the service and start it", Args: exactly(0, 0, "no arguments"),
			Long: "Install the service for you alone, no root needed, and start it. Installing it again writes it anew.\n" +
				"A service has none of your shell's variables: keep keys with `centurion auth login`.",
			Example: "  centurion service install", RunE: func(cmd *cobra.Command, _ []string) error { return c.serviceInstall(cmd.Context()) }},
		&cobra.Command{Use: "remove", Short: "Stop the service and remove it", Args: exactly(0, 0, "no arguments"),
			Long:    "Stop the service and remove it. The missions that it works on stay as they are and can be resumed.",
			Example: "  centurion service remove", RunE: func(cmd *cobra.Command, _ []string) error { return c.serviceRemove(cmd.Context()) }},
		&cobra.Command{Use: "run", Short: "Go on with every interrupted mission", Args: exactly(0, 0, "no arguments"),
			Long: "Go on with every interrupted mission, in every project, until all have ended. The service runs this; it is of use by\n" +
				"hand too. When it is told to end, the missions stay as they are for the next time.",
			Example: "  centurion service run", RunE: func(cmd *cobra.Command, _ []string) error { return c.serviceRun(cmd.Context()) }},
		c.serviceStatusCommand())
	return cmd
}

// managerTime is how long systemd or launchd may take for one command.
const (
	managerTime = time.Minute
	startPause  = 200 * time.Millisecond // between two attempts to start what is still about to end
)

// supervisor returns the supervisor of this machine, with the service as it would be installed now.
func (c *cli) supervisor(exe string) (*supervisor, error) {
	s := service{exe: exe, home: c.getenv("HOME"), conf: c.getenv("XDG_CONFIG_HOME"), uid: os.Getuid()}
	if !filepath.IsAbs(s.conf) {
		s.conf = filepath.Join(s.home, ".config")
	}
	for _, name := range []string{"PATH", "CENTURION_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
		v := c.getenv(name)
		if name == "CENTURION_HOME" && v != "" { // it may be relative to here
			var err error
			if v, err = config.StateDir(c.getenv); err != nil {
				return nil, err
			}
		}
		if v != "" {
			s.env = append(s.env, name+"="+v)
		}
	}
	u, err := supervisorOn(runtime.GOOS, s)
	if err == nil && !filepath.IsAbs(u.file) {
		return nil, &centurion.Error{Op: "find service manager", Kind: centurion.KindConfig, Msg: "HOME is not set",
			Hint: "set HOME to your home directory"}
	}
	return u, err
}

// serviceInstall is `centurion service install`.
func (c *cli) serviceInstall(ctx context.Context) error {
	exe, err := lasting(c.getenv("PATH"))
	if err != nil {
		return err
	}
	u, err := c.supervisor(exe)
	if err != nil {
		return err
	}
	return c.installWith(ctx, u)
}

// installWith installs the service. Where the supervisor cannot be reached, as in a container or before the first
// login, its file is written and what to do later is said.
func (c *cli) installWith(ctx context.Context, u *supervisor) error {
	if err := writeWhole(u.file, u.text); err != nil {
		return &centurion.Error{Op: "install service", Kind: centurion.KindConfig, Err: err, Hint: "make " + filepath.Dir(u.file) + " a directory that you can write"}
	}
	if _, err := manage(ctx, u.reach); err != nil {
		lines := []string{"wrote " + u.file, "It is not active yet: " + told(err) + ". When there is a session that it can be started in, run:"}
		for _, command := range u.later {
			lines = append(lines, "  "+typed(command))
		}
		_, err = fmt.Fprintln(c.out, strings.Join(lines, "\n"))
		c.warnService(ctx)
		return err
	}
	if err := u.begin(ctx); err != nil {
		return &centurion.Error{Op: "start service", Kind: centurion.KindInternal, Msg: u.file + " is written, but " + told(err),
			Hint: "try it again with: " + typed(u.start)}
	}
	_, err := fmt.Fprintf(c.out, "installed %s\nIt goes on with interrupted missions now and whenever the machine starts. See: centurion service status\n", u.file)
	c.warnService(ctx)
	return err
}

// begin starts the service. What is forgotten may still be about to end, and is in the way for so long.
func (u *supervisor) begin(ctx context.Context) error {
	forgotten := false
	if u.forget != nil {
		_, err := manage(ctx, u.forget)
		forgotten = err == nil
	}
	for start := time.Now(); ; {
		_, err := manage(ctx, u.start)
		if err == nil || !forgotten || time.Since(start) > managerTime {
			return err
		}
		t := time.NewTimer(startPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// serviceRemove is `centurion service remove`.
func (c *cli) serviceRemove(ctx context.Context) error {
	u, err := c.supervisor("")
	if err != nil {
		return err
	}
	return c.removeWith(ctx, u)
}

func (c *cli) removeWith(ctx context.Context, u *supervisor) error {
	if _, err := os.Lstat(u.file); errors.Is(err, fs.ErrNotExist) {
		return c.say(nil, "the service is not installed")
	}
	if _, err := manage(ctx, u.stop); err != nil {
		c.note("it could not be stopped: " + told(err))
	}
	for _, file := range append(u.links, u.file) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &centurion.Error{Op: "remove service", Kind: centurion.KindConfig, Err: err, Hint: "remove the file " + file}
		}
	}
	if u.after != nil {
		_, _ = manage(ctx, u.after) // it forgets the file at its next start in any case
	}
	return c.say(nil, "removed "+u.file)
}

// serviceStatus is what `centurion service status` tells.
type serviceStatus struct {
	Installed bool             `json:"installed"`
	File      string           `json:"file"`
	Running   bool             `json:"running"`
	Missions  []server.Mission `json:"missions"` // that it would bring back
}

func (c *cli) serviceStatusCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "status", Short: "Say whether it is installed, and what it would bring back", Args: exactly(0, 0, "no arguments"),
		Long:    "Say whether the service is installed and runs, and which missions it would bring back if it were started now.",
		Example: "  centurion service status\n  centurion service status --format json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return badValue("format", format, []string{"text", "json"})
			}
			return c.serviceStatus(cmd.Context(), format)
		}}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func (c *cli) serviceStatus(ctx context.Context, format string) error {
	u, err := c.supervisor("")
	if err != nil {
		return err
	}
	projects, err := c.stranded(ctx)
	if err != nil {
		return err
	}
	s := serviceStatus{File: u.file, Missions: []server.Mission{}}
	for _, p := range projects {
		s.Missions = append(s.Missions, p.interrupted()...)
	}
	slices.SortStableFunc(s.Missions, newestFirst)
	if _, err := os.Stat(u.file); err == nil {
		s.Installed = true
		s.Running = u.running(ctx)
	}
	if format == "json" {
		return writeJSON(c.out, s)
	}
	lines := "installed  no; install it with: centurion service install\n"
	if s.Installed {
		lines = "installed  " + tui.Escape(s.File) + "\nrunning    no: it runs while there are missions that it has brought back\n"
	}
	if s.Running {
		lines = "installed  " + tui.Escape(s.File) + "\nrunning    yes\n"
	}
	if len(s.Missions) == 0 {
		lines += "No mission was interrupted: there is nothing to bring back.\n"
	} else {
		lines += fmt.Sprintf("It would bring back %s:\n", centurion.Count(len(s.Missions), "mission"))
	}
	if _, err := fmt.Fprint(c.out, lines); err != nil {
		return err
	}
	return c.printPlaced(s.Missions)
}

func (u *supervisor) running(ctx context.Context) bool {
	state, err := manage(ctx, u.state)
	return err == nil && slices.ContainsFunc(strings.Split(state, "\n"), func(line string) bool { return strings.TrimSpace(line) == u.active })
}

// warnService tells what would keep an installed service from bringing missions back.
func (c *cli) warnService(ctx context.Context) {
	if runtime.GOOS == "linux" {
		on, err := manage(ctx, []string{"loginctl", "show-user", fmt.Sprint(os.Getuid()), "--property=Linger", "--value"})
		if err != nil || strings.TrimSpace(on) != "yes" {
			c.note("until you log in after a reboot, nothing of yours is started; to change that: loginctl enable-linger")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	cfg, err := config.Load(config.Options{Env: c.getenv})
	if err != nil {
		return // every other command tells what is wrong with it
	}
	r, err := cfg.ResolveModel(ctx, "")
	if err != nil {
		return
	}
	if r.KeySource != "" && c.getenv(r.KeySource) != "" {
		c.note(fmt.Sprintf("the key of %s comes from %s, a variable that the service will not have; keep it with: centurion auth login %s",
			r.Model, r.KeySource, r.Model.Provider))
	}
	const address = "OPENAI_BASE_URL"
	if url := strings.TrimRight(c.getenv(address), "/"); url != "" && url == r.BaseURL {
		c.note(fmt.Sprintf("the address of %s comes from %s, a variable that the service will not have; write it as provider.%s.options.baseURL into opencode.json",
			r.Model, address, r.Model.Provider))
	}
}

// lasting returns the path of this program as a service can use it: the name on the PATH if that leads to the same
// file, so that an update is found. A program that will be gone is refused.
func lasting(path string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindInternal, Err: err}
	}
	if isPassing(self, os.TempDir()) {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindUsage, Msg: self + " is in a temporary directory and will be gone after a reboot",
			Hint: "put the program where it stays, as in ~/.local/bin, and run it from there"}
	}
	mine, err := os.Stat(self)
	if err != nil {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindInternal, Err: err}
	}
	for _, dir := range filepath.SplitList(path) {
		named := filepath.Join(dir, filepath.Base(self))
		if fi, err := os.Stat(named); err == nil && filepath.IsAbs(dir) && os.SameFile(fi, mine) && !isPassing(named, os.TempDir()) {
			return named, nil
		}
	}
	return self, nil
}

// isPassing reports whether a program is one that the go command has built to run it once, or is in the temporary directory.
func isPassing(path, temp string) bool {
	real := func(p string) string {
		r, _ := filepath.EvalSymlinks(p)
		return cmp.Or(r, p)
	}
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return strings.HasPrefix(name, "go-build") }) {
		return true
	}
	rel, err := filepath.Rel(real(temp), real(path))
	return err == nil && filepath.IsLocal(rel)
}

// writeWhole writes a file so that whoever reads it finds the old text or the new one.
func writeWhole(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// manage runs a command of the supervisor and returns what it printed. The error says why it failed.
func manage(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		first, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("`%s` says: %s", typed(command), cmp.Or(first, exit.Error()))
	} else if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("there is no " + command[0] + " here")
	}
	return string(out), err
}

// typed is a command as a person types it into a shell.
func typed(command []string) string {
	words := slices.Clone(command)
	for i, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./=:,+@", r)
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// told is an error in one harmless line.
func told(err error) string { return strings.TrimRight(oneLine(err.Error()), ".") }
