// Package doctor inspects the machine and reports what Centurion finds there: models and whether their servers answer, keys (never
// their values), git, the terminal, what could confine commands, the state directory, desktop notices, and through its caller
// this project's missions. It changes nothing, except that it creates and removes one file in the state directory to see whether it
// can, and it runs only `git --version` and, on Linux, `true` in its own namespaces.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/sandbox/confine"
	"centurion/text"
)

// Status is the severity of a finding.
type Status string

// The states of a finding.
const (
	OK   Status = "ok"
	Warn Status = "warn" // works, with limitations
	Fail Status = "fail" // a mission cannot run
)

// Finding is one line of the report.
type Finding struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // the next step; empty if there is nothing to do
}

// Options says what to inspect. The zero value inspects the current directory with the process's environment.
type Options struct {
	Dir     string
	Home    string
	Env     func(name string) string // nil means os.Getenv
	HTTP    *http.Client             // for local model servers; nil means a plain client
	Keyring config.Keyring           // nil means the desktop's
	Out     *os.File                 // the terminal; nil means os.Stdout
	InForce []string                 // what is in force for commands, as the command runner describes it

	// Confinement returns how commands are confined here, and why not fully.
	Confinement func() (centurion.Confinement, error)

	// Missions inspects the project's own state. Nil skips it.
	Missions func(ctx context.Context) []Finding
	// Notify reports whether desktop notices can be shown and, if not, why. Nil skips the finding.
	Notify func() (ok bool, why string)
}

const (
	commandCap = 5 * time.Second // for `git --version` and the like
	lowSpace   = 1 << 30         // bytes; a long mission's worktrees and journal take some hundred MB
)

// Run makes all checks and returns the findings in display order. Slow checks run concurrently; a cancelled context cuts them short and
// is not an error of its own.
func Run(ctx context.Context, o Options) []Finding {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	d := &doctor{Options: o}
	checks := []struct {
		name string
		run  func(context.Context) []Finding
	}{
		{"configuration", d.configuration}, {"instructions", d.instructions}, {"git", d.git}, {"terminal", d.terminal},
		{"sandbox", d.sandbox}, {"state", d.state}, {"missions", d.missions}, {"notices", d.notices},
	}
	found := make([][]Finding, len(checks))
	var g guard.Group
	for i, c := range checks {
		g.Go(c.name, func() error {
			if err := guard.Call(c.name, func() error { found[i] = c.run(ctx); return nil }); err != nil {
				found[i] = []Finding{{c.name, Fail, err.Error(), "please report this"}}
			}
			return nil
		})
	}
	_ = g.Wait() // every check keeps its own failure
	return slices.Concat(found...)
}

// Worst returns the worst status of the findings, or [OK] without any.
func Worst(findings []Finding) Status {
	worst := OK
	for _, f := range findings {
		if f.Status == Fail || f.Status == Warn && worst == OK {
			worst = f.Status
		}
	}
	return worst
}

type doctor struct{ Options }

func (d *doctor) config() config.Options {
	return config.Options{Dir: d.Dir, Home: d.Home, Env: d.Env, HTTP: d.HTTP, Keyring: d.Keyring}
}

// failed returns a finding for an error.
func failed(name string, err error) Finding {
	return Finding{name, Fail, err.Error(), centurion.HintOf(err)}
}

// configuration covers the files, the model and the keys, which depend on each other.
func (d *doctor) configuration(ctx context.Context) []Finding {
	c, err := config.Load(d.config())
	if err == nil {
		_, err = c.Rules() // also to learn which need trust
	}
	if err != nil {
		return append([]Finding{failed("configuration", err)}, d.keys()...)
	}
	files := Finding{Name: "configuration", Status: OK, Detail: cmp.Or(strings.Join(c.Sources, ", "), "no file: defaults are used")}
	out := append([]Finding{files}, ignored(c)...)
	model := Finding{Name: "model", Status: OK}
	r, err := c.ResolveModel(ctx, "")
	switch {
	case err != nil:
		model = failed("model", err)
	default:
		model.Detail = fmt.Sprintf("%s at %s (from %s)", r.Model, r.Address(), cmp.Or(r.From, "the configuration")) +
			text.When(r.KeySource != "", ", key from "+r.KeySource) + text.When(r.Price == nil, ", price unknown")
		if r.Unknown {
			model.Status, model.Hint = Warn, r.Warning
		}
	}
	return slices.Concat(append(out, model), askServers(ctx, c, r.Model.Provider), d.keys())
}

