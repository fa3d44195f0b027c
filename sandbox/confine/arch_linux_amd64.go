package confine

import "golang.org/x/sys/unix"

// auditArch is this architecture as filters see it. x32Bit marks the calls of its other interface, which has numbers of its own.
const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000
)
