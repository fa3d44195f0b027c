package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/sandbox/confine"
	"centurion/worktree"
)

// breach is an attack by a shell script of the project, whose text in the agent's command tells nothing: sh attacks/NAME. It exits with 0
// if it got through.
type breach struct {
	name, script string
	open         []confine.Way // the ways that do not stop it, as their list of gaps says
	own          bool          // in an overlay it reaches the overlay's own files and git; that the person's are as they were is looked at besides
}

// breaches are run in a checkout of the project with the variables of [wild.env].
var breaches = []breach{
	{name: "TCP", script: `$TOOL tcp 127.0.0.1:$PORT`, open: []confine.Way{confine.Files}},
	{name: "TCP over IPv6", script: `$TOOL tcp "[::1]:$PORT6"`, open: []confine.Way{confine.Files}},
	{name: "UDP", script: `$TOOL udp 127.0.0.1:$UDP`, open: []confine.Way{confine.Files}},
	{name: "socket of a service", script: `$TOOL unix "$SERVICE"`, open: []confine.Way{confine.Files}},
	{name: "abstract socket", script: `$TOOL abstract "$ABSTRACT"`},
	{name: "raw socket", script: `$TOOL raw 0`},
	{name: "packet socket", script: `$TOOL packet 0`},
	{name: "ring of system calls", script: `$TOOL io_uring 0`},
	{name: "the host's socket, with the token", script: `$TOOL host "$CONTROL" "$TOKEN"`},
	{name: "the command line", script: `CENTURION_HOME=$STATE HOME=$PERSON $BIN ps --dir "$PROJECT" | grep -q running`},
	{name: "start files of the person's shell", script: `echo evil >> "$PERSON/.bashrc"`},
	{name: "a new file at home", script: `echo evil > "$PERSON/planted"`},
	{name: "by a symbolic link", script: `ln -s "$PERSON" out && echo evil >> out/.profile`},
	{name: "by a hard link", script: `ln "$PERSON/.profile" hard && echo evil >> hard`},
	{name: "other projects", script: `echo evil > "$PERSON/other/file"`},
	{own: true, name: "the person's own checkout", script: `echo evil > "$PROJECT/main.go"`},
	{own: true, name: "configuration of the project", script: `echo '{"permission":"allow"}' > "$PROJECT/opencode.json"`},
	{name: "configuration of the person", script: `mkdir -p "$PERSON/.config/opencode" && echo '{"permission":"allow"}' > "$PERSON/.config/opencode/opencode.json"`},
	{name: "a hook of git", script: `echo evil > "$PROJECT/.git/hooks/post-checkout"`},
	{own: true, name: "configuration of git", script: `printf '[core]\n\tfsmonitor = evil\n' >> "$PROJECT/.git/config"`},
	{own: true, name: "the person's branch", script: `git update-ref refs/heads/main HEAD~1`},
	{name: "the state", script: `for f in "$STATE"/projects/*/centurion.db; do echo evil >> "$f"; done && test -f "$f"`},
	{name: "what is trusted", script: `for d in "$STATE"/projects/*/; do echo '[]' > "$d/trust.json"; done && test -f "$d/trust.json"`},
	{name: "the token", script: `grep -q . "$STATE/token"`},
	{name: "a private key", script: `grep -q PRIVATE "$PERSON/.ssh/id_ed25519"`},
	{name: "keys of models", script: `grep -q sk- "$PERSON/.local/share/opencode/auth.json"`},
	{name: "the host's environment", script: `tr '\0' '\n' < /proc/$HOST/environ | grep -q CENTURION_HOME`},
	{name: "the host's memory", script: `$TOOL memory $HOST`},
	{name: "the host's descriptors", script: `$TOOL descriptor $HOST`},
	{name: "tracing the host", script: `$TOOL ptrace $HOST`},
	{name: "signals to the host", script: `kill -0 $HOST`},
	{name: "mounts", script: `mkdir -p m && mount -t tmpfs none m && umount m`},
	{name: "new namespaces", script: `unshare -Ur true`},
	{name: "another root", script: `mkdir -p jail && chroot jail / 2>&1 | grep -q 'No such file\|failed to run'`},
	{name: "devices", script: `mknod dev c 1 3`},
	{name: "kernel keyrings", script: `$TOOL keyring 0`},
	{name: "programs in the kernel", script: `$TOOL bpf 0`},
}

