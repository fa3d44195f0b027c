package permission

import (
	"slices"
	"strings"
)

// wrapper is a program that runs its arguments.
type wrapper struct {
	values   string   // single-letter options that take a value
	longs    []string // long options that take a value in the next word
	bools    []string // if there are any, all other long options take a value
	code     []string // options whose value is a script
	skip     int      // its own operands before the command
	plain    bool     // it changes nothing about the command: a rule for the command is enough
	assigns  bool     // NAME=value may precede the command
	joined   bool     // the arguments are joined to a script
	reads    bool     // without a command, it runs what it reads
	anywhere bool     // its options are not listed here: each of its words may begin the command
	guess    bool     // only denials of what it runs count: rules speak of the program itself
	why      string   // why its command is not plainly read-only; "" keeps the command's own answer
}

var command = []string{"-c", "--command"}

var wrappers = map[string]wrapper{
	"time":              {values: "fo", longs: []string{"format", "output"}, plain: true},
	"-":                 {values: "fo", longs: []string{"format", "output"}, guess: true}, // options behind the word time, which is a program where the shell is not bash
	"nice":              {values: "n", longs: []string{"adjustment"}, plain: true},
	"nohup":             {plain: true, why: "nohup lets it outlive its caller and may write nohup.out"},
	"timeout":           {values: "sk", longs: []string{"signal", "kill-after"}, skip: 1, plain: true},
	"gtimeout":          {values: "sk", longs: []string{"signal", "kill-after"}, skip: 1, plain: true},
	"command":           {plain: true},
	"stdbuf":            {values: "ioe", longs: []string{"input", "output", "error"}, plain: true},
	"ionice":            {values: "cnp", longs: []string{"class", "classdata"}, plain: true},
	"env":               {values: "uC", longs: []string{"unset", "chdir"}, plain: true, assigns: true, code: []string{"-S", "--split-string"}, why: "env runs its arguments"},
	"builtin":           {plain: true},
	"exec":              {values: "a", plain: true, why: "exec replaces the shell"},
	"noglob":            {plain: true, why: "noglob runs its arguments"},
	"xargs":             {values: "IJRnPLdasE", longs: []string{"max-args", "max-procs", "replace", "delimiter", "arg-file", "max-lines", "max-chars"}, why: "xargs runs a command with what it reads"},
	"sudo":              {values: "ugphCDRrtTU", longs: []string{"user", "group", "chdir", "prompt", "host"}, assigns: true, why: "sudo runs it with other rights"},
	"doas":              {values: "uC", why: "doas runs it with other rights"},
	"su":                {values: "sg", longs: []string{"shell", "group"}, skip: 1, code: command, why: "su runs it with other rights"},
	"runuser":           {values: "usg", longs: []string{"user", "shell", "group"}, code: command, why: "runuser runs it with other rights"},
	"sg":                {skip: 1, code: command, why: "sg runs it with other rights"},
	"chpst":             {values: "uUbedmrt/nlLPO012", why: "chpst runs it with other rights"},
	"capsh":             {code: []string{"-c"}, anywhere: true, why: "capsh runs it with other rights"},
	"chroot":            {skip: 1, why: "chroot runs a command"},
	"unshare":           {values: "SGRw", longs: []string{"setuid", "setgid", "root", "wd", "propagation", "map-user", "map-group"}, why: "unshare runs a command"},
	"nsenter":           {values: "tSG", longs: []string{"target", "setuid", "setgid"}, why: "nsenter runs a command"},
	"setpriv":           {longs: []string{"reuid", "regid", "groups", "inh-caps", "bounding-set"}, why: "setpriv runs a command"},
	"setarch":           {skip: 1, why: "setarch runs a command"},
	"prlimit":           {values: "op", why: "prlimit runs a command"},
	"choom":             {values: "n", longs: []string{"adjust"}, why: "choom runs a command"},
	"runcon":            {values: "turl", anywhere: true, why: "runcon runs a command"},
	"chrt":              {skip: 1, why: "chrt runs a command"},
	"taskset":           {skip: 1, why: "taskset runs a command"},
	"numactl":           {values: "NmpCi", why: "numactl runs a command"},
	"flock":             {values: "wE", longs: []string{"timeout", "wait", "conflict-exit-code"}, skip: 1, code: command, why: "flock runs a command"},
	"script":            {code: command, skip: 1, values: "tEIoOBTm", why: "script runs a command"},
	"watch":             {values: "n", longs: []string{"interval"}, joined: true, why: "watch runs a command again and again"},
	"parallel":          {values: "jNIaSLnP", longs: []string{"jobs", "max-args", "arg-file", "sshlogin", "delay", "timeout", "results", "joblog", "workdir", "colsep"}, joined: true, reads: true, why: "parallel runs commands"},
	"sem":               {values: "j", longs: []string{"jobs", "id"}, joined: true, why: "sem runs a command"},
	"strace":            {values: "oepsPE", why: "strace runs a command"},
	"ltrace":            {values: "oepsnuF", why: "ltrace runs a command"},
	"perf":              {anywhere: true, why: "perf runs a command"},
	"hyperfine":         {values: "wmMrpcSLnu", longs: []string{"warmup", "runs", "min-runs", "max-runs", "export-json", "export-markdown"}, code: []string{"--prepare", "--setup", "--cleanup", "--conclude", "-p", "-s", "-c"}, joined: true, why: "hyperfine runs commands"},
	"nodemon":           {code: []string{"--exec", "-x"}, anywhere: true, why: "nodemon runs a command"},
	"watchexec":         {anywhere: true, why: "watchexec runs a command"},
	"start-stop-daemon": {code: []string{"--exec", "--startas", "-x", "-a"}, anywhere: true, why: "start-stop-daemon runs a program"},
	"systemd-run":       {values: "puEtdM", longs: []string{"unit", "property", "setenv", "working-directory", "description"}, why: "systemd-run runs a command elsewhere"},
	"systemd-inhibit":   {longs: []string{"what", "who", "why", "mode"}, why: "systemd-inhibit runs a command"},
	"systemd-nspawn":    {anywhere: true, why: "systemd-nspawn runs a command"},
	"machinectl":        {anywhere: true, why: "machinectl runs a command"},
	"firejail":          {why: "firejail runs a command"},
	"bwrap":             {anywhere: true, why: "bwrap runs a command"},
	"proot":             {anywhere: true, why: "proot runs a command"},
	"unbuffer":          {plain: true, why: "unbuffer runs its arguments"},
	"caffeinate":        {values: "tw", plain: true, why: "caffeinate runs its arguments"},
	"xvfb-run":          {values: "ens", why: "xvfb-run runs a command"},
	"faketime":          {skip: 1, why: "faketime runs a command"},
	"ld-linux":          {anywhere: true, why: "the loader runs a program"},
	"dtach":             {skip: 1, values: "nAcN", anywhere: true, why: "dtach runs a command"},
	"gdb":               {anywhere: true, why: "gdb runs a program"},
	"lldb":              {anywhere: true, why: "lldb runs a program"},
	"screen":            {anywhere: true, why: "screen runs a command"},
	"xterm":             {anywhere: true, why: "xterm runs a command"},
	"gnome-terminal":    {anywhere: true, why: "gnome-terminal runs a command"},
	"ssh":               {values: "bcDEeFIiJLlmOopQRSWw", skip: 1, joined: true, why: "ssh runs a command elsewhere"},
	"mosh":              {anywhere: true, why: "mosh runs a command elsewhere"},
	"pdsh":              {values: "wxlfut", joined: true, why: "pdsh runs a command elsewhere"},
	"ansible":           {code: []string{"-a", "--args"}, why: "ansible runs commands elsewhere", anywhere: true},
	"lxc-attach":        {anywhere: true, why: "lxc-attach runs a command"},
	"lxc":               {anywhere: true, why: "lxc runs a command"},
	"distrobox":         {anywhere: true, why: "distrobox runs a command"},
	"toolbox":           {anywhere: true, why: "toolbox runs a command"},
	"nix-shell":         {code: []string{"--run", "--command"}, anywhere: true, why: "nix-shell runs a command"},
	"nix":               {anywhere: true, why: "nix runs a command"},
	"npx":               {values: "p", longs: []string{"package"}, code: []string{"-c", "--call"}, why: "npx fetches and runs a package"},
	"pipx":              {skip: 1, why: "pipx fetches and runs a package"},
	"vagrant":           {code: command, anywhere: true, why: "vagrant may run a command"},
	"tmux":              {anywhere: true, why: "tmux runs commands"},
}

