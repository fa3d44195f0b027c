package main

import (
	"fmt"
	"os"

	"centurion/acp/acptest"
)

// acpAgent is a scripted agent of the Agent Client Protocol, for scripts: acpagent FILE. AGENT_STATE is where it remembers.
func acpAgent() {
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	(&acptest.Agent{Script: string(script), State: os.Getenv("AGENT_STATE"), Exit: os.Exit}).Serve(os.Stdin, os.Stdout)
}