// keys lists where keys are. The model's finding says which one a mission uses.
func (d *doctor) keys() []Finding {
	sources := slices.DeleteFunc(config.KeyVariables(), func(name string) bool { return d.Env(name) == "" })
	stored, err := config.NewKeys(d.config()).List()
	if err != nil {
		return []Finding{failed("keys", err)}
	}
	sources = append(sources, text.Each(stored, func(k config.KeyInfo) string { return fmt.Sprintf("%s (%s)", k.Provider, k.Source) })...)
	out := []Finding{{Name: "keys", Status: OK, Detail: cmp.Or(strings.Join(sources, ", "), "none in the environment or stored")}}
	if dir, err := config.StateDir(d.Env); err == nil && runtime.GOOS != "windows" {
		path := filepath.Join(dir, "auth.json")
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			out = append(out, Finding{"keys", Warn, fmt.Sprintf("%s can be read by others (%v)", path, info.Mode().Perm()),
				"chmod 600 " + path})
		}
	}
	return out
}

// version returns the first line of a program's output.
func version(ctx context.Context, program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, commandCap)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return printable(line), nil
}

// printable returns a program's output as one short line that is safe to show.
func printable(s string) string { return text.Cut(text.Clean(s), 100) }

func (d *doctor) git(ctx context.Context) []Finding {
	v, err := version(ctx, "git")
	if err != nil {
		return []Finding{{"git", Warn, reason(err), "install git: without it workers share one directory"}}
	}
	f := Finding{Name: "git", Status: OK, Detail: v}
	switch {
	case !inRepository(d.Dir):
		f.Detail += "; this directory is in no repository, which is not needed: sessions share it"
	case older(v, 2, 38):
		f.Status, f.Detail, f.Hint = Warn, v+" is too old for checkouts: sessions share this directory", "install git 2.38 or newer"
	default:
		f.Detail += "; each session that writes gets a checkout of its own"
	}
	return []Finding{f}
}

// older reports whether the version in a line such as "git version 2.39.5" is older than the given one.
func older(line string, major, minor int) bool {
	for word := range strings.FieldsSeq(line) {
		var a, b int
		if n, _ := fmt.Sscanf(word, "%d.%d", &a, &b); n == 2 {
			return a < major || a == major && b < minor
		}
	}
	return false
}

// inRepository searches upwards for .git, as git itself does first.
func inRepository(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
}

func reason(err error) string {
	return text.If(errors.Is(err, exec.ErrNotFound), "not on PATH", printable(err.Error()))
}

func (d *doctor) terminal(context.Context) []Finding {
	out := cmp.Or(d.Out, os.Stdout)
	fd := int(out.Fd())
	if !term.IsTerminal(fd) {
		return []Finding{{Name: "terminal", Status: OK, Detail: "none: plain lines are printed and nothing is asked"}}
	}
	f := Finding{Name: "terminal", Status: OK, Detail: cmp.Or(d.Env("TERM"), "unknown type")}
	if w, h, err := term.GetSize(fd); err == nil {
		f.Detail += fmt.Sprintf(", %d×%d", w, h)
		if w < 60 || h < 15 {
			f.Status, f.Hint = Warn, "make it at least 60×15: lines are cut"
		}
	}
	f.Detail += ", " + colours(d.Env)
	return []Finding{f}
}

