package confine

import "golang.org/x/sys/unix"

// auditArch is this architecture as filters see it. No call has a number above x32Bit here.
const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0x40000000
)
