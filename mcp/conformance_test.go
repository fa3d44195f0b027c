package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// conform is the client that the conformance suite tests (compat/mcp.sh): it connects, and calls each tool with numbers for its
// properties.
func conform(url string) error {
	cs := Open([]Server{{Name: "suite", URL: url}}, Options{Root: "/", Version: "0"})
	defer cs.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := cs.Settle(ctx); err != nil {
		return err
	}
	l := cs.Tools()
	if s := l.Servers[0]; s.State != Ready {
		return s.Err
	}
	for _, t := range l.Tools {
		args := map[string]int{}
		for name := range t.Schema.Properties {
			args[name] = len(args) + 2
		}
		b, err := json.Marshal(args)
		if err != nil {
			return err
		}
		r, err := cs.Call(ctx, t, "", b)
		if err != nil {
			return err
		}
		fmt.Println(t.Name, r.Text)
	}
	return nil
}
