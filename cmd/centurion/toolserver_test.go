package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer is an MCP server for scripts. Its tools: find answers with what it is asked for and what it knows of its place, write writes
// a file, die ends it. It has a prompt and a resource.
func toolServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	type in struct {
		Q string `json:"q" jsonschema:"what to find"`
	}
	answer := func(format string, args ...any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Finds what you ask for."}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		read, err := os.ReadFile("a.txt")
		return answer("found %s beside %q %v with %s", a.Q, read, err, os.Getenv("FIND_TOKEN"))
	})
	mcp.AddTool(s, &mcp.Tool{Name: "write", Description: "Writes a file."}, func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
		_, herr := os.ReadFile(filepath.Join(os.Getenv("HOME"), ".ssh", "id_rsa"))
		err := os.WriteFile(a.Q, []byte("x"), 0o600)
		return answer("written: %t, secrets: %t", err == nil, herr == nil)
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die", Description: "Ends the server."}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return answer("")
	})
	s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews a thing", Arguments: []*mcp.PromptArgument{{Name: "what", Required: true}, {Name: "how"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			said := fmt.Sprintf("Review %s with %s. $1 @a.txt", r.Params.Arguments["what"], r.Params.Arguments["how"])
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: said}}}}, nil
		})
	s.AddResource(&mcp.Resource{URI: "note://1", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://1", Text: "It is noted."}}}, nil
	})
	fmt.Fprintln(os.Stderr, "the server begins")
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "it does not know", os.Args[1])
		os.Exit(7)
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
