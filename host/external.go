package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"centurion"
	"centurion/guard/durable"
	"centurion/tools"
)

// external are the tools of MCP servers and plugins. Of two with one name that of a server counts.
type external struct {
	servers *Servers
	plugins *Plugins
}

var _ tools.External = external{}

// Tools implements [tools.External].
func (x external) Tools() []centurion.ExternalTool {
	all := x.servers.Tools()
	for _, t := range x.plugins.Tools() {
		if !slices.ContainsFunc(all, func(o centurion.ExternalTool) bool { return o.Name == t.Name }) {
			all = append(all, t)
		}
	}
	return all
}

// Run implements [tools.External].
func (x external) Run(ctx context.Context, c *tools.Call, name string, input json.RawMessage) (tools.Result, error) {
	if _, known := x.servers.tool(name); known {
		return x.servers.Run(ctx, c, name, input)
	}
	if slices.ContainsFunc(x.plugins.Tools(), func(t centurion.ExternalTool) bool { return t.Name == name }) {
		return x.plugins.Run(ctx, c, name, input)
	}
	return tools.Result{}, noTool(name)
}

func noTool(name string) error {
	return &centurion.Error{Op: name, Kind: centurion.KindNotFound, Msg: "no MCP server and no plugin of this project has that tool now",
		Hint: "continue without it; a person sees them with: centurion plugin list"}
}

// memory is a file with the tools that a source had last, and a sum of what the source is.
type memory struct{ file, sum string }

type remembered[T any] struct {
	Sum   string `json:"sum"`
	Tools []T    `json:"tools"`
}

// recall reads what a source had. A file that cannot be read, or is of another source, is as none.
func recall[T any](m memory) []T {
	var had remembered[T]
	b, err := os.ReadFile(m.file)
	if err != nil || json.Unmarshal(b, &had) != nil || had.Sum != m.sum {
		return nil
	}
	return had.Tools
}

// remember keeps what a source has instead of what it had, and returns it.
func remember[T any](m memory, had, now []T) []T {
	now = append([]T{}, now...)
	if had != nil && reflect.DeepEqual(had, now) {
		return now // it is compared by its pointers from now on
	}
	if b, err := json.Marshal(remembered[T]{m.sum, now}); err == nil && os.MkdirAll(filepath.Dir(m.file), 0o700) == nil {
		_ = durable.Replace(m.file, b, 0o600) // without it the next start does not know the tools at once
	}
	return now
}
