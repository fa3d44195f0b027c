// Package demo holds the sample project of `centurion demo` and the scenario of its scripted model. It runs nothing: the program runs
// it like any other mission.
package demo

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"centurion/provider/scripted"
)

// Goal is the mission's goal.
const Goal = "Make pocket do what its README promises: convert lengths, weights and temperatures"

var pauses = regexp.MustCompile(`(?m)^    delay: .*\n`)

//go:embed sample scenario.yaml
var files embed.FS

// Unpack writes the sample project into dir.
func Unpack(dir string) error {
	sample, err := fs.Sub(files, "sample")
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Clean(dir), sample)
}

// Scenario returns the scripted model's answers. In a hurry it omits the pauses for thinking, which are for spectators.
func Scenario(hurry bool) (*scripted.Scenario, error) {
	b, err := files.ReadFile("scenario.yaml")
	if err != nil {
		return nil, err
	}
	if hurry {
		b = pauses.ReplaceAll(b, nil)
	}
	return scripted.Parse("scenario.yaml", b)
}