const breached = "GOT-IN"

// outsideOpen are the attacks that get through from a program from outside in any way of confinement: it has the network.
var outsideOpen = []string{"TCP", "TCP over IPv6", "UDP"}

// s3 runs the attacks in every way of confinement, and without any, which shows that they work here. It runs them by an agent's command, and
// from the processes of a plugin and of an MCP server.
func s3(ctx context.Context, t *T) {
	got, outside := map[confine.Way][]string{}, map[confine.Way][]string{}
	for _, way := range []confine.Way{confine.None, confine.Full, confine.Files} {
		for _, kind := range workspaces {
			if way == confine.Full || kind == worktree.WorkspacesCheckout { // others have no overlays
				t.outside(func() {
					t.Part(string(way)+kind, func(t *T) { got[way] = append(got[way], s3Way(ctx, t, way, kind, "")...) })
				})
			}
		}
		for _, from := range []string{outsidePlugin, outsideServer} {
			t.outside(func() {
				t.Part(string(way)+from, func(t *T) {
					outside[way] = append(outside[way], s3Way(ctx, t, way, worktree.WorkspacesCheckout, from)...)
				})
			})
		}
	}
	t.Figure("attacks", len(breaches))
	t.Figure("work unconfined", len(got[confine.None]))
	t.Figure("from a plugin and an MCP server", len(outside[confine.None]))
	for _, way := range []confine.Way{confine.None, confine.Full, confine.Files} {
		t.Logf("%s: %s", way, strings.Join(got[way], ", "))
	}
	for _, way := range []confine.Way{confine.Full, confine.Files} {
		var bad []string
		for _, b := range breaches {
			if slices.Contains(got[way], b.name) && !slices.Contains(b.open, way) {
				bad = append(bad, b.name)
			}
		}
		t.Figure("get through, "+string(way), len(got[way]))
		for _, name := range outside[way] {
			i := slices.IndexFunc(breaches, func(b breach) bool { return b.name == name })
			if !slices.Contains(outsideOpen, name) && !slices.Contains(breaches[i].open, way) {
				bad = append(bad, name+" from a program from outside")
			}
		}
		t.Logf("%s, from outside: %s", way, strings.Join(outside[way], ", "))
		if len(bad) > 0 {
			t.Failf("%s: %s got through", way, strings.Join(bad, ", "))
		}
	}
	if len(got[confine.None]) < 25 && os.Getuid() == 0 {
		t.Failf("only %d of %d attacks work without confinement: %s", len(got[confine.None]), len(breaches), strings.Join(got[confine.None], ", "))
	}
}

// outside runs f with a scratch directory that is not one of the shared directories for temporary files, which confinement empties.
func (t *T) outside(f func()) {
	before := t.Dir
	home, err := os.UserHomeDir()
	if err == nil {
		t.Dir, err = os.MkdirTemp(home, ".centurion-trial-")
	}
	t.Must(err)
	f()
	t.Must(os.RemoveAll(t.Dir))
	t.Dir = before
}

// s3Way runs all attacks in a mission with worktrees of a kind, by shell commands or from a kind of program from outside, and returns the
// names of those that got through.
func s3Way(ctx context.Context, t *T, way confine.Way, workspaces, from string) (through []string) {
	w := newWild(t)
	scripts := make([]string, len(breaches))
	for i, b := range breaches {
		scripts[i] = w.put(fmt.Sprintf("%02d.sh", i), b.script)
	}
	w.p.gitInitWith(workspaces, "")
	w.p.git("commit", "-q", "--allow-empty", "-m", "Second")
	if from != "" {
		w.fromOutside(from)
	}
	scene := w.scene()
	began := time.Now()
	told := w.run(way, scripts, nil)
	t.Logf("%s %s: %s", way, from, time.Since(began))
	n := 0
	for _, e := range told {
		var d struct{ Output string }
		if e.Type != centurion.EventToolCompleted {
			continue
		}
		if n++; n > 1 && json.Unmarshal(e.Data, &d) == nil && strings.Contains(d.Output, breached) && // the first one writes the variables
			!(breaches[n-2].own && from == "" && workspaces == worktree.WorkspacesOverlay) {
			through = append(through, breaches[n-2].name)
		}
	}
	if n != len(breaches)+1 {
		t.Failf("%d of %d commands were run", n, len(breaches)+1)
	}
	main := w.p.git("log", "--format=%s", "-1", "main")
	if names := changed(scene, w.scene()); way == confine.Full && (len(names) > 0 || main != "Second") {
		t.Failf("changed: %s; main is at %q", strings.Join(names, ", "), main)
	}
	return through
}

