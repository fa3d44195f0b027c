package approval

import (
	"centurion/permission"
	"centurion/workspace"
)

// hostRules keep shell commands from writing the host's files, as the file tools are kept. Only their denials count, and no other rule
// overrides them. They do not see what a running program does: they stop models that use the shell after a tool refused.
func hostRules() permission.Level {
	rules := []permission.Rule{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "edit", Pattern: workspace.Directory + "/*", Action: permission.Deny}}
	for _, writer := range []string{"tee", "cp", "mv", "rm", "ln", "install", "truncate", "touch", "dd", "rsync", "sed -i", "perl -pi", "perl -i"} {
		to := writer + " *" + workspace.Directory
		rules = append(rules, permission.Rule{Permission: "bash", Pattern: to, Action: permission.Deny},
			permission.Rule{Permission: "bash", Pattern: to + "/*", Action: permission.Deny})
	}
	return permission.Level{Name: "the host: .opencode/ is changed with update_todo and update_context", Rules: rules}
}

// stashRules deny changes to git's stash. All checkouts of a repository share its list, including the person's directory: a session
// could mix its changes with the person's, or pop those of others. Reading the list is allowed.
func stashRules() permission.Level {
	return permission.Level{Name: "how Centurion keeps checkouts apart", Rules: []permission.Rule{
		{Permission: "bash", Pattern: "git stash *", Action: permission.Deny},
		{Permission: "bash", Pattern: "git stash list *", Action: permission.Allow},
		{Permission: "bash", Pattern: "git stash show *", Action: permission.Allow},
	}}
}
