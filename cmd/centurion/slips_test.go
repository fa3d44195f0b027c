package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// Issue "A person's first hour" 17: who knows another tool is told what the command is called here. Nothing is done.
func TestHabits(t *testing.T) {
	for line, want := range map[string]string{
		"login":                              "did you mean `centurion auth login PROVIDER`?",
		"login openai":                       "did you mean `centurion auth login PROVIDER`?",
		"logout":                             "did you mean `centurion auth logout PROVIDER`?",
		"sessions":                           "did you mean `centurion ps`?",
		"session list":                       "did you mean `centurion ps`?",
		"history":                            "did you mean `centurion ps`?",
		"ls":                                 "did you mean `centurion ps`?",
		"status":                             "did you mean `centurion ps`?",
		"exec fix":                           "did you mean `centurion run \"GOAL\"`?",
		"start fix":                          "did you mean `centurion run \"GOAL\"`?",
		"chat":                               "did you mean `centurion run --profile assistant \"QUESTION\"`?",
		"ask why":                            "did you mean `centurion run --profile assistant \"QUESTION\"`?",
		"init":                               "did you mean `centurion run \"GOAL\"`, which needs no preparation?",
		"config":                             "did you mean `centurion doctor`, which names the files that configure it? (docs/configuration.md has the keys)",
		"continue":                           "did you mean `centurion resume`?",
		"plan":                               "did you mean `centurion run \"/plan GOAL\"`?",
		"kill":                               "did you mean `centurion cancel`?",
		"log":                                "did you mean `centurion logs`?",
		"export":                             "did you mean `centurion report`?",
		"-p fix":                             "did you mean `centurion run \"GOAL\"`?",
		"--print fix":                        "did you mean `centurion run \"GOAL\"`?",
		"-c":                                 "did you mean `centurion resume`?",
		"--continue":                         "did you mean `centurion resume`?",
		"-r":                                 "did you mean `centurion resume`?",
		"--resume":                           "did you mean `centurion resume`?",
		"--resume=msn_1":                     "did you mean `centurion resume`?",
		"run --continue":                     "did you mean `centurion resume`?",
		"run -c fix":                         "did you mean `centurion resume`?",
		"run -p fix":                         "did you mean `centurion run \"GOAL\"`?",
		"run --yolo fix":                     "did you mean --ask allow?",
		"--yolo fix":                         "did you mean `centurion run --ask allow \"GOAL\"`?",
		"run --dangerously-skip-permissions": "did you mean --ask allow?",
		"run --full-auto fix":                "did you mean --ask allow?",
		"resume --yolo":                      "did you mean --ask allow?",
		"run --json fix":                     "did you mean --format json?",
		"run --output-format json fix":       "did you mean --format json?",
		"ps --json":                          "did you mean --format json?",
		"--json":                             "did you mean `centurion run --format json \"GOAL\"`?",
		"run -m openai/gpt-5 fix":            "did you mean --model?",
		"run --cwd /x fix":                   "did you mean --dir?",
		"run --max-turns 3 fix":              "did you mean --max-rounds?",
		"run --max-budget-usd 3 fix":         "did you mean --max-cost?",
		"run --worktree fix":                 "did you mean --isolation worktree?",
		"auth add openai":                    "did you mean `centurion auth login PROVIDER`?",
		"show --yolo":                        "see: centurion show --help", // which runs nothing
	} {
		t.Run(line, func(t *testing.T) {
			var out, err bytes.Buffer
			c := &cli{in: strings.NewReader(""), out: &out, err: &err, env: []string{"HOME=" + t.TempDir()}}
			if code := c.run(context.Background(), strings.Fields(line)); code != exitUsage {
				t.Errorf("exit code %d", code)
			}
			if !strings.HasSuffix(strings.TrimSpace(err.String()), "next: "+want) {
				t.Errorf("%s\nwant %s", err.String(), want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

// What is suggested exists, and nothing that exists is taken for a slip.
func TestHabitsLeadSomewhere(t *testing.T) {
	root := (&cli{out: io.Discard, err: io.Discard}).root()
	for _, parent := range []string{"centurion", "auth"} {
		for word, to := range commandHabits(parent) {
			cmd, _, err := root.Find(strings.Fields(to))
			if err != nil || cmd == root || cmd.Hidden {
				t.Errorf("%s leads to %q: %v", word, to, err)
			}
			at := []string{word}
			if parent != "centurion" {
				at = []string{parent, word}
			}
			if cmd, _, err := root.Find(at); err == nil && cmd.Name() == word {
				t.Errorf("%s is a command itself", word)
			}
		}
	}
	run, _, _ := root.Find([]string{"run"})
	for flag, to := range flagHabits() {
		if run.Flags().Lookup(to[0]) == nil || run.Flags().Lookup(flag) != nil {
			t.Errorf("--%s leads to --%s", flag, to[0])
		}
	}
}

// What a command has no place for is refused, not left unread, and so is a command that lacks what it is about.
func TestArgumentsAreCounted(t *testing.T) {
	for line := range strings.SplitSeq(`deny|deny per_1 no|approve|approve per_1 once more|answer que_1|asks x|ps x|tasks a b|show a b|logs a b|attach a b|resume a b|pause a b|
		cancel|cancel a b|abort|abort a b|send 0/|fork|fork a b|rewind|rewind a b|merge a b|undo a b|path|path a b|report a b|gc x|demo x|host x|rpc x|auth login|auth login a b|
		auth logout|auth list x|models a b|agents x|service install x|service remove x|service status x`, "|") {
		var err bytes.Buffer
		c := &cli{in: strings.NewReader(""), out: io.Discard, err: &err, env: []string{"HOME=" + t.TempDir()}}
		if code := c.run(t.Context(), strings.Fields(line)); code != exitUsage || !strings.Contains(err.String(), " takes ") || !strings.Contains(err.String(), "next: see: centurion ") {
			t.Errorf("%s: exit %d, %s", line, code, err.String())
		}
	}
}
