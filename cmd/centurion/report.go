package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/host"
	"centurion/orchestrator/review"
	"centurion/report"
	"centurion/server"
	"centurion/takeover"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// The forms of a report.
const (
	formMarkdown = "markdown"
	formHTML     = "html"
	formJSON     = "json"
)

const reportHelp = `Write a report of a mission (default: the latest): what was asked, what is proven and by which runs, who worked when, changed
files, cost, questions, problems, and how to merge or revert it.

The default is Markdown on stdout. -o writes FILE.md, FILE.html (a single self-contained page) or FILE.json and replaces an
existing file. The report of a running mission says so and shows its current state.`

func reportCommand(c *cli) *cobra.Command {
	var dir, file, form string
	cmd := &cobra.Command{Use: "report [MISSION]", Short: "Write a report of a mission", Long: reportHelp,
		Example: "  centurion report\n  centurion report -o report.html\n  centurion report msn_0199… -o report.md\n  centurion report --format json",
		Args:    exactly(0, 1, "at most one mission"),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := formOf(file, form)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			return c.open(ctx, &readFlags{dir: dir, format: "text"}, func(v *view) error {
				r, err := reportOf(ctx, v.View, first(args))
				if err != nil {
					return err
				}
				var b bytes.Buffer
				if err := writeReport(&b, r, form); err != nil {
					return err
				}
				if file == "" || file == "-" {
					_, err := c.out.Write(b.Bytes())
					return err
				}
				if err := replaceFile(file, b.Bytes()); err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.err, "wrote "+file)
				return err
			})
		}}
	cmd.Flags().StringVar(&dir, "dir", "", "the project directory (default: here)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to a .md, .html or .json file (default: stdout)")
	cmd.Flags().StringVar(&form, "format", "", "markdown, html or json (default: by file name)")
	completeValues(cmd, "format", formMarkdown, formHTML, formJSON)
	cmd.ValidArgsFunction = complete(c, 1, missions)
	return cmd
}

// formOf returns the requested form, or the one implied by the file's name.
func formOf(file, form string) (string, error) {
	all := []string{formMarkdown, formHTML, formJSON}
	switch {
	case slices.Contains(all, form):
		return form, nil
	case form != "":
		return "", badValue("format", form, all)
	case file == "" || file == "-":
		return formMarkdown, nil
	}
	endings := map[string]string{".md": formMarkdown, ".markdown": formMarkdown, ".html": formHTML, ".htm": formHTML, ".json": formJSON}
	if form, ok := endings[strings.ToLower(filepath.Ext(file))]; ok {
		return form, nil
	}
	return "", &centurion.Error{Op: "write report", Kind: centurion.KindUsage, Msg: fmt.Sprintf("unknown report format: the file name %q has no known extension", file),
		Hint: "call it FILE.md, FILE.html or FILE.json, or say --format markdown, html or json"}
}

func writeReport(w io.Writer, r *report.Report, form string) error {
	switch form {
	case formHTML:
		return r.HTML(w)
	case formJSON:
		return writeJSON(w, r)
	}
	return r.Markdown(w)
}

// reportOf creates the report of a mission.
func reportOf(ctx context.Context, v *host.View, typed string) (*report.Report, error) {
	d, err := recorded(ctx, v.API, typed)
	if err == nil {
		var missions []server.Mission
		var doc *todo.Doc
		if missions, err = v.API.Missions(ctx); ownsPlan(missions, d.Mission) {
			d.Items, d.Checks, doc = planOf(v.Workspace, d.Mission.Todo)
		}
		d.Reviews = reviewsOf(doc, d)
		d.Files, d.NoFiles = takeover.Changes(ctx, v.Place.State, d.Mission, d.Tasks)
		d.Branches = takeover.Unmerged(ctx, v.Place.State, d.Mission, d.Tasks)
	}
	return report.New(d), err
}

