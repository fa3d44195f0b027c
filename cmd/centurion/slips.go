package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// commandHabits are what commands of other tools are called here, below centurion or one of its commands.
func commandHabits(parent string) map[string]string {
	const run, question = `run "GOAL"`, `run --profile assistant "QUESTION"`
	if parent == "auth" {
		return map[string]string{"add": "auth login PROVIDER", "set": "auth login PROVIDER", "key": "auth login PROVIDER", "remove": "auth logout PROVIDER",
			"rm": "auth logout PROVIDER", "delete": "auth logout PROVIDER", "ls": "auth list", "status": "auth list"}
	}
	return map[string]string{
		"login": "auth login PROVIDER", "logout": "auth logout PROVIDER", "providers": "auth list", "whoami": "auth list",
		"sessions": "ps", "session": "ps", "history": "ps", "ls": "ps", "list": "ps", "status": "ps", "missions": "ps", "jobs": "ps",
		"exec": run, "start": run, "new": run, "do": run, "prompt": run, "goal": run, "p": run, "e": run,
		"chat": question, "ask": question, "tui": question,
		"continue": "resume", "restart": "resume", "plan": `run "/plan GOAL"`,
		"kill": "cancel", "log": "logs", "tail": "logs", "export": "report", "todo": "tasks", "apply": "merge", "revert": "undo", "rollback": "undo",
		"message": "send", "msg": "send", "allow": "approve", "reject": "deny", "cleanup": "gc", "prune": "gc", "clean": "gc", "model": "models", "agent": "agents",
		"init": run, "setup": run, "config": "doctor", "settings": "doctor", "configure": "doctor",
	}
}

// habitHint is the next step for who types a command as another tool has it, or "".
func habitHint(parent, word string) string {
	to := commandHabits(parent)[word]
	switch {
	case to == "":
		return ""
	case word == "init" || word == "setup":
		return fmt.Sprintf("did you mean `centurion %s`, which needs no preparation?", to)
	case to == "doctor":
		return "did you mean `centurion doctor`, which names the files that configure it? (docs/configuration.md has the keys)"
	}
	return fmt.Sprintf("did you mean `centurion %s`?", to)
}

// flagHabits are what flags of other tools are called here, with a value where they have one.
func flagHabits() map[string][2]string {
	return map[string][2]string{
		"yolo": {"ask", " allow"}, "dangerously-skip-permissions": {"ask", " allow"}, "dangerously-bypass-approvals-and-sandbox": {"ask", " allow"},
		"full-auto": {"ask", " allow"}, "allow-all": {"ask", " allow"}, "allow-all-tools": {"ask", " allow"}, "auto-approve": {"ask", " allow"}, "auto": {"ask", " allow"},
		"json": {"format", " json"}, "output-format": {"format", " json"}, "output": {"format", " json"}, "o": {"format", " json"}, "stream-json": {"format", " json"},
		"m": {"model", ""}, "a": {"agent", ""}, "cwd": {"dir", ""}, "cd": {"dir", ""}, "C": {"dir", ""}, "workdir": {"dir", ""}, "directory": {"dir", ""},
		"max-turns": {"max-rounds", ""}, "max-iterations": {"max-rounds", ""}, "max-budget-usd": {"max-cost", ""}, "budget": {"max-cost", ""},
		"worktree": {"isolation", " worktree"}, "w": {"isolation", " worktree"}, "background": {"detach", ""}, "bg": {"detach", ""}, "d": {"detach", ""},
		"image": {"file", ""}, "i": {"file", ""}, "y": {"yes", ""},
	}
}

// habitOfFlag is the next step for who gives a flag as another tool has it, or "".
func habitOfFlag(cmd *cobra.Command, flag string) string {
	switch flag {
	case "p", "print", "prompt", "e", "exec":
		return "did you mean `centurion run \"GOAL\"`?"
	case "c", "continue", "r", "resume":
		return "did you mean `centurion resume`?"
	}
	to := flagHabits()[flag]
	switch {
	case to[0] == "":
		return ""
	case cmd.Flags().Lookup(to[0]) != nil:
		return fmt.Sprintf("did you mean --%s%s?", to[0], to[1])
	case !cmd.HasParent():
		return fmt.Sprintf("did you mean `centurion run --%s%s \"GOAL\"`?", to[0], to[1])
	}
	return ""
}