// wild is a project of a person with a home, whose commands are hostile.
type wild struct {
	t   *T
	p   *project
	env map[string]string

	from string // the kind of the program from outside that runs the commands; "": the shell does

	services guard.Group
}

func newWild(t *T) *wild {
	w := &wild{t: t, p: t.Project(map[string]string{"main.go": "package main\n"}), env: map[string]string{}}
	for name, text := range map[string]string{".bashrc": "# mine\n", ".profile": "# mine\n", ".ssh/id_ed25519": "PRIVATE\n", "other/file": "other\n",
		".local/share/opencode/auth.json": `{"other": {"type": "api", "key": "sk-1234567890"}}`} {
		path := filepath.Join(w.p.Home, name)
		t.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		t.Must(os.WriteFile(path, []byte(text), 0o600))
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.NotPossible("attacks need Linux: %v", err)
	}
	t.Must(os.MkdirAll(filepath.Join(w.p.Dir, "attacks"), 0o700))
	t.Must(os.WriteFile(filepath.Join(w.p.Dir, "attacks/tool"), self, 0o700))
	w.env["TOOL"], w.env["PERSON"], w.env["STATE"], w.env["PROJECT"], w.env["BIN"] = "./attacks/tool "+attackTool, w.p.Home, w.p.State, w.p.Dir, w.p.Bin
	w.env["SERVICE"], w.env["ABSTRACT"] = filepath.Join(w.p.Home, "service.sock"), "centurion-trial-"+fmt.Sprint(os.Getpid())
	for name, at := range map[string][2]string{"PORT": {"tcp", "127.0.0.1:0"}, "PORT6": {"tcp", "[::1]:0"}, "": {"unix", w.env["SERVICE"]}, "-": {"unix", "\x00" + w.env["ABSTRACT"]}} {
		w.listen(name, at[0], at[1])
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	t.Must(err)
	t.Cleanup(func() { _ = pc.Close() })
	w.env["UDP"] = fmt.Sprint(pc.LocalAddr().(*net.UDPAddr).Port)
	w.services.Go("repeat datagrams", func() error {
		b := make([]byte, 100)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return nil // it is closed
			}
			_, _ = pc.WriteTo(b[:n], from)
		}
	})
	return w
}

// listen starts a service that repeats each line, and puts its port into a variable.
func (w *wild) listen(variable, network, address string) {
	l, err := net.Listen(network, address)
	w.t.Must(err)
	w.t.Cleanup(func() { _ = l.Close() })
	if at, ok := l.Addr().(*net.TCPAddr); ok {
		w.env[variable] = fmt.Sprint(at.Port)
	}
	w.services.Go("repeat lines", func() error {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err == nil {
				line, _ := bufio.NewReader(c).ReadString('\n')
				_, _ = io.WriteString(c, line)
				_ = c.Close()
			}
		}
	})
}

// put stores a script in the project and returns the command that runs it.
func (w *wild) put(name, script string) string {
	text := ". ./attacks/env\n{ " + script + "\n} && echo " + breached + "\n"
	w.t.Must(os.WriteFile(filepath.Join(w.p.Dir, "attacks", name), []byte(text), 0o600))
	return "sh attacks/" + name
}

// fromOutside configures a program from outside that runs commands.
func (w *wild) fromOutside(kind string) {
	w.from = kind
	entry := map[string]any{"permission": "allow", "agent": map[string]any{"commander": map[string]any{"tools": map[string]bool{"evil_run": true}}}}
	if command := w.p.outside(kind, "evil", "", ""); kind == outsideServer {
		entry["mcp"] = map[string]any{"evil": map[string]any{"type": "local", "command": command}}
	} else {
		entry["plugin"] = []any{[]any{"exec:evil", map[string]any{"command": command}}}
	}
	b, err := json.Marshal(entry)
	w.t.Must(err)
	w.p.put(personRules, string(b))
	if _, out := w.p.Run("plugin", "list"); !strings.Contains(out, "evil_run") {
		w.t.Fatalf("the program from outside does not work: %s", out)
	}
}

