package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are system calls that no build or test needs, and by which a process leaves its namespaces, looks into others, or reaches
// rarely used and often faulty parts of the kernel.
var refused = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
}

// Offsets in the data that the kernel hands to a filter (struct seccomp_data).
const (
	dataCall = 0
	dataArch = 4
	dataArg0 = 16
	dataArg1 = 24
)

// namespaces are the flags of clone that make namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
	unix.CLONE_NEWCGROUP

// filterProgram returns the filter: refused calls fail with EPERM, clone3 with ENOSYS, so that libraries fall back to clone, whose
// flags a filter can see. Calls of another architecture, such as the 32-bit ones of x86, fail altogether.
func filterProgram() []bpf.Instruction {
	fail := func(errno uint32) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | errno} }
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1}, fail(uint32(unix.EPERM)),
		bpf.LoadAbsolute{Off: dataCall, Size: 4}, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1}, fail(uint32(unix.EPERM)),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE3, SkipTrue: 1}, fail(uint32(unix.ENOSYS)),
	}
	for _, call := range refused {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1}, fail(uint32(unix.EPERM)))
	}
	p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_CLONE, SkipTrue: 3}, bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1}, fail(uint32(unix.EPERM)))
	// A terminal that is shared with a command must not be typed into.
	p = append(p, bpf.LoadAbsolute{Off: dataCall, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_IOCTL, SkipTrue: 3},
		bpf.LoadAbsolute{Off: dataArg1, Size: 4}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCSTI, SkipTrue: 1}, fail(uint32(unix.EPERM)))
	return append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// filterCalls loads the filter for the calling thread and what it starts, for good. The thread needs no_new_privs.
func filterCalls() error {
	raw, err := bpf.Assemble(filterProgram())
	if err != nil {
		return fmt.Errorf("assemble filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return fmt.Errorf("load filter: %w", errno)
	}
	return nil
}
