//go:build !linux && !darwin

package sandbox

import "net"

// Shield does nothing here.
func Shield() error { return nil }

// Peer is unknown here.
func (r *Runner) Peer(net.Conn) Peer { return Peer{} }

// Started is unknown here.
func (r *Runner) Started() bool { return false }