// recorded reads everything stored about a mission. It reads the mission last, so that it is never older than its parts.
func recorded(ctx context.Context, api server.API, typed string) (d report.Data, err error) {
	if typed != "" && !strings.HasPrefix(typed, string(centurion.PrefixMission)+"_") {
		return d, &centurion.Error{Op: "report", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not the id of a mission", typed),
			Hint: "ids of missions begin with msn_; see: centurion ps"}
	}
	m, err := api.Mission(ctx, typed)
	if err != nil {
		return d, err
	}
	for e, err := range api.Events(ctx, server.EventQuery{Mission: m.ID}) {
		if err != nil {
			return d, err
		}
		d.Events = append(d.Events, e)
	}
	if d.Receipts, err = api.Receipts(ctx, m.ID); err != nil {
		return d, err
	}
	if d.Sessions, err = api.Sessions(ctx, m.ID); err != nil {
		return d, err
	}
	tasks, err := api.Tasks(ctx, m.ID)
	if err != nil {
		return d, err
	}
	d.Tasks = lookup.Tasks(tasks)
	m, err = api.Mission(ctx, m.ID)
	d.Mission, d.Now = m.Noun(), centurion.Now()
	return d, err
}

// ownsPlan reports whether the file of a mission's plan is still its own: no later mission has taken the name.
func ownsPlan(missions []server.Mission, m centurion.Mission) bool {
	return m.Todo != "" && !slices.ContainsFunc(missions, func(other server.Mission) bool {
		return other.ID != m.ID && other.Todo == m.Todo && other.Started.After(m.Started.Time)
	})
}

// planOf reads a plan. If it is gone or unreadable, the events still say what it was.
func planOf(ws *workspace.Workspace, path string) ([]report.PlanItem, []string, *todo.Doc) {
	doc, _, err := ws.TodoAt(path).Load()
	if err != nil || doc == nil {
		return nil, nil, nil
	}
	return slices.DeleteFunc(planItems(doc), func(it report.PlanItem) bool { return it.ID == "" }), doc.Checks(), doc
}

// reviewsOf finds the passed reviews that cover the items worked on by tasks, or those of the plan.
func reviewsOf(doc *todo.Doc, d report.Data) map[string]report.Review {
	var items []string
	for _, it := range d.Items {
		if it.Status == "done" {
			items = append(items, it.ID)
		}
	}
	if doc == nil {
		for _, t := range d.Tasks {
			items = append(items, t.Item)
		}
	}
	out := map[string]report.Review{}
	for id, t := range review.Reviewed(doc, items, d.Tasks, d.Mission) {
		out[id] = report.Review{Task: t.ID, Item: t.Item, Name: cmp.Or(t.Item, t.Title, t.ID)}
	}
	return out
}

// replaceFile writes a file completely or not at all. It follows links, and writes directly to pipes and devices.
func replaceFile(name string, data []byte) error {
	refuse := func(msg, hint string, err error) error {
		return &centurion.Error{Op: "write " + name, Kind: centurion.KindUsage, Msg: msg, Hint: hint, Err: err}
	}
	mode := fs.FileMode(0o644)
	if at, err := filepath.EvalSymlinks(name); err == nil {
		name = at
	}
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return refuse("it is a directory", "name a file in it: -o "+filepath.Join(name, "report.html"), nil)
	case err == nil && !info.Mode().IsRegular():
		if err := os.WriteFile(name, data, mode); err != nil {
			return refuse("it cannot be written", "name another file with -o", err)
		}
		return nil
	case err == nil:
		mode = info.Mode().Perm()
	}
	hint := "name a file with -o in a directory that is there and can be written"
	f, err := os.CreateTemp(filepath.Dir(name), ".report-*")
	if err != nil {
		return refuse("no file can be made in "+filepath.Dir(name), hint, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(refuse("it cannot be written", hint, err), os.Remove(f.Name()))
	}
	return nil
}