// simple are wrappers whose options take no value in the next word, with the number of their operands before the command.
var simple = map[string]int{"run0": 0, "pkexec": 0, "busybox": 0, "toybox": 0, "setsid": 0, "fakeroot": 0, "dbus-run-session": 0, "dbus-launch": 0, "bunx": 0, "uvx": 0,
	"gosu": 1, "su-exec": 1, "setuidgid": 1, "linux32": 0, "linux64": 0, "i386": 0, "x86_64": 0, "valgrind": 0, "entr": 0, "ssh-agent": 0, "torsocks": 0, "torify": 0, "proxychains": 0,
	"proxychains4": 0, "eatmydata": 0, "dumb-init": 0, "tini": 0, "rlwrap": 0, "chronic": 0, "ifne": 0, "flatpak-spawn": 0, "dotenv": 0, "run-one": 0, "bear": 0, "ccache": 0, "envdir": 1}

// containerFlags are the options of docker run and its like that take no value.
var containerFlags = []string{"rm", "detach", "interactive", "tty", "init", "privileged", "read-only", "publish-all", "no-healthcheck", "oom-kill-disable", "sig-proxy", "quiet", "no-deps", "service-ports", "build", "no-TTY"}

// subWrappers are subcommands that run their arguments. Of docker's also podman and nerdctl have them.
var subWrappers = map[string]wrapper{
	"docker run":            {values: "acehlmpuvw", bools: containerFlags, code: []string{"--entrypoint"}, skip: 1},
	"docker exec":           {values: "euw", bools: containerFlags, skip: 1},
	"docker create":         {values: "acehlmpuvw", bools: containerFlags, code: []string{"--entrypoint"}, skip: 1},
	"docker compose run":    {values: "eulpvw", bools: containerFlags, code: []string{"--entrypoint"}, skip: 1},
	"docker compose exec":   {values: "euw", bools: containerFlags, skip: 1},
	"docker container run":  {values: "acehlmpuvw", bools: containerFlags, code: []string{"--entrypoint"}, skip: 1},
	"docker container exec": {values: "euw", bools: containerFlags, skip: 1},
	"docker-compose run":    {values: "eulpvw", bools: containerFlags, skip: 1},
	"docker-compose exec":   {values: "euw", bools: containerFlags, skip: 1},
	"kubectl exec":          {anywhere: true},
	"kubectl run":           {anywhere: true},
	"kubectl debug":         {anywhere: true},
	"ip netns exec":         {skip: 1},
	"ip vrf exec":           {skip: 1},
	"npm exec":              {values: "pw", longs: []string{"package", "workspace"}, code: []string{"-c", "--call"}},
	"npm x":                 {values: "pw", longs: []string{"package", "workspace"}, code: []string{"-c", "--call"}},
	"pnpm exec":             {code: command}, "pnpm dlx": {}, "yarn exec": {}, "yarn dlx": {}, "bun x": {}, "bundle exec": {}, "poetry run": {}, "pipenv run": {}, "uv run": {values: "p"},
	"hatch run": {}, "pdm run": {}, "rbenv exec": {}, "pyenv exec": {}, "asdf exec": {}, "mise exec": {}, "direnv exec": {skip: 1}, "doppler run": {}, "op run": {},
	"conda run":   {values: "np", longs: []string{"name", "prefix", "cwd"}},
	"cargo watch": {code: []string{"-s", "--shell"}, anywhere: true},
}

