package server

import (
	"context"
	"net/url"
	"strconv"

	"centurion"
)

// ToolServer is an MCP server of a project.
type ToolServer struct {
	Name  string `json:"name"`
	State string `json:"state"` // connecting, ready, failed or disabled
	Error string `json:"error,omitempty"`
	Login bool   `json:"login,omitempty"` // it failed because it wants a token
	// Tools are what it has, or had when it was last connected.
	Tools []centurion.ExternalTool `json:"tools"`
	// Prompts and Resources are what it has now.
	Prompts   []ServerPrompt   `json:"prompts,omitempty"`
	Resources []ServerResource `json:"resources,omitempty"`
}

// ServerPrompt is a prompt of an MCP server, which a person uses as a command.
type ServerPrompt struct {
	Name        string   `json:"name"` // server:prompt
	Description string   `json:"description,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`
}

// ServerResource is a resource of an MCP server, which a person adds to a message.
type ServerResource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Mime        string `json:"mime,omitempty"`
}

// ServerQuery asks for a prompt, with the words of its arguments, of which the last one takes the rest; or, without one, for a resource.
type ServerQuery struct {
	Prompt string   `json:"prompt,omitempty"`
	Words  []string `json:"words,omitempty"`
	Server string   `json:"server,omitempty"`
	URI    string   `json:"uri,omitempty"`
}

// ServerContent is what a server has answered.
type ServerContent struct {
	Text  string           `json:"text"` // never empty
	Files []centurion.File `json:"files,omitempty"`
}

// ToolServers is the part of [API] about MCP servers.
type ToolServers interface {
	// Servers lists the project's MCP servers in the order of the configuration, and with wait not before each is connected or has failed.
	Servers(ctx context.Context, wait bool) ([]ToolServer, error)
	// Content asks a server for a prompt or a resource.
	Content(ctx context.Context, q ServerQuery) (ServerContent, error)
}

// Servers lists the MCP servers.
func (l *Local) Servers(ctx context.Context, wait bool) ([]ToolServer, error) {
	if l.External == nil {
		return []ToolServer{}, nil
	}
	return l.External.Servers(ctx, wait)
}

// Servers lists the MCP servers.
func (c *Client) Servers(ctx context.Context, wait bool) ([]ToolServer, error) {
	return get[[]ToolServer](ctx, c, "/servers", url.Values{"wait": {strconv.FormatBool(wait)}})
}

// Content asks a server for a prompt or a resource.
func (l *Local) Content(ctx context.Context, q ServerQuery) (ServerContent, error) {
	if l.External == nil {
		return ServerContent{}, &centurion.Error{Op: "mcp", Kind: centurion.KindNotFound, Msg: "no MCP servers are configured"}
	}
	return l.External.Content(ctx, q)
}

// Content asks a server for a prompt or a resource.
func (c *Client) Content(ctx context.Context, q ServerQuery) (ServerContent, error) {
	return send[ServerContent](ctx, c, "/servers/content", q)
}
