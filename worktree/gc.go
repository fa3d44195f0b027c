package worktree

import (
	"context"
	"iter"
	"slices"
	"strings"

	"centurion"
)

// GC removes what no living mission needs: pooled checkouts beyond Keep, and refs and branches that live does not name and whose
// commits are on the person's branches. Checkouts left by ended missions return to the pool, with their work committed to their
// branches. removed names directories and refs. GC only considers the program's refs, below refs/heads/centurion/ and refs/centurion/.
func (cs *checkouts) GC(ctx context.Context, live func(ref string) bool) (removed []string, err error) {
	if err := cs.collectLeft(ctx, live); err != nil {
		return nil, err
	}
	dirs, err := cs.collectPool(ctx, cs.opts.Keep)
	if err != nil {
		return dirs, err
	}
	layers, err := cs.layers.collect(cs.usedLayers())
	dirs = append(dirs, layers...)
	if err != nil {
		return dirs, err
	}
	refs, err := cs.collectRefs(ctx, live)
	return append(dirs, refs...), err
}

// unused yields the checkouts that this host does not use, held until the next one; known is false for one without a record.
func (cs *checkouts) unused() iter.Seq2[*Checkout, bool] {
	return func(yield func(c *Checkout, known bool) bool) {
		for _, name := range cs.names() {
			s := cs.pool.look(name)
			if s == nil {
				continue
			}
			rec, known := cs.readRecord(name)
			more := yield(&Checkout{repo: cs, seat: s, name: name, dir: cs.dirOf(name), rec: rec}, known)
			cs.pool.leave(s)
			if !more {
				return
			}
		}
	}
}

// collectLeft releases checkouts without an owner.
func (cs *checkouts) collectLeft(ctx context.Context, live func(ref string) bool) (err error) {
	for c, known := range cs.unused() {
		switch {
		case !known:
			err = c.rescue(ctx)
		case c.rec.Free || c.rec.Branch != "" && live("refs/heads/"+c.rec.Branch):
		case !c.rec.Made:
			err = c.forget(ctx)
		default:
			c.unlock()
			_, err = c.Release(ctx, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Pooled lists the directories of the unused checkouts that are kept for the next mission.
func (cs *checkouts) Pooled() (dirs []string) {
	for c := range cs.unused() {
		if c.rec.Free {
			dirs = append(dirs, c.dir)
		}
	}
	return dirs
}

// DropPool removes the unused checkouts with their git-ignored files. Checkouts in use stay. removed names their directories.
func (cs *checkouts) DropPool(ctx context.Context) (removed []string, err error) {
	return cs.collectPool(ctx, 0)
}

// collectPool removes pooled checkouts beyond keep, those with the highest numbers.
func (cs *checkouts) collectPool(ctx context.Context, keep int) (removed []string, err error) {
	for c := range cs.unused() {
		if !c.rec.Free {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		if err := c.forget(ctx); err != nil {
			return removed, err
		}
		removed = append(removed, c.dir)
	}
	return removed, nil
}

// collectRefs deletes refs of the program whose commits are on the person's branches.
func (cs *checkouts) collectRefs(ctx context.Context, live func(ref string) bool) (removed []string, err error) {
	out, err := cs.git(ctx, call{Args: []string{"for-each-ref", "--format=%(objectname) %(refname)%00", "refs/heads/", "refs/remotes/", "refs/tags/", "refs/centurion/"}})
	if err != nil {
		return nil, err
	}
	type ref struct{ id, name string }
	var ours []ref
	theirs := []string{"HEAD"}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		id, name, ok := strings.Cut(strings.TrimSpace(entry), " ")
		switch {
		case !ok:
		case strings.HasPrefix(name, "refs/centurion/") || strings.HasPrefix(name, "refs/heads/centurion/"):
			ours = append(ours, ref{id, name})
		case strings.HasPrefix(name, "refs/heads/"):
			theirs = append(theirs, name)
		}
	}
	if h, err := cs.Head(ctx); err != nil || h.Commit == "" {
		theirs = slices.Delete(theirs, 0, 1)
	}
	cs.admin.Lock()
	defer cs.admin.Unlock()
	held := cs.heldBranches()
	for _, f := range ours {
		if live(f.name) || held[f.name] {
			continue
		}
		out, err := cs.git(ctx, call{Args: append([]string{"rev-list", "-n", "1", f.id, "--not"}, theirs...)})
		if err != nil {
			return removed, err
		}
		if len(out) > 0 {
			continue
		}
		if _, err := cs.git(ctx, call{Args: []string{"update-ref", "-d", f.name, f.id}}); err != nil {
			if centurion.KindOf(err) == centurion.KindConflict {
				continue // it has moved meanwhile
			}
			return removed, err
		}
		removed = append(removed, f.name)
	}
	return removed, nil
}

// usedLayers reports which layers lie below a checkout.
func (cs *checkouts) usedLayers() func(id string) bool {
	used := map[string]bool{}
	for _, name := range cs.names() {
		rec, _ := cs.readRecord(name)
		for _, id := range rec.Layers {
			used[id] = true
		}
	}
	return func(id string) bool { return used[id] }
}

// heldBranches are the branches of checkouts outside the pool.
func (cs *checkouts) heldBranches() map[string]bool {
	held := map[string]bool{}
	for _, name := range cs.names() {
		if rec, ok := cs.readRecord(name); ok && !rec.Free {
			held["refs/heads/"+rec.Branch] = true
		}
	}
	return held
}

// Branches lists the branches below a prefix (without refs/heads/); merged are those contained in into.
func (cs *checkouts) Branches(ctx context.Context, prefix, into string) (merged, other []string, err error) {
	list := func(option string) ([]string, error) {
		out, err := cs.git(ctx, call{Args: []string{"for-each-ref", "--format=%(refname:lstrip=2)", option, "refs/heads/" + prefix}})
		return strings.Fields(string(out)), err
	}
	if merged, err = list("--merged=" + into); err != nil {
		return nil, nil, err
	}
	other, err = list("--no-merged=" + into)
	return merged, other, err
}

// DropMerged deletes branches contained in into, and returns them. Branches of checkouts, and branches with new commits, stay.
func (cs *checkouts) DropMerged(ctx context.Context, into string, branches ...string) (dropped []string, err error) {
	held := cs.heldBranches()
	for _, branch := range branches {
		if held["refs/heads/"+branch] {
			continue
		}
		kept, err := cs.drop(ctx, branch, "", into)
		if err != nil {
			return dropped, err
		}
		if kept == "" {
			dropped = append(dropped, branch)
		}
	}
	return dropped, nil
}
