// Command trial runs the trials of package trial: it breaks the program on purpose and counts what it lost.
package main

import (
	"os"

	"centurion/internal/trial"
)

func main() { os.Exit(trial.Main()) }
