package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var updateCommands = flag.Bool("update", false, "rewrite testdata/commands.golden")

// described is all that a command promises: its words, its flags with their defaults, how many arguments it takes, and what is completed.
func described(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "== %s (hidden %t, aliases %q, completes %t)\n%s\n", cmd.CommandPath(), cmd.Hidden, cmd.Aliases, cmd.ValidArgsFunction != nil, cmd.Use)
	for _, text := range []string{cmd.Short, cmd.Long, cmd.Example} {
		if text != "" {
			fmt.Fprintln(b, text)
		}
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		_, completes := cmd.GetFlagCompletionFunc(f.Name)
		fmt.Fprintf(b, "--%s %q %s default %q alone %q hidden %t completes %t: %s\n", f.Name, f.Shorthand, f.Value.Type(), f.DefValue, f.NoOptDefVal, f.Hidden, completes, f.Usage)
	})
	for n := range 5 {
		if cmd.Args == nil {
			break
		}
		if err := cmd.Args(cmd, strings.Fields(strings.Repeat("x ", n))); err != nil {
			fmt.Fprintf(b, "%d: %v\n", n, err)
		}
	}
	for _, sub := range cmd.Commands() {
		described(b, sub)
	}
}

// What commands and flags there are, what they say of themselves and what they take is a promise to people and scripts: a change of it is
// seen in testdata/commands.golden, which -update rewrites.
func TestCommandsWhole(t *testing.T) {
	var b strings.Builder
	described(&b, (&cli{}).root())
	const path = "testdata/commands.golden"
	if *updateCommands {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n")
	for i := range min(len(got), len(wanted)) {
		if got[i] != wanted[i] {
			t.Fatalf("line %d: got\n%s\nwant\n%s", i+1, got[i], wanted[i])
		}
	}
	if len(got) != len(wanted) {
		t.Errorf("%d lines, want %d", len(got), len(wanted))
	}
}
