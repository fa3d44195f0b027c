//go:build !linux

package sandbox

import "net"

// Neighbour is unknown here.
func (r *Runner) Neighbour(net.Conn) Peer { return Peer{} }
