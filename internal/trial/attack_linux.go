package trial

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackTool is the first argument with which the program of the trials is a tool of an attacker: its exit code is 0 if the attack got
// through.
const attackTool = "__attack"

// attack tries one attack that a shell has no words for.
func attack(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: KIND TARGET")
	}
	switch kind, target := args[0], args[1]; kind {
	case "tcp", "udp", "unix":
		return talk(kind, target)
	case "abstract":
		return talk("unix", "\x00"+target)
	case "host":
		return controlHost(target, args[2], http.MethodGet, "missions", "")
	case "approve":
		return controlHost(target, args[2], http.MethodPost, "asks/"+args[3], `{"answer": "once"}`)
	case "serve":
		return replyTo(target, args[2])
	default:
		return systemCall(kind, target)
	}
}

// replyTo allows what an ask is about, as a client of OpenCode's does.
func replyTo(url, ask string) error {
	client := http.Client{Timeout: attackLimit}
	resp, err := client.Post(url+"/permission/"+ask+"/reply", "application/json", strings.NewReader(`{"reply":"once"}`))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return errors.New(resp.Status)
	}
	return nil
}

// talk sends a line and waits for its echo.
func talk(network, address string) error {
	c, err := net.DialTimeout(network, address, attackLimit)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(attackLimit)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c, "got in"); err != nil {
		return err
	}
	_, err = bufio.NewReader(c).ReadString('\n')
	return err
}

// systemCall makes a system call that a confined command has no use for. target is the host's process.
func systemCall(kind, target string) error {
	pid, err := strconv.Atoi(target)
	if err != nil {
		return err
	}
	switch kind {
	case "ptrace":
		if err := unix.PtraceSeize(pid); err != nil {
			return err
		}
		return unix.PtraceDetach(pid)
	case "memory":
		f, err := os.Open("/proc/" + target + "/mem")
		if err != nil {
			return err
		}
		defer f.Close()
		maps, err := os.ReadFile("/proc/" + target + "/maps")
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(maps), "-")
		at, err := strconv.ParseInt(first, 16, 64)
		if err != nil {
			return err
		}
		_, err = f.ReadAt(make([]byte, 16), at)
		return err
	case "descriptor":
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	case "keyring":
		_, err := unix.AddKey("user", "centurion-trial", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	case "io_uring":
		params := make([]byte, 120)
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&params[0])), 0)
		return number(errno)
	case "bpf":
		attr := make([]byte, 72)
		attr[0], attr[4], attr[8], attr[12] = 2, 4, 8, 1 // an array map of one value of eight bytes
		_, _, errno := unix.Syscall(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
		return number(errno)
	case "raw":
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		return err
	case "packet":
		_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return err
	}
	return errors.New("there is no attack " + kind)
}

// number is a system call's error, nil for none.
func number(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// withoutNamespaces runs a command where no further user namespaces can be made, as in many containers.
func withoutNamespaces(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
}