// colours returns the terminal's number of colours, according to the usual variables.
func colours(env func(string) string) string {
	t := env("TERM")
	switch {
	case env("NO_COLOR") != "":
		return "no colours (NO_COLOR is set)"
	case t == "" || t == "dumb":
		return "no colours"
	case env("COLORTERM") == "truecolor" || env("COLORTERM") == "24bit" || strings.HasSuffix(t, "-direct"):
		return "16 million colours"
	case strings.Contains(t, "256color"):
		return "256 colours"
	}
	return "16 colours"
}

// sandbox reports first how commands are confined and then what the system could do: the two must not be confused.
func (d *doctor) sandbox(ctx context.Context) []Finding {
	f := Finding{"sandbox", Warn, "confinement of commands: not known", "leave permission asks on, or run in a container"}
	if d.Confinement != nil {
		how, why := d.Confinement()
		f.Detail = "confinement of commands: " + how.String()
		switch {
		case how.Way == string(confine.Full):
			f.Status, f.Hint = OK, ""
		case restricted(apparmorSwitch):
			f.Hint = appArmorCommand()
		case why != nil:
			f.Detail += " (" + printable(why.Error()) + ")"
		}
	}
	return []Finding{f,
		{Name: "sandbox", Status: OK, Detail: "in force for each command: " + strings.Join(d.InForce, ", ")},
		{Name: "sandbox", Status: OK, Detail: "this system offers: " + strings.Join(abilities(ctx), ", ") + " (used unless --sandbox is off)"}}
}

// apparmorSwitch says 1 where newer versions of Ubuntu take all rights from a process in a user namespace of its own.
const apparmorSwitch = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// restricted reports whether a switch is on.
func restricted(path string) bool {
	b, err := os.ReadFile(path)
	return err == nil && strings.TrimSpace(string(b)) == "1"
}

// appArmorCommand returns the command that writes and loads an AppArmor profile by which this program may use user namespaces.
func appArmorCommand() string {
	self, err := os.Executable()
	if err != nil {
		self = "/usr/local/bin/centurion"
	}
	return `AppArmor forbids user namespaces here; allow them to this program: printf '%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' ` +
		`'profile centurion "` + self + `" flags=(unconfined) {' '  userns,' '}' | sudo tee /etc/apparmor.d/centurion && ` +
		`sudo apparmor_parser -r /etc/apparmor.d/centurion`
}

func (d *doctor) state(context.Context) []Finding {
	dir, err := config.StateDir(d.Env)
	if err != nil {
		return []Finding{failed("state", err)}
	}
	f := Finding{Name: "state", Status: OK, Detail: dir}
	at, err := existing(dir)
	if err == nil {
		err = writable(at)
	}
	if err != nil {
		return []Finding{{"state", Fail, dir + " cannot be written: " + err.Error(), "make it writable or set CENTURION_HOME to another directory"}}
	}
	if at != dir {
		f.Detail += " (not there yet, can be created)"
	}
	if free, err := freeSpace(at); err == nil {
		f.Detail += fmt.Sprintf(", %.1f GB free", float64(free)/1e9)
		if free < lowSpace {
			f.Status, f.Hint = Warn, "free some space: a full disk pauses a mission"
		}
	}
	return []Finding{f}
}

// existing returns dir or its nearest existing parent.
func existing(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			return "", fmt.Errorf("%s is not a directory", dir)
		case !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir):
			return "", err
		}
		dir = filepath.Dir(dir)
	}
}

// writable tries to write: permission bits do not show read-only file systems, quotas and access lists.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".centurion-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *doctor) notices(context.Context) []Finding {
	if d.Notify == nil {
		return nil
	}
	ok, why := d.Notify()
	if !ok {
		return []Finding{{"notices", Warn, cmp.Or(why, "not available"), "desktop notifications are off; the terminal shows the same"}}
	}
	return []Finding{{Name: "notices", Status: OK, Detail: cmp.Or(why, "desktop notices can be shown")}}
}

func (d *doctor) missions(ctx context.Context) []Finding {
	if d.Missions == nil {
		return nil
	}
	return d.Missions(ctx)
}