// subWrapper finds the subcommand of a program that runs its arguments, wherever options stand before it, and what follows it.
func subWrapper(name string, args []arg) (w wrapper, rest []arg, ok bool) {
	if name == "podman" || name == "nerdctl" {
		name = "docker"
	}
	for i := 1; i < min(len(args), 6); i++ {
		for k := i; k < min(len(args), i+2); k++ {
			key := name + " " + args[i].match
			if k > i {
				key += " " + args[k].match
			}
			if w, ok = subWrappers[key]; ok {
				w.guess = true
				return w, args[k+1:], true
			}
		}
	}
	return wrapper{}, nil, false
}

// wrapperOf returns how a program runs its arguments, and what follows its name and its subcommand.
func wrapperOf(name string, args []arg) (w wrapper, rest []arg, ok bool) {
	if w, ok = wrappers[name]; ok {
		return w, args[1:], true
	}
	skip, isSimple := simple[name]
	switch {
	case isSimple:
		return wrapper{skip: skip, why: name + " runs a command"}, args[1:], true
	case strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl"):
		return wrappers["ld-linux"], args[1:], true
	case strings.HasPrefix(name, "-"):
		return wrappers["-"], args, true
	}
	return subWrapper(name, args)
}

// codeOptions are the options of other programs whose value is a command that they run.
var codeOptions = map[string][]string{
	"tar":   {"-I", "-F", "--use-compress-program", "--to-command", "--checkpoint-action", "--rsh-command", "--rmt-command", "--info-script", "--new-volume-script"},
	"rsync": {"-e", "--rsh", "--rsync-path"}, "ssh": {"-o"}, "scp": {"-o", "-S", "-D"}, "sftp": {"-o", "-S", "-D"}, "mosh": {"--ssh", "--server"},
	"sort": {"--compress-program"}, "split": {"--filter"}, "man": {"-P", "-H", "--pager", "--html"}, "zip": {"-TT", "--unzip-command"}, "make": {"--eval", "-E"},
	"rg": {"--pre", "--hostname-bin"}, "fzf": {"--preview", "--bind"}, "nc": {"-e", "-c"}, "ncat": {"-e", "-c", "--exec", "--sh-exec", "--lua-exec"}, "netcat": {"-e", "-c"},
	"tcpdump": {"-z"}, "install": {"--strip-program"}, "fd": {"-x", "-X", "--exec", "--exec-batch"}, "fdfind": {"-x", "-X", "--exec", "--exec-batch"}, "compgen": {"-C", "-W", "-F"},
	"complete": {"-C"}, "mapfile": {"-C"}, "readarray": {"-C"}, "history": {"-s"}, "fc": {"-e"}, "bind": {"-x"}, "go": {"-toolexec", "-exec", "--toolexec", "--exec"},
	"gtar": {"-I", "--use-compress-program", "--to-command", "--checkpoint-action"}, "bsdtar": {"--use-compress-program"}, "less": {"+"}, "dpkg": {"--pre-invoke", "--post-invoke"}, "socat": {""},
}

