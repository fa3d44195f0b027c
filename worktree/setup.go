package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
)

// setupTime limits one setup command: an installation of many dependencies over a slow line.
const setupTime = 30 * time.Minute

// bare are lock files whose dependencies are installed in the project, and so are missing in a checkout. In other ecosystems, such as
// Go and Cargo, they are in a shared cache.
func bare() []string {
	return []string{"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "poetry.lock", "uv.lock", "pdm.lock",
		"Pipfile.lock", "requirements*.txt", "Gemfile.lock", "composer.lock", "mix.lock"}
}

// lockFiles are files whose change requires another setup.
func lockFiles() []string { return append(bare(), "Cargo.lock", "go.sum") }

// locks lists the lock files in a directory, sorted.
func locks(dir string) []string {
	var names []string
	for _, pattern := range lockFiles() {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		for _, f := range found {
			names = append(names, filepath.Base(f))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // it cannot be escaped
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// setupState identifies the commands and lock files of a completed setup.
func setupState(dir string, commands []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", commands)
	for _, name := range locks(dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", failed("set a checkout up", "cannot read "+name, err)
		}
		fmt.Fprintf(h, "%q %d\n", name, len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ready runs the setup commands unless they were run in the checkout and no lock file has changed since.
func (c *Checkout) ready(ctx context.Context) error {
	if c.layered() {
		return c.readyLayered(ctx)
	}
	if len(c.rec.Setup) == 0 {
		return nil
	}
	state, err := setupState(c.project(), c.rec.Setup)
	if err != nil || state == c.rec.Done {
		return err
	}
	if c.repo.opts.Runner == nil {
		return &centurion.Error{Op: "set a checkout up", Kind: centurion.KindConfig, Msg: "there is nothing to run worktree.setup with"}
	}
	if err := c.repo.setups.given(state); err != nil {
		return err
	}
	c.rec.Done = ""
	if err := c.save(); err != nil {
		return err
	}
	for _, command := range c.rec.Setup {
		if err := c.setup(ctx, command); err != nil {
			if centurion.KindOf(err) == centurion.KindConfig {
				c.repo.setups.failed(state, err)
			}
			return err
		}
	}
	return c.after(ctx, state)
}

// setupTries is how often the same commands with the same lock files may fail: one retry, as a registry may have been unreachable.
const setupTries = 2

// setups remembers failed setups. Otherwise each session and each check would retry them, and some take minutes to fail.
type setups struct {
	mu     sync.Mutex // protects the fields below
	errs   map[string]error
	counts map[string]int
}

// failed stores why a setup has failed, by its state.
func (s *setups) failed(state string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errs == nil {
		s.errs, s.counts = map[string]error{}, map[string]int{}
	}
	s.errs[state] = err
	s.counts[state]++
}

// given returns the error of a setup that was given up, or nil.
func (s *setups) given(state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[state] < setupTries {
		return nil
	}
	return &centurion.Error{Op: "set a checkout up", Kind: centurion.KindConfig, Err: s.errs[state],
		Msg:  fmt.Sprintf("worktree.setup failed %s and does not run again in this run", centurion.Count(s.counts[state], "time")),
		Hint: "correct worktree.setup, or what it needs, then continue with: centurion resume"}
}

// RetrySetups allows retries of failed setups: a mission starts or resumes, and the problem may be fixed.
func (cs *checkouts) RetrySetups() {
	cs.setups.mu.Lock()
	defer cs.setups.mu.Unlock()
	cs.setups.errs, cs.setups.counts = nil, nil
}

// setup runs one command.
func (c *Checkout) setup(ctx context.Context, command string) error {
	_, at, err := c.Files(ctx)
	if err != nil {
		return err
	}
	res, err := c.repo.opts.Runner.Run(ctx, centurion.Command{Script: command, Dir: at.Dir, Workspace: at.Workspace, Network: true, Timeout: setupTime, Keep: 16 << 10})
	if err != nil {
		return err
	}
	if res.ExitCode == 0 && !res.TimedOut {
		return nil
	}
	ended := fmt.Sprintf("ended with exit code %d", res.ExitCode)
	if res.TimedOut {
		ended = "took longer than " + setupTime.String()
	}
	return &centurion.Error{Op: "set a checkout up", Kind: centurion.KindConfig, Msg: fmt.Sprintf("`%s` %s: %s", command, ended, tail(res.Output, 600)),
		Hint: "correct worktree.setup in the configuration"}
}

// tail is the end of an output, from the start of a line.
func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		s = rest
	}
	return "… " + strings.ToValidUTF8(s, "")
}

// after records a completed setup. Its outputs that are neither tracked nor ignored are not part of any work, and changed tracked files
// are restored.
func (c *Checkout) after(ctx context.Context, state string) error {
	out, err := c.git(ctx, "ls-files", "-o", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
	if err != nil {
		return err
	}
	for _, p := range fields(out) {
		if p = strings.TrimSuffix(p, "/"); !slices.Contains(c.rec.Outputs, p) {
			c.rec.Outputs = append(c.rec.Outputs, p)
		}
	}
	changed, err := c.changed(ctx) // a reused one is not the caller's before it is ready
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		if err := c.bring(ctx, c.rec.Tree); err != nil {
			return err
		}
		if err := c.stand(ctx); err != nil {
			return err
		}
	}
	c.rec.Done = state
	return c.save()
}

// NeedsSetup lists, sorted, the project's lock files in a commit whose dependencies a checkout lacks without a setup. Ecosystems with a
// shared cache, such as Go's and Rust's, have none.
func (cs *checkouts) NeedsSetup(ctx context.Context, commit string) ([]string, error) {
	id, _, err := cs.db.Resolve(ctx, commit+":"+cs.prefix)
	if centurion.KindOf(err) == centurion.KindNotFound && cs.prefix != "" {
		return nil, nil // the project is not in this commit
	}
	if err != nil {
		return nil, err
	}
	dir, err := cs.db.ReadTree(ctx, id)
	if err != nil {
		return nil, err
	}
	var found []string
	for name := range dir {
		if slices.ContainsFunc(bare(), func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}
