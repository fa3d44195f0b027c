package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/host"
	"centurion/host/service"
	"centurion/server"
	"centurion/text"
)

func serviceCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "service", Short: "Resume missions after a reboot",
		Long: "Resume missions after a reboot: a systemd user unit (Linux) or a launchd agent (macOS) starts `centurion service run`,\n" +
			"which resumes interrupted missions in every project. Another one may start `centurion serve`.",
		Example: "  centurion service install\n  centurion service status", Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var serve bool
	var dir string
	install := &cobra.Command{Use: "install", Short: "Install the service and start it", Args: exactly(0, 0, "no arguments"),
		Long: "Install the service for your user, without root, and start it. Installing it again replaces it.\n" +
			"A service has none of your shell's variables: store keys with `centurion auth login`.\n" +
			"With --serve another one also starts `centurion serve` on its usual port, for the project in this directory and for those that clients name.",
		Example: "  centurion service install\n  centurion service install --serve",
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := (&services{c}).install(cmd.Context(), service.Resuming, "")
			if err == nil && serve {
				err = (&services{c}).installServer(cmd.Context(), dir)
			}
			return err
		}}
	install.Flags().BoolVar(&serve, "serve", false, "also serve clients of OpenCode whenever the machine runs")
	install.Flags().StringVar(&dir, "dir", "", "the project directory of the server (default: here)")
	cmd.AddCommand(install,
		&cobra.Command{Use: "remove", Short: "Stop the service and remove it", Args: exactly(0, 0, "no arguments"),
			Long:    "Stop the service and remove it, with the one that serves. Their missions stop and can be resumed.",
			Example: "  centurion service remove", RunE: func(cmd *cobra.Command, _ []string) error { return (&services{c}).remove(cmd.Context()) }},
		&cobra.Command{Use: "run", Short: "Resume every interrupted mission", Args: exactly(0, 0, "no arguments"),
			Long: "Resume every interrupted mission in every project, until all have ended. The service runs this command; you can run it\n" +
				"too. When it is stopped, unfinished missions resume at the next start.",
			Example: "  centurion service run", RunE: func(cmd *cobra.Command, _ []string) error {
				return host.RunInterrupted(cmd.Context(), c.getenv, c.err, c.env, c.note)
			}},
		serviceStatusCommand(c))
	return cmd
}

// services manages the service of this machine.
type services struct{ *cli }

// supervisor returns the supervisor of this machine, with a service as it would be installed now. The server's has a directory.
func (c *services) supervisor(name, exe, dir string) (*service.Supervisor, error) {
	about, args := "resume missions that a restart interrupted", []string{"service", "run"}
	if name == service.Serving {
		about, args = "serve clients of OpenCode", []string{"serve", "--port", strconv.Itoa(defaultPort), "--dir", dir}
	}
	s := service.Program{Name: name, About: about, Args: args, Executable: exe, Home: c.getenv("HOME"), Config: c.getenv("XDG_CONFIG_HOME"), UID: os.Getuid()}
	if !filepath.IsAbs(s.Config) {
		s.Config = filepath.Join(s.Home, ".config")
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
			s.Env = append(s.Env, name+"="+v)
		}
	}
	u, err := service.New(runtime.GOOS, s)
	if err == nil && !filepath.IsAbs(u.File) {
		return nil, &centurion.Error{Op: "find service manager", Kind: centurion.KindConfig, Msg: "HOME is not set",
			Hint: "set HOME to your home directory"}
	}
	return u, err
}

// install is `centurion service install`, for one service.
func (c *services) install(ctx context.Context, name, dir string) error {
	exe, err := service.Executable(c.getenv("PATH"))
	if err != nil {
		return err
	}
	u, err := c.supervisor(name, exe, dir)
	if err != nil {
		return err
	}
	return c.installWith(ctx, u, text.If(name == service.Serving, "It serves whenever the machine runs.",
		"It resumes interrupted missions now and whenever the machine starts. See: centurion service status"))
}

