package brief

import (
	"context"
	"fmt"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/permission"
	"centurion/workspace"
	"centurion/worktree"
)

const (
	fileListBytes = 2048            // limit of the list in a first message
	fileListMax   = 20_000          // limit of the files visited without git
	fileListTime  = 2 * time.Second // limit of the time, since a request waits for the list
)

// fileList is the list of the project's files in a session's first message, which saves the session from listing them. It has the files
// that git tracks in a commit ("" for the person's index), or those of the directory if nothing is tracked or repo is nil. It is empty
// on failure, or if the agent may not list files without asking.
func (d *Desk) fileList(ctx context.Context, agent agents.Agent, repo *worktree.Repo, commit string) string {
	rule := permission.Decide(d.Rules(agent.Name), "list", []string{"."})
	if !agent.Holds("ls") || rule.Action == permission.Deny || rule.Action == permission.Ask && rule.Level != "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, fileListTime)
	defer cancel()
	tree := ""
	if repo != nil && commit != "" {
		tree, _ = repo.TreeOf(ctx, commit)
	}
	if tree == "" {
		return d.listFiles(ctx, repo, commit)
	}
	d.listing.Lock() // workers that start together see the same files
	defer d.listing.Unlock()
	if d.tree != tree {
		if list := d.listFiles(ctx, repo, commit); list != "" {
			d.tree, d.listed = tree, list
		}
	}
	if d.tree != tree {
		return ""
	}
	return d.listed
}

// listFiles is fileList without the question who may see it.
func (d *Desk) listFiles(ctx context.Context, repo *worktree.Repo, commit string) string {
	var files []string
	var err error
	whole := true
	if repo != nil {
		files, err = repo.Files(ctx, commit)
	}
	if len(files) == 0 {
		files, whole, err = d.Workspace.Files(ctx, fileListMax)
	}
	if err != nil || len(files) == 0 {
		return ""
	}
	counted := centurion.Count(len(files), "file")
	if !whole {
		counted = fmt.Sprintf("the first %s, counted from the top", counted)
	}
	head := fmt.Sprintf("\n# Files of the project\n\nNames only (%s). A number stands for the files of a directory that are not named.\n<files>\n", counted)
	const tail = "\n</files>\n"
	return head + workspace.Listing(files, fileListBytes-len(head)-len(tail)) + tail
}

// Files is the file list for a task's session, at the mission's current state.
func (w *Writer) Files(ctx context.Context, d *Desk, agent agents.Agent) string {
	if !w.iso.Isolated() {
		return d.fileList(ctx, agent, nil, "")
	}
	tip, err := w.iso.Tip(ctx)
	if err != nil {
		return ""
	}
	return d.fileList(ctx, agent, w.iso.Ground.Repo, tip)
}

// Files is the file list for the first session of a mission, before anything is recorded.
func (d *Desk) Files(ctx context.Context, agent agents.Agent, isolation string) string {
	if isolation != centurion.IsolationWorktree {
		return d.fileList(ctx, agent, nil, "")
	}
	repo, err := d.Project.Repository(ctx)
	if err != nil {
		return ""
	}
	return d.fileList(ctx, agent, repo, "")
}
