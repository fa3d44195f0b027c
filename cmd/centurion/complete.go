package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/server"
	"centurion/store"
	"centurion/text"
	"centurion/tui"
)

// completeValues completes the values of a flag with fixed choices. The flag must have been bound.
func completeValues(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	completeFlag(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeFlag completes the values of a flag, which must have been bound.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(fmt.Sprintf("flag %s of %s: %v", flag, cmd.Name(), err))
	}
}

// finder finds completions of a typed word in a project.
type finder func(cmd *cobra.Command, api server.API, args []string, typed string) ([]cobra.Completion, error)

// complete completes a command's first arguments, at most that many, using finders. If nothing can be read, there are no completions;
// the command itself says why.
func complete(c *cli, most int, finders ...finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) < most {
			_ = c.open(cmd.Context(), &readFlags{dir: cmd.Flag("dir").Value.String(), format: "text"}, func(v *view) error {
				for _, find := range finders {
					more, _ := find(cmd, v.API, args, typed)
					found = append(found, more...)
				}
				return nil
			})
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// missions finds missions, newest first; for resume only those that can be resumed.
func missions(cmd *cobra.Command, api server.API, _ []string, typed string) (found []cobra.Completion, err error) {
	all, err := api.Missions(cmd.Context())
	for _, m := range all {
		if cmd.Name() != "resume" || !m.Status.Ended() {
			found = add(found, typed, m.ID, string(m.Status)+": "+centurion.Clip(m.Goal, 60))
		}
	}
	return found, err
}

// add adds a name with its description if it starts with the typed text.
func add(found []cobra.Completion, typed, name, what string) []cobra.Completion {
	if name == "" || !strings.HasPrefix(name, typed) {
		return found
	}
	return append(found, cobra.CompletionWithDesc(name, text.Clean(what)))
}

// agentsOf finds the addresses and items of agents that read messages, in the mission that --mission names.
func agentsOf(cmd *cobra.Command, api server.API, _ []string, typed string) ([]cobra.Completion, error) {
	mission := ""
	if flag := cmd.Flag("mission"); flag != nil {
		mission = flag.Value.String()
	}
	sessions, err := api.Sessions(cmd.Context(), mission)
	if err != nil {
		return nil, err
	}
	tasks, err := api.Tasks(cmd.Context(), mission)
	if err != nil {
		return nil, err
	}
	return addresses(sessions, tasks, typed), nil
}

// addresses lists whom a person can write to, matching the typed text.
func addresses(sessions []centurion.Session, tasks []server.Task, typed string) []cobra.Completion {
	of := map[string]server.Task{}
	var found []cobra.Completion
	add := func(name, what string) { found = add(found, typed, name, what) }
	for _, t := range tasks {
		of[t.ID] = t
		if strings.HasPrefix(typed, string(centurion.PrefixTask)) && !t.Status.Ended() {
			add(t.ID, t.Agent+": "+t.Title)
		}
	}
	for _, s := range sessions {
		t, task := of[s.Metadata.Task]
		if task && t.Status.Ended() {
			continue
		}
		add(s.Metadata.Address, s.Agent+": "+s.Title)
		if strings.HasPrefix(typed, string(centurion.PrefixSession)) {
			add(s.ID, s.Agent+": "+s.Title)
		}
	}
	for _, t := range tasks {
		if !t.Status.Ended() {
			add(t.Item, t.Agent+": "+t.Title)
		}
	}
	return found
}

// items finds the items and task ids of the mission in the first argument, else of the latest.
func items(cmd *cobra.Command, api server.API, args []string, typed string) (found []cobra.Completion, err error) {
	all, err := api.Tasks(cmd.Context(), first(args))
	for _, t := range all {
		for _, name := range []string{t.Item, t.ID} {
			if !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, name+"\t") }) {
				found = add(found, typed, name, string(t.Status)+": "+t.Title)
			}
		}
	}
	return found, err
}

// asks finds the ids of open asks of the given types, and after one the choices of a question.
func asks(types ...string) finder {
	return func(cmd *cobra.Command, api server.API, args []string, typed string) (found []cobra.Completion, err error) {
		if len(args) == 1 {
			if a, ok := lookup.Ask(cmd.Context(), api, args[0]); ok && a.Type == store.AskQuestion {
				for _, o := range a.Options {
					if strings.HasPrefix(strings.ToLower(o), strings.ToLower(typed)) {
						found = append(found, cobra.Completion(text.Clean(o)))
					}
				}
			}
			return found, nil
		}
		all, err := api.Asks(cmd.Context())
		for _, a := range all {
			if slices.Contains(types, a.Type) {
				found = add(found, typed, a.ID, cmp.Or(a.Title, centurion.Clip(a.Text, 60)))
			}
		}
		return found, err
	}
}

// conversations finds the sessions of the latest mission.
func conversations(cmd *cobra.Command, api server.API, _ []string, typed string) (found []cobra.Completion, err error) {
	sessions, err := api.Sessions(cmd.Context(), "")
	for _, s := range sessions {
		for _, name := range []string{s.Metadata.Address, s.ID} {
			found = add(found, typed, name, s.Agent+": "+s.Title)
		}
	}
	return found, err
}

// points finds the marks and the messages of the session in the first argument.
func points(cmd *cobra.Command, api server.API, args []string, typed string) (found []cobra.Completion, err error) {
	session, err := lookup.Conversation(cmd.Context(), api, first(args))
	if err != nil {
		return nil, err
	}
	t, err := api.Tree(cmd.Context(), session)
	for _, name := range slices.Sorted(maps.Keys(t.Session.Metadata.Marks)) {
		found = add(found, typed, name, "mark of "+t.Session.Metadata.Marks[name])
	}
	for _, m := range lookup.Messages(t.Messages) {
		found = add(found, typed, m.ID, tui.MessageWords(m, 60))
	}
	return found, err
}