// installServer installs the service that serves, and tells its address.
func (c *services) installServer(ctx context.Context, dir string) error {
	p, ws, err := c.locate(dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	if err := (&runner{c.cli, &runFlags{format: "json"}}).confirmDirectory(ctx, p.Dir, false); err != nil {
		return err
	}
	err = c.install(ctx, service.Serving, p.Dir)
	return c.say(err, fmt.Sprintf("clients connect with: opencode attach http://127.0.0.1:%d%s%s", defaultPort, server.TokenPath, p.Token))
}

// remove is `centurion service remove`.
func (c *services) remove(ctx context.Context) error {
	serving, err := c.supervisor(service.Serving, "", "")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(serving.File); err == nil {
		if err := c.removeWith(ctx, serving); err != nil {
			return err
		}
	}
	u, err := c.supervisor(service.Resuming, "", "")
	if err != nil {
		return err
	}
	return c.removeWith(ctx, u)
}

// serviceStatus is the output of `centurion service status`.
type serviceStatus struct {
	Installed bool             `json:"installed"`
	File      string           `json:"file"`
	Running   bool             `json:"running"`
	Missions  []server.Mission `json:"missions"` // that it would resume
	Serves    bool             `json:"serves"`   // the one that serves is installed, and
	Serving   bool             `json:"serving"`  // runs
}

func serviceStatusCommand(c *cli) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "status", Short: "Show whether it is installed and what it would resume", Args: exactly(0, 0, "no arguments"),
		Long:    "Show whether the service is installed and running, and which missions it would resume now.",
		Example: "  centurion service status\n  centurion service status --format json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			return (&services{c}).status(cmd.Context(), format)
		}}
	formatFlag(cmd, &format)
	return cmd
}

func (c *services) status(ctx context.Context, format string) error {
	u, err := c.supervisor(service.Resuming, "", "")
	if err != nil {
		return err
	}
	serving, err := c.supervisor(service.Serving, "", "")
	if err != nil {
		return err
	}
	projects, err := host.InterruptedProjects(ctx, c.getenv, c.note)
	if err != nil {
		return err
	}
	s := serviceStatus{File: u.File, Missions: []server.Mission{}}
	for _, p := range projects {
		s.Missions = append(s.Missions, p.Interrupted()...)
	}
	slices.SortStableFunc(s.Missions, newestFirst)
	if _, err := os.Stat(u.File); err == nil {
		s.Installed = true
		s.Running = u.Running(ctx)
	}
	if _, err := os.Stat(serving.File); err == nil {
		s.Serves, s.Serving = true, serving.Running(ctx)
	}
	if format == "json" {
		return writeJSON(c.out, s)
	}
	running := text.If(s.Running, "yes", "no: it runs while there are missions that it resumed")
	lines := text.If(s.Installed, "installed  "+text.Escape(s.File)+"\nrunning    "+running, "installed  no; install it with: centurion service install") + "\n" +
		text.When(s.Serves, "serves     "+text.If(s.Serving, "yes", "no: it does not run; see why with: centurion serve")+"\n") +
		text.If(len(s.Missions) > 0, fmt.Sprintf("It would resume %s:\n", centurion.Count(len(s.Missions), "mission")), "No mission was interrupted: there is nothing to resume.\n")
	if _, err := fmt.Fprint(c.out, lines); err != nil {
		return err
	}
	return c.printWithDirectories(s.Missions)
}

// warn reports what would keep the service from resuming missions.
func (c *services) warn(ctx context.Context) {
	if runtime.GOOS == "linux" && !service.Lingers(ctx) {
		c.note("until you log in after a reboot, nothing of yours is started; to change that: loginctl enable-linger")
	}
	ctx, cancel := context.WithTimeout(ctx, host.ReadTimeout)
	defer cancel()
	cfg, err := config.Load(config.Options{Env: c.getenv})
	if err != nil {
		return // every other command reports the error
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

// told returns an error as one safe line.
func told(err error) string { return strings.TrimRight(oneLine(err.Error()), ".") }

func (c *services) installWith(ctx context.Context, u *service.Supervisor, does string) error {
	unreachable, err := u.Install(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("installed %s\n%s\n", u.File, does)
	if unreachable != nil {
		text = fmt.Sprintf("wrote %s\nIt is not active yet: %s. When there is a session that it can be started in, run:\n", u.File, told(unreachable))
		for _, command := range u.Later {
			text += "  " + service.Typed(command) + "\n"
		}
	}
	_, err = fmt.Fprint(c.out, text)
	c.warn(ctx)
	return err
}

func (c *services) removeWith(ctx context.Context, u *service.Supervisor) error {
	had, running, err := u.Remove(ctx)
	if running != nil {
		c.note("it could not be stopped: " + told(running))
	}
	return c.say(err, text.If(had, "removed "+u.File, "the service is not installed"))
}
