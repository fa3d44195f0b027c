package trial

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// outsiderTool is the first argument with which the program of the trials is a program from outside: outsider KIND NAME ADDRESS FILE. It is a
// native plugin or an MCP server with two tools. run runs a shell command; note tells a word to a service at the address. It tells
// that service each call of its hooks, too, before it answers. FILE has the description of its tools.
const outsiderTool = "__outsider"

// The kinds of programs from outside.
const (
	outsidePlugin = "plugin"
	outsideServer = "mcp"
)

// outsiderCall is a message of the host, in either protocol.
type outsiderCall struct {
	ID         json.RawMessage
	Do, Method string
	Params     struct {
		Tool, Name      string
		Args, Arguments map[string]string
		Hook            string
		Input           struct{ CallID string }
		Context         struct{ CallID string }
		ProtocolVersion string
	}
}

type outsider struct {
	kind, name, about string
	told              io.Writer
}

func runOutsider(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: KIND NAME ADDRESS FILE, not %q", args)
	}
	o := outsider{kind: args[0], name: args[1], about: "Does what it is told.", told: io.Discard}
	if args[2] != "" {
		conn, err := net.Dial("tcp", args[2])
		if err != nil {
			return err
		}
		defer conn.Close()
		o.told = conn
	}
	if args[3] != "" {
		o.about = readAll(args[3])
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil // the host has closed it
		}
		var c outsiderCall
		if json.Unmarshal(line, &c) != nil || c.ID == nil {
			continue
		}
		answer := map[string]any{"id": c.ID, "result": o.answer(&c)}
		if o.kind == outsideServer {
			answer["jsonrpc"] = "2.0"
		}
		b, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
			return err
		}
	}
}

// tell tells the service what is about to be done, so that a call that is done twice is told twice.
func (o *outsider) tell(what, call string) {
	_, _ = fmt.Fprintln(o.told, o.name, what, call, time.Now().UnixNano())
}

func (o *outsider) answer(c *outsiderCall) map[string]any {
	switch c.Do + c.Method {
	case "init":
		o.tell("begins", "-")
		return map[string]any{"version": o.about, "notes": []string{o.about}, "hooks": []string{"tool.execute.after", "chat.params"}, "tools": o.tools("schema", o.name+"_")}
	case "initialize":
		return map[string]any{"protocolVersion": c.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": o.about, "version": o.about}}
	case "tools/list":
		return map[string]any{"tools": o.tools("inputSchema", "")}
	case "hook":
		o.tell(c.Params.Hook, cmp.Or(c.Params.Input.CallID, "-"))
	case "tool":
		return map[string]any{"text": o.use(strings.TrimPrefix(c.Params.Tool, o.name+"_"), c.Params.Args, c.Params.Context.CallID), "title": o.about}
	case "tools/call":
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": o.use(c.Params.Name, c.Params.Arguments, "-")}}}
	}
	return map[string]any{}
}

func (o *outsider) tools(schema, prefix string) (all []any) {
	for name, argument := range map[string]string{"run": "command", "note": "word"} {
		all = append(all, map[string]any{"name": prefix + name, "description": o.about, schema: map[string]any{"type": "object", "required": []string{argument},
			"properties": map[string]any{argument: map[string]any{"type": "string", "description": o.about}}}})
	}
	return all
}

func (o *outsider) use(tool string, args map[string]string, call string) string {
	if tool == "note" {
		o.tell("note", call)
		return "noted " + args["word"]
	}
	out, err := exec.Command("sh", "-c", args["command"]).CombinedOutput()
	return fmt.Sprintf("%s\n%v", out, err)
}

// outside puts the program of the trials into a project and returns the command that runs it as a program from outside.
func (p *project) outside(kind, name, address, file string) []string {
	self, err := os.ReadFile("/proc/self/exe")
	p.t.Must(err)
	path := filepath.Join(p.Dir, "attacks/tool")
	if _, err := os.Stat(path); err != nil {
		p.t.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		p.t.Must(os.WriteFile(path, self, 0o700))
	}
	return []string{path, outsiderTool, kind, name, address, file}
}

// outsiders returns the processes of a program from outside that run.
func outsiders(kind, name string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if strings.Contains(readAll(filepath.Join(dir, "cmdline")), strings.Join([]string{"", outsiderTool, kind, name, ""}, "\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(dir)) // digits
			pids = append(pids, pid)
		}
	}
	return pids
}
