//go:build !linux && !darwin

package workspace

import "os"

// exchange reports false: this system cannot swap two files in one step.
func exchange(*os.Root, string, string) (bool, error) { return false, nil }
