package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"centurion/permission"
)

// schemaKeys are the keys of OpenCode 1.18's published configuration schema, each with the type of its value.
func schemaKeys(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/opencode-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if path, kind, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(path, "#") {
			keys[path] = kind
		}
	}
	if len(keys) < 150 {
		t.Fatalf("only %d keys", len(keys))
	}
	return keys
}

// document is a configuration that sets one key. Names that the schema leaves open are x, and what a key needs beside it is there.
func document(path, value string) string {
	switch {
	case strings.HasPrefix(path, "command.*.") && path != "command.*.template":
		value = `"template":"t",` + fmt.Sprintf("%q:%s", path[len("command.*."):], value)
		return `{"command":{"x":{` + value + `}}}`
	case strings.HasPrefix(path, "provider.*.models.*.cost."):
		key := path[len("provider.*.models.*.cost."):]
		if below, ok := strings.CutPrefix(key, "context_over_200k."); ok {
			key, value = "context_over_200k", fmt.Sprintf("{%q:%s}", below, value)
		}
		return `{"provider":{"x":{"models":{"x":{"cost":{"input":1,"output":1,` + fmt.Sprintf("%q:%s", key, value) + `}}}}}}`
	}
	parts := strings.Split(strings.ReplaceAll(path, "*", "x"), ".")
	doc := value
	for i := len(parts) - 1; i >= 0; i-- {
		doc = fmt.Sprintf("{%q:%s}", parts[i], doc)
	}
	return doc
}

// right and wrong are values for a key of a type: one that OpenCode takes, and one that it does not.
func right(kind string) string {
	switch kind {
	case "string", "any":
		return `"https://x.example/v1"`
	case "boolean":
		return "true"
	case "integer", "number":
		return "3"
	case "strings":
		return `["x"]`
	case "objects":
		return `[{"action":"provider.use","effect":"deny","resource":"x"}]`
	case "object":
		return `{"y":1}`
	}
	return fmt.Sprintf("%q", strings.TrimPrefix(kind, "="))
}

// Contract "Configuration": every key of OpenCode's schema is honoured, refused, or named as ignored, as the one table says. What is
// honoured is read: a value of a wrong type is an error. What is refused stops a run. What is ignored is told.
func TestOpenCodeKeys(t *testing.T) {
	table, schema := openCodeKeys(), schemaKeys(t)
	for path, kind := range schema {
		k, ok := lookup(table, path)
		if !ok {
			t.Errorf("%s is not in the table", path)
			continue
		}
		if k.note == "" {
			t.Errorf("%s has no note", k.path)
		}
		value := right(kind)
		if k.use == honoured {
			value = "[[7]]"
		}
		w := newWorld(t)
		if strings.HasPrefix(path, "mcp.") && k.use != honoured { // a server without a type is a fault of its own
			w.global("opencode/config.json", `{"mcp":{"x":{"enabled":false}}}`)
		}
		w.global("opencode/opencode.json", document(path, value))
		c, err := Load(w.opts)
		if err == nil && k.use == honoured {
			err = badRules(c)
		}
		key := strings.ReplaceAll(path, "*", "x")
		named := c != nil && slices.ContainsFunc(c.Ignored, func(i Ignored) bool {
			return i.Loud == (k.use == loud) && (strings.HasPrefix(key+".", i.Key+".") || strings.HasPrefix(i.Key, key+"."))
		})
		switch k.use {
		case honoured:
			if err == nil && path != "$schema" {
				t.Errorf("%s is said to be honoured, and nothing reads it", path)
			}
		case refused:
			if _, err := c.ResolveModel(t.Context(), "ollama/x"); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s is said to be refused: %v", path, err)
			}
		default:
			if err != nil || !named {
				t.Errorf("%s is said to be ignored, and nobody is told (%v): %+v", path, err, c)
			}
		}
	}
	for _, k := range table {
		known := slices.ContainsFunc(slices.Collect(maps.Keys(schema)), func(path string) bool {
			return path == k.path || strings.HasPrefix(path, k.path+".") || permission.Match(path, k.path)
		})
		if !known {
			t.Errorf("%s is in the table and not in the schema", k.path)
		}
	}
}

// badRules is the error that the rules of a configuration are refused with when they are used.
func badRules(c *Config) error {
	for _, l := range c.Permission {
		if _, err := permission.ParseRules(l.Raw); err != nil {
			return err
		}
	}
	_, err := permission.ParseRules(c.Agents["x"].Permission)
	return err
}
