package approval

import (
	"centurion/permission"
	"centurion/workspace"
)

// hostRules keep shell commands, as the file tools are kept, from writing what belongs to the host. Only what they deny
// counts, and no other rule lifts it. What a program does once it runs is not seen: they are for a model that takes the shell because a tool has
// refused it.
func hostRules() permission.Level {
	rules := []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "edit", Pattern: workspace.Directory + "/*", Action: permission.Deny}}
	for _, writer := range []string{"tee", "cp", "mv", "rm", "ln", "install", "truncate", "touch", "dd", "rsync", "sed -i", "perl -pi", "perl -i"} {
		to := writer + " *" + workspace.Directory
		rules = append(rules, permission.Rule{Permission: "bash", Pattern: to, Action: permission.Deny},
			permission.Rule{Permission: "bash", Pattern: to + "/*", Action: permission.Deny})
	}
	return permission.Level{Name: "the host: .opencode/ is changed with update_todo and update_context", Rules: rules}
}

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
