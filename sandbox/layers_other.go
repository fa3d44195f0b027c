//go:build !linux

package sandbox

// outside is never asked: layers are mounted on Linux only.
func (*confined) outside(dir string) string { return dir }
