package config

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"centurion/mcp"
	"centurion/trust"
)

// setServers reads the MCP servers. One that rests on an untrusted file of the project is as the person has configured it, or is not there.
func (l *loader) setServers(c *Config, key string, n *node) error {
	if n.kind != kindObject {
		return n.mismatch(key, kindObject.String())
	}
	for _, m := range n.members {
		s, err := l.server(key, m)
		if err != nil {
			return err
		}
		if at := m.value.foreign(); at != nil {
			at.src.withholds(at.line, trust.Server, "%s: %s (%.8s)", m.key, cmp.Or(strings.Join(s.Command, " "), s.URL, "disabled"), trust.Sum(string(m.value.rawJSON())))
			if m.value = c.mineOpen.get(key).get(m.key); m.value == nil {
				continue
			}
			if s, err = l.server(key, m); err != nil {
				return err
			}
		}
		c.Servers = append(c.Servers, s)
	}
	return nil
}

// server reads an entry of the `mcp` key.
func (l *loader) server(key string, m member) (s mcp.Server, err error) {
	s = mcp.Server{Name: m.key, Trusted: true}
	enabled, kind, milliseconds := true, "", 0
	key += "." + m.key
	fields := []field[mcp.Server]{
		choice("type", func(*mcp.Server) *string { return &kind }, "local", "remote"),
		list("command", false, func(s *mcp.Server) *[]string { return &s.Command }),
		text("cwd", func(s *mcp.Server) *string { return &s.Cwd }),
		strMap("environment", func(s *mcp.Server) *map[string]string { return &s.Environment }),
		text("url", func(s *mcp.Server) *string { return &s.URL }),
		strMap("headers", func(s *mcp.Server) *map[string]string { return &s.Headers }),
		boolean("enabled", func(*mcp.Server) *bool { return &enabled }),
		integer("timeout", 1, 24*60*60*1000, func(*mcp.Server) *int { return &milliseconds }),
	}
	if err = decode(m.value, key, &s, fields, l.skip(key+".")); err != nil {
		return s, err
	}
	s.Disabled, s.Timeout = !enabled, time.Duration(milliseconds)*time.Millisecond
	switch address, _ := url.Parse(s.URL); {
	case !enabled && kind == "": // it switches off a server of another file
	case kind == "":
		return s, m.value.src.fault(m.line, `write "local" with a command, or "remote" with a url`, "%q has no type", key)
	case kind == "local" && (len(s.Command) == 0 || s.Command[0] == ""):
		return s, m.value.src.fault(m.line, `for example ["npx", "-y", "some-server"]`, "%q has no command", key)
	case kind == "local":
		s.URL = ""
	case address == nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
		return s, m.value.src.fault(m.line, "", "%q needs a url with http:// or https:// and a host, not %q", key, s.URL)
	default:
		s.Command = nil
	}
	return s, nil
}

// serverNames are the first parts of the names of tools from outside.
func (c *Config) serverNames() (names []string) {
	for _, s := range c.Servers {
		names = append(names, strings.TrimSuffix(mcp.ToolName(s.Name, ""), "_"))
	}
	return names
}
