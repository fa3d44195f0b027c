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
}

// ToolServers is the part of [API] about MCP servers.
type ToolServers interface {
	// Servers lists the project's MCP servers in the order of the configuration, and with wait not before each is connected or has failed.
	Servers(ctx context.Context, wait bool) ([]ToolServer, error)
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
