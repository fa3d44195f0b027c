package service

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"

	"centurion"
)

// Supervisor describes what starts a program at login or boot: systemd or launchd.
type Supervisor struct {
	File   string     // where the service is declared
	text   string     // its content
	links  []string   // files created by the supervisor, to be removed if it cannot be reached
	reach  []string   // succeeds if the supervisor can be reached, and makes it read the file
	forget []string   // before start; fails if there is nothing to forget
	start  []string   // now and at every boot
	Later  [][]string // commands for the person if the supervisor cannot be reached
	stop   []string   // the opposite of start
	after  []string   // after the file is removed
	state  []string   // prints the line "active" if the service runs
	active string
}

// The names of the services in the supervisors.
const (
	Resuming = "centurion"
	Serving  = "centurion-serve"
)

// Program is what a supervisor needs to know.
type Program struct {
	Name       string   // of the service: Resuming or Serving
	About      string   // what it does, in one line
	Args       []string // of the program
	Executable string   // absolute
	Env        []string // NAME=value
	Home       string   // the person's
	Config     string   // the person's configuration: $XDG_CONFIG_HOME or ~/.config
	UID        int
}

// New returns the supervisor of an operating system. The error has centurion.KindUsage if none is known.
func New(goos string, s Program) (*Supervisor, error) {
	switch goos {
	case "linux":
		if strings.ContainsFunc(s.Executable, func(r rune) bool { return strings.ContainsRune(`"'\`, r) || unicode.IsControl(r) }) {
			return nil, &centurion.Error{Op: "install service", Kind: centurion.KindUsage, Msg: fmt.Sprintf("systemd takes no program whose path holds quotes, backslashes or control characters: %q", s.Executable),
				Hint: "put the program where its path holds none, as in ~/.local/bin"}
		}
		dir, unit := filepath.Join(s.Config, "systemd", "user"), s.Name+".service"
		ctl := func(args ...string) []string { return append([]string{"systemctl", "--user"}, args...) }
		return &Supervisor{File: filepath.Join(dir, unit), text: systemdUnit(s),
			links: []string{filepath.Join(dir, "default.target.wants", unit)},
			reach: ctl("daemon-reload"), start: ctl("enable", "--now", unit), Later: [][]string{ctl("daemon-reload"), ctl("enable", "--now", unit)},
			stop: ctl("disable", "--now", unit), after: ctl("daemon-reload"), state: ctl("is-active", unit), active: "active"}, nil
	case "darwin":
		domain := fmt.Sprintf("gui/%d", s.UID)
		file := filepath.Join(s.Home, "Library", "LaunchAgents", s.Name+".plist")
		bootstrap := []string{"launchctl", "bootstrap", domain, file}
		bootout := []string{"launchctl", "bootout", domain + "/" + s.Name}
		return &Supervisor{File: file, text: launchAgent(s), reach: []string{"launchctl", "print", domain}, forget: bootout,
			start: bootstrap, Later: [][]string{bootstrap}, stop: bootout,
			state: []string{"launchctl", "print", domain + "/" + s.Name}, active: "state = running"}, nil
	}
	return nil, &centurion.Error{Op: "find service manager", Kind: centurion.KindUsage, Msg: "how a service is installed on " + goos + " is not known here",
		Hint: "let the system start `centurion service run` when you log in"}
}

// systemdUnit returns a systemd user unit. A missing program, or a mission that crashes the machine, is not restarted forever: five
// times in ten minutes.
func systemdUnit(s Program) string {
	var b strings.Builder
	b.WriteString("[Unit]\n" +
		"Description=Centurion: " + s.About + "\n" +
		"StartLimitIntervalSec=600\n" +
		"StartLimitBurst=5\n" +
		"\n[Service]\n" +
		"Type=simple\n")
	fmt.Fprintf(&b, "ExecStart=%s", systemdWord(s.Executable))
	for _, arg := range s.Args {
		if !isPlain(arg) {
			arg = systemdWord(strings.ReplaceAll(arg, "$", "$$")) // a dollar sign starts a variable there
		}
		b.WriteString(" " + arg)
	}
	b.WriteString("\n")
	for _, kv := range s.Env {
		fmt.Fprintf(&b, "Environment=%s\n", systemdWord(kv))
	}
	// Mixed: the signal goes only to the service, which passes it on to its hosts; after the timeout the rest is killed.
	b.WriteString("Restart=on-failure\n" +
		"RestartSec=10\n" +
		"KillMode=mixed\n" +
		"TimeoutStopSec=60\n" +
		"\n[Install]\n" +
		"WantedBy=default.target\n")
	return b.String()
}

// systemdWord quotes one word of a unit file: backslashes and quotes as in C, and percent signs, which start a specifier.
func systemdWord(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "%", "%%").Replace(s) + `"`
}

// launchAgent returns a launchd agent. ExitTimeOut is how many seconds the hosts may take to end.
func launchAgent(s Program) string {
	var b strings.Builder
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n" +
		"<plist version=\"1.0\">\n<dict>\n")
	key(&b, "\t", "Label", s.Name)
	b.WriteString("\t<key>ProgramArguments</key>\n\t<array>\n")
	for _, arg := range append([]string{s.Executable}, s.Args...) {
		element(&b, "\t\t", "string", arg)
	}
	b.WriteString("\t</array>\n\t<key>EnvironmentVariables</key>\n\t<dict>\n")
	for _, kv := range s.Env {
		name, value, _ := strings.Cut(kv, "=")
		key(&b, "\t\t", name, value)
	}
	b.WriteString("\t</dict>\n")
	key(&b, "\t", "StandardErrorPath", filepath.Join(s.Home, "Library", "Logs", s.Name+".log"))
	b.WriteString("\t<key>RunAtLoad</key>\n\t<true/>\n" +
		"\t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n" +
		"\t<key>ThrottleInterval</key>\n\t<integer>10</integer>\n" +
		"\t<key>ExitTimeOut</key>\n\t<integer>60</integer>\n" +
		"</dict>\n</plist>\n")
	return b.String()
}

func key(b *strings.Builder, indent, name, value string) {
	element(b, indent, "key", name)
	element(b, indent, "string", value)
}

func element(b *strings.Builder, indent, tag, text string) {
	fmt.Fprintf(b, "%s<%s>", indent, tag)
	_ = xml.EscapeText(io.Writer(b), []byte(text)) // a builder accepts everything
	fmt.Fprintf(b, "</%s>\n", tag)
}
