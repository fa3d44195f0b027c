package tools

import (
	"cmp"
	"context"
	"encoding/json"

	"centurion"
)

// maxWhole limits a file that an agent from outside reads at once, in bytes.
const maxWhole = 10 << 20

// Foreign is a call that an agent which is another program wants to make itself.
type Foreign struct {
	Tool   string   // read, edit, bash or webfetch, as our own tool of that effect; another name stands for itself
	Title  string   // what a person reads
	Paths  []string // that it reads or changes
	Script string   // of bash
	URL    string   // of webfetch
}

// PermitForeign asks by the rules whether such a call may proceed. The error is a refusal, as for a call of our own.
func PermitForeign(ctx context.Context, c *Call, f Foreign) error {
	meta := map[string]any{"title": f.Title}
	switch f.Tool {
	case "bash":
		_, err := mayRun(ctx, c, f.Tool, scriptInput{Command: cmp.Or(f.Script, f.Title), Description: f.Title})
		return err
	case "read", "edit":
		for _, given := range f.Paths {
			p, err := locate(c, f.Tool, given)
			if err == nil {
				err = p.allowOutside(ctx, c)
			}
			if err == nil && f.Tool == "edit" {
				err = p.writable(f.Tool)
			}
			if err == nil {
				meta["filepath"] = p.Name
				err = p.allow(ctx, c, f.Tool, meta)
			}
			if err != nil {
				return err
			}
		}
		if len(f.Paths) > 0 {
			return nil
		}
	}
	pattern := cmp.Or(f.URL, f.Title, f.Tool)
	return c.Gate.Ask(ctx, c, Access{Permission: f.Tool, Patterns: []string{pattern}, Always: []string{pattern}, Metadata: meta})
}

// ReadForeign reads a file for such an agent, which must lie in the workspace.
func ReadForeign(ctx context.Context, c *Call, given string) (string, error) {
	p, err := inside(c, "read", given)
	if err == nil {
		err = p.allow(ctx, c, "read", map[string]any{"filepath": p.Name})
	}
	if err != nil {
		return "", err
	}
	b, info, err := p.In.ReadFile(p.Rel, maxWhole)
	if err != nil && info != nil {
		return "", p.fail("read", info.Mode(), err)
	}
	return c.Keys.Text(string(b)), err
}

// WriteForeign writes a whole file for such an agent, as the tool write does; it must lie in the workspace. It returns the change.
func WriteForeign(ctx context.Context, c *Call, given, content string) error {
	p, err := inside(c, "write", given)
	if err != nil {
		return err
	}
	if old, err := p.In.Read(p.Rel, maxEdit); err == nil {
		if string(old.Data) == content {
			return nil
		}
		c.Seen.Saw(p.key(), old.Version) // it reads by itself, too
	}
	in, err := json.Marshal(writeInput{FilePath: given, Content: content})
	if err == nil {
		_, err = writeTool().Run(ctx, c, in)
	}
	return err
}

func inside(c *Call, op, given string) (place, error) {
	p, err := locate(c, op, given)
	if err == nil && p.Outside {
		err = &centurion.Error{Op: op, Kind: centurion.KindPermission, Msg: p.Name + " is outside of your working directory", Hint: "use a path in " + c.Workspace.Dir()}
	}
	return p, err
}

// Diff returns the change of a file as text, shortened.
func Diff(name, before, after string) string { return diff(name, before, after) }