// optionOf reports whether a word is one of the options, also cut short or behind other letters, and returns its value; attached is
// false if that is the next word.
func optionOf(f string, options []string) (value string, attached, ok bool) {
	for _, o := range options {
		switch {
		case f == o:
			return "", false, true
		case o == "" || len(o) != 2 && strings.HasPrefix(f, o+"=") || o == "+" && strings.HasPrefix(f, o):
			return strings.TrimPrefix(f[len(o):], "="), true, true
		case strings.HasPrefix(o, "--"):
			name, value, has := strings.Cut(f, "=")
			if len(name) > 4 && strings.HasPrefix(o, name) {
				return value, has, true
			}
		case len(o) == 2 && o[0] == '-' && len(f) > 2 && f[0] == '-' && f[1] != '-':
			before, after, found := strings.Cut(f[1:], o[1:])
			if found && strings.Trim(before, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
				return after, after != "", true
			}
		}
	}
	return "", false, false
}

// optionCode follows commands that stand as values of a program's options.
func (a *analyzer) optionCode(options []string, rest []arg, u *unit) {
	for i, w := range rest {
		value, attached, ok := optionOf(w.match, options)
		switch {
		case !ok:
		case attached && w.dynamic():
			a.dynamicCode(w, u)
		case attached:
			a.hint(value)
		case i+1 < len(rest) && rest[i+1].dynamic():
			a.dynamicCode(rest[i+1], u)
		case i+1 < len(rest):
			a.hint(rest[i+1].match)
		}
	}
}

// dynamicCode notes that a program runs a word whose value is not known.
func (a *analyzer) dynamicCode(w arg, u *unit) {
	a.seeds = append(a.seeds, w.guess)
	u.opaque, u.always, u.why = true, "", "it runs a command that is not known before it runs"
}

