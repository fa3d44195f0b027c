package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"centurion/text"
)

// abilities tests what the kernel and the installed programs could confine a command with.
func abilities(ctx context.Context) []string {
	return []string{landlock(), namespaces(ctx), bubblewrap()}
}

func landlock() string {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return fmt.Sprintf("Landlock ABI %d", abi)
	case unix.ENOSYS:
		return "no Landlock (the kernel is older than 5.13)"
	case unix.EOPNOTSUPP:
		return "no Landlock (switched off at boot)"
	}
	return "no Landlock (" + errno.Error() + ")"
}

// namespaces starts a process in its own namespaces: whether that is allowed depends on several switches, security modules and
// containers, so only trying tells.
func namespaces(ctx context.Context) string {
	path, err := exec.LookPath("true")
	if err != nil {
		return "user namespaces not tried (no `true` on PATH)"
	}
	ctx, cancel := context.WithTimeout(ctx, commandCap)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return "no user namespaces (" + printable(err.Error()) + ")" + text.When(restricted(apparmorSwitch), ", which AppArmor restricts here")
	}
	return "user, process and mount namespaces"
}

func bubblewrap() string {
	if path, err := exec.LookPath("bwrap"); err == nil {
		return "bubblewrap at " + path
	}
	return "no bubblewrap"
}
