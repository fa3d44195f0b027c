package orchestrator

import (
	"centurion"
	"centurion/permission"
	"centurion/tools"
)

// stashRules deny what changes or takes from the list of stashes. Its list is one for all checkouts of a repository, the person's
// directory included: what a session puts there lies among the person's own, and what it pops may be theirs or another session's.
// Looking at it is as good as any other reading.
func stashRules() permission.Level {
	return permission.Level{Name: "how Centurion keeps checkouts apart", Rules: []permission.Rule{
		{Permission: "bash", Pattern: "git stash *", Action: permission.Deny},
		{Permission: "bash", Pattern: "git stash list *", Action: permission.Allow},
		{Permission: "bash", Pattern: "git stash show *", Action: permission.Allow},
	}}
}

// stashes refuses a script that stashes, where sessions have checkouts of their own.
func (g gate) stashes(call *tools.Call, a tools.Access) error {
	m := g.c.m
	if a.Script == "" || !m.iso.Isolated() {
		return nil
	}
	d := permission.DecideShell([]permission.Level{stashRules()}, a.Script, call.Workspace.Dir(), m.h.cfg.Home, false)
	if d.Action != permission.Deny {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindPermission, Msg: "not allowed: " + centurion.Clip(a.Script, 200) +
		" uses git's stash, whose list is one for all checkouts and the person's own directory",
		Hint: "put changes aside in a patch file: git diff > aside.patch && git checkout -- . (new files stay), later git apply aside.patch && rm aside.patch"}
}
