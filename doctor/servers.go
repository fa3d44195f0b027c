package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/trust"
)

// ignored reports which parts of OpenCode's configuration have no effect, and why.
func ignored(c *config.Config) (out []Finding) {
	for _, i := range c.Ignored {
		f := Finding{Name: "configuration", Status: OK, Detail: safe(fmt.Sprintf("%s: %s is ignored: %s", i.File, i.Key, strings.ReplaceAll(i.Why, "`", `"`)))}
		if i.Loud {
			f.Status = Warn
		}
		out = append(out, f)
	}
	for _, n := range c.Dropped {
		out = append(out, Finding{Name: "configuration", Status: Warn, Detail: n})
	}
	for _, s := range c.ProjectFiles() {
		if !s.Trusted {
			out = append(out, Finding{Name: "configuration", Status: Warn, Detail: safe(s.Notice())})
		}
	}
	return out
}

// askServers asks the providers of the mission's model and of the person's own files for their model lists.
func askServers(ctx context.Context, c *config.Config, used string) []Finding {
	ids := c.Personal()
	if used != "" && !slices.Contains(ids, used) {
		ids = append([]string{used}, ids...)
	}
	out := make([]Finding, len(ids))
	var g guard.Group
	for i, id := range ids {
		g.Go("ask "+id, func() error {
			out[i] = askServer(ctx, c, id, id == used)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return []Finding{failed("server", err)}
	}
	return out
}

func askServer(ctx context.Context, c *config.Config, id string, used bool) Finding {
	const name = "server"
	if c.Shipped(id) {
		return Finding{name, Warn, id + " was not asked: its address came with the project", "look at it, and trust it if you want to: " + trust.Command}
	}
	url, models, err := c.Check(ctx, id)
	if err == nil {
		return Finding{Name: name, Status: OK, Detail: safe(fmt.Sprintf("%s at %s answered: %s", id, url, centurion.Count(models, "model")))}
	}
	f := failed(name, err)
	if e, ok := errors.AsType[*centurion.Error](err); ok {
		f.Detail = e.Msg
		if e.Err != nil {
			f.Detail += ": " + e.Err.Error()
		}
	}
	f.Detail = safe(id + ": " + f.Detail)
	if !used || strings.Contains(f.Detail, "/models answered ") { // a server without a list may still accept requests
		f.Status = Warn
	}
	return f
}