// wrapper follows a program that runs its arguments.
func (a *analyzer) wrapper(w wrapper, name string, rest []arg, u *unit) bool {
	if name == "command" && len(rest) > 0 && (rest[0].match == "-v" || rest[0].match == "-V") {
		return true
	}
	if w.anywhere {
		a.anywhere(rest, u)
	}
	rest = a.wrapped(w, rest, u)
	if w.anywhere {
		return true
	}
	if w.guess {
		if len(rest) > 0 && strings.HasPrefix(rest[0].match, unknown) {
			a.dynamicCode(rest[0], u)
		}
		a.guessCommand(rest)
		return true
	}
	if len(rest) == 0 {
		u.opaque = u.opaque || w.reads || a.fed
		return true
	}
	if w.joined { // the arguments are one script
		a.code(arg{match: " " + matchArgs(rest), guess: guessArgs(rest), show: showArgs(rest)}, u)
		return true
	}
	if name == "xargs" && strings.ContainsAny(rest[0].match, "{}%") {
		a.unknown(u.show, "xargs runs what it reads")
		return true
	}
	start := len(a.units)
	if a.wraps >= maxWraps {
		a.unknown(u.show, "it is wrapped too deeply to be followed")
		return true
	}
	if name == "xargs" && !inert(programName(rest[0].match)) {
		a.reads = append(a.reads, a.sought...)
	}
	fed := a.fed
	a.fed = fed || name == "xargs"
	a.wraps++
	a.command(rest, showArgs(rest))
	a.wraps--
	a.fed = fed
	if w.why != "" {
		a.taint(start, w.why)
	}
	if !w.plain || u.opaque {
		if w.why != "" {
			u.why = w.why
		}
		u.always = ""
		return true
	}
	for i := start; i < len(a.units); i++ {
		a.units[i].alts = append(a.units[i].alts, u.match)
	}
	return false
}

// maxGuesses limits how deep such programs are looked for in each other: each has many words.
const maxGuesses = 3

// anywhere looks for denied commands behind each word of a program whose options are not known.
func (a *analyzer) anywhere(rest []arg, u *unit) {
	for i, w := range rest {
		if strings.HasPrefix(w.match, unknown) {
			a.dynamicCode(w, u)
		}
		if w.flag() || w.dynamic() || a.guesses >= maxGuesses || i > 16 {
			continue
		}
		if strings.ContainsAny(w.match, " \t\n") {
			a.hint(w.match)
		}
		a.guessCommand(rest[i:])
	}
}

// wrapped returns the command that a wrapper runs: its arguments without options, variables and its own operands. It follows code among
// the options.
func (a *analyzer) wrapped(w wrapper, rest []arg, u *unit) []arg {
	script := func() (found bool) {
		value, attached, ok := optionOf(rest[0].match, w.code)
		switch {
		case !ok:
			return false
		case attached:
			a.code(arg{match: value, guess: value, show: rest[0].show}, u)
		case len(rest) > 1:
			a.code(rest[1], u)
			rest = rest[1:]
		}
		rest = rest[1:]
		return true
	}
	for len(rest) > 0 && (rest[0].flag() || rest[0].match == "-") {
		if script() {
			continue
		}
		f := rest[0].match
		rest = rest[1:]
		if f == "--" {
			break
		}
		if len(rest) > 0 && w.takesNext(f) {
			rest = rest[1:]
		}
	}
	if w.assigns {
		for len(rest) > 0 {
			name, _, ok := strings.Cut(rest[0].match, "=")
			if !ok || name == "" { // env and sudo take any name
				break
			}
			a.name(name)
			rest = rest[1:]
		}
	}
	rest = rest[min(w.skip, len(rest)):]
	if len(rest) > 0 && rest[0].match == "--" {
		rest = rest[1:]
	}
	if len(rest) > 0 && len(w.code) > 0 {
		script()
	}
	return rest
}

// takesNext reports whether the value of an option is the next word.
func (w wrapper) takesNext(f string) bool {
	if long, ok := strings.CutPrefix(f, "--"); ok {
		if w.bools != nil {
			return !strings.Contains(long, "=") && !slices.Contains(w.bools, long)
		}
		return slices.Contains(w.longs, long)
	}
	i := strings.IndexAny(f[1:], w.values)
	return i >= 0 && i == len(f)-2
}
