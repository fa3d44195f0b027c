//go:build !linux && !darwin

package workspace

import "os"

// exchange returns false: this system cannot swap two files atomically.
func exchange(*os.Root, string, string) (bool, error) { return false, nil }