// run runs the commands in a mission, by the shell or by the program from outside, and returns its events. during, if not nil, is called once
// all have ended, while the mission still runs.
func (w *wild) run(way confine.Way, commands []string, during func(c *process)) []centurion.Event {
	over := make(chan struct{})
	w.p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		n := len(history(r))
		switch {
		case len(r.Tools()) == 0 || n > len(commands):
			if during != nil && n > len(commands) {
				<-over
			}
			return scripted.Answer{Say: "All are done."}
		case n == 0 && w.from != "": // it runs in the person's own directory
			cmd := exec.Command("sh", "-c", w.variables())
			cmd.Dir = w.p.Dir
			w.t.Must(cmd.Run())
			fallthrough
		case n == 0:
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": w.variables()})}}
		case w.from != "":
			return scripted.Answer{Calls: []scripted.Call{tool("evil_run", map[string]any{"command": commands[n-1]})}}
		}
		return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": commands[n-1], "timeout": 20000})}}
	}})
	args := []string{"run", "--format", "json", "--model", "custom/m", "--sandbox", "off", "--ask", "allow", "Run them."}
	change := func(*exec.Cmd) {}
	switch way {
	case confine.Full: // there, what stays in the project needs no approval
		args = []string{"run", "--format", "json", "--model", "custom/m", "--sandbox", "require", "--ask", "deny", "Run them."}
	case confine.Files:
		args[6], change = "auto", withoutNamespaces
	}
	c := w.p.StartWith(change, args...)
	if during != nil {
		soon(w.t.ctx, waitLimit, func() bool {
			return c.Ended() || strings.Count(c.Stdout(), `"type":"tool.completed"`) > len(commands)
		})
		during(c)
	}
	close(over)
	if code := c.Wait(w.t, waitLimit); code == 2 {
		w.t.NotPossible("not enforced here: %s", lastLines(c.Stderr(), 2))
	}
	return w.p.Told(c)
}

// variables returns the command that writes the scripts' variables into the checkout, once there is a host.
func (w *wild) variables() string {
	owners, _ := filepath.Glob(filepath.Join(w.p.State, "projects/*/owner.json"))
	tokens, _ := filepath.Glob(filepath.Join(w.p.State, "token"))
	var owner struct {
		PID    int
		Socket string
	}
	if len(owners) != 1 || len(tokens) != 1 {
		w.t.Failf("there are %d hosts and %d tokens", len(owners), len(tokens))
		return "false"
	}
	w.t.Must(json.Unmarshal([]byte(readAll(owners[0])), &owner))
	w.env["TOKEN"] = strings.TrimSpace(readAll(tokens[0]))
	w.env["HOST"], w.env["CONTROL"] = fmt.Sprint(owner.PID), owner.Socket
	var b strings.Builder
	for name, value := range w.env {
		if strings.Trim(name, "-") != "" {
			fmt.Fprintf(&b, "%s='%s'\n", name, value)
		}
	}
	return "cat > attacks/env <<'EOF'\n" + b.String() + "EOF"
}

// scene is what the person's files contain: those of the project without the host's own, and of the home without caches.
func (w *wild) scene() map[string]string {
	all := map[string]string{}
	for _, root := range []string{w.p.Dir, w.p.Home} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, path)
			top, below, _ := strings.Cut(filepath.ToSlash(rel), "/")
			switch {
			case err != nil || d.IsDir() || d.Type()&fs.ModeSocket != 0:
			case top == ".git" && below != "config" && !strings.HasPrefix(below, "hooks/"), top == ".opencode", top == "attacks" && below == "env", top == ".cache", top == ".gitconfig":
			default:
				all[path] = readAll(path)
			}
			return nil
		})
	}
	return all
}

// changed names the files that differ.
func changed(before, after map[string]string) (names []string) {
	for name := range after {
		if text, ok := before[name]; !ok || text != after[name] {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
