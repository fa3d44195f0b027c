package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion/text"
)

const (
	// MaxName is the length of the longest tool name that providers accept, in bytes.
	MaxName = 64
	// maxItems limits each list of a server. A model cannot choose among more tools anyway.
	maxItems = 1000
	// maxDescription is the length of a description, in bytes; the rest is cut.
	maxDescription = 8 << 10
)

// Tool is a tool of a server.
type Tool struct {
	Name        string // for models: the server's and its own, of letters, digits, _ and -
	Server      string
	Remote      string // as its server calls it
	Title       string // for people, one line; may be empty
	Description string
	Schema      *jsonschema.Schema // an object without references
	ReadOnly    bool               // its server says so, and is trusted
}

// Prompt is a prompt of a server, which people use as a command.
type Prompt struct {
	Name        string // server:prompt
	Server      string
	Remote      string // as its server calls it
	Description string
	Arguments   []Argument
}

// Argument is an argument of a prompt.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// Resource is a resource of a server.
type Resource struct {
	Server      string
	URI         string
	Name        string
	Description string
	Mime        string
	Size        int64 // bytes, as the server says; 0 if it does not
}

// list reads the lists that the server says it has. Only the tools have to be readable.
func (c *client) list(ctx context.Context, s *sdk.ClientSession) (out Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	has := s.InitializeResult().Capabilities
	if has == nil {
		return out, nil
	}
	if has.Tools != nil {
		tools, err := collect(c, "tools", s.Tools(ctx, nil))
		if err != nil {
			return out, err
		}
		out.Tools = c.usable(tools)
	}
	if has.Prompts != nil {
		prompts, err := collect(c, "prompts", s.Prompts(ctx, nil))
		if err != nil {
			c.note("its prompts cannot be listed: %s", reason(err))
		}
		for _, p := range prompts {
			out.Prompts = append(out.Prompts, c.prompt(p))
		}
	}
	if has.Resources != nil {
		resources, err := collect(c, "resources", s.Resources(ctx, nil))
		if err != nil {
			c.note("its resources cannot be listed: %s", reason(err))
		}
		for _, r := range resources {
			out.Resources = append(out.Resources, Resource{Server: c.server.Name, URI: r.URI, Name: text.Clean(r.Name),
				Description: cut(r.Description), Mime: text.Clean(r.MIMEType), Size: r.Size})
		}
	}
	return out, nil
}

// collect reads a list to its end, or to the limit.
func collect[T any](c *client, what string, all iter.Seq2[*T, error]) (out []*T, err error) {
	for v, err := range all {
		switch {
		case err != nil:
			return nil, err
		case v == nil: // [null]
		case len(out) == maxItems:
			c.note("it has more than %d %s; the others are left out", maxItems, what)
			return out, nil
		default:
			out = append(out, v)
		}
	}
	return out, nil
}

// usable returns the tools that a model can have, each name once.
func (c *client) usable(all []*sdk.Tool) (out []Tool) {
	names := map[string]string{}
	for _, t := range all {
		tool := Tool{Name: ToolName(c.server.Name, t.Name), Server: c.server.Name, Remote: t.Name, Title: text.Clean(t.Title), Description: cut(t.Description)}
		if a := t.Annotations; a != nil {
			tool.Title, tool.ReadOnly = cmp.Or(tool.Title, text.Clean(a.Title)), a.ReadOnlyHint && c.server.Trusted
		}
		var err error
		if tool.Schema, err = inputSchema(t.InputSchema); err != nil {
			c.note("its tool %s is left out: %v", text.Clean(t.Name), err)
		} else if other, taken := names[tool.Name]; taken {
			c.note("its tools %q and %q would both be called %s; the first counts", other, t.Name, tool.Name)
		} else {
			names[tool.Name] = t.Name
			out = append(out, tool)
		}
	}
	return out
}

func (c *client) prompt(p *sdk.Prompt) Prompt {
	out := Prompt{Name: clean(c.server.Name) + ":" + clean(p.Name), Server: c.server.Name, Remote: p.Name, Description: cut(p.Description)}
	for _, a := range p.Arguments {
		if a != nil {
			out.Arguments = append(out.Arguments, Argument{Name: a.Name, Description: text.Clean(a.Description), Required: a.Required})
		}
	}
	return out
}

// ToolName returns the name of a server's tool for models. Where it would be too long, a digest replaces its end.
func ToolName(server, tool string) string {
	name := clean(server) + "_" + clean(tool)
	if len(name) > MaxName {
		sum := sha256.Sum256(fmt.Append(nil, server, "\x00", tool))
		name = name[:MaxName-9] + "_" + hex.EncodeToString(sum[:4])
	}
	return name
}

// clean replaces what a tool's name cannot have, as OpenCode does.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}

// cut returns a description without what a terminal or a model would obey unseen.
func cut(s string) string {
	if s = text.CleanText(s); len(s) > maxDescription {
		s = text.Whole(s[:maxDescription]) + "\n[cut here]"
	}
	return s
}
