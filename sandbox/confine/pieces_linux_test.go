package confine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// never are the calls that a command may not make at all.
var never = []uint32{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
}

// The filter refuses these calls and no other, calls of other architectures altogether, and of two others only some arguments.
func TestFilter(t *testing.T) {
	t.Parallel()
	vm, err := bpf.NewVM(filterProgram())
	if err != nil {
		t.Fatal(err)
	}
	run := func(arch, call, arg0, arg1 uint32) int {
		data := make([]byte, 64) // the machine reads in network order, the kernel in its own
		binary.BigEndian.PutUint32(data, call)
		binary.BigEndian.PutUint32(data[4:], arch)
		binary.BigEndian.PutUint32(data[16:], arg0)
		binary.BigEndian.PutUint32(data[24:], arg1)
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const allowed, eperm, enosys = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | int(unix.EPERM), unix.SECCOMP_RET_ERRNO | int(unix.ENOSYS)
	for call := range uint32(1000) {
		want := allowed
		switch {
		case slices.Contains(never, call):
			want = eperm
		case call == unix.SYS_CLONE3:
			want = enosys
		}
		if got := run(auditArch, call, 0, 0); got != want {
			t.Errorf("call %d: %x, want %x", call, got, want)
		}
		if got := run(auditArch+1, call, 0, 0); got != eperm {
			t.Errorf("call %d of another architecture: %x", call, got)
		}
	}
	for _, flag := range []uint32{unix.CLONE_NEWUSER, unix.CLONE_NEWNS, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWIPC, unix.CLONE_NEWUTS, unix.CLONE_NEWCGROUP} {
		if got := run(auditArch, unix.SYS_CLONE, unix.CLONE_VM|flag, 0); got != eperm {
			t.Errorf("clone with %x: %x", flag, got)
		}
	}
	for what, got := range map[string]int{
		"a thread":         run(auditArch, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_FILES|unix.CLONE_SIGHAND|unix.CLONE_THREAD, unix.CLONE_NEWNS),
		"a terminal":       run(auditArch, unix.SYS_IOCTL, unix.TIOCSTI, unix.TIOCGWINSZ),
		"another call":     run(auditArch, unix.SYS_READ, unix.CLONE_NEWNS, unix.TIOCSTI),
		"the last regular": run(auditArch, x32Bit-1, 0, 0),
	} {
		if got != allowed {
			t.Errorf("%s: %x", what, got)
		}
	}
	if got := run(auditArch, unix.SYS_IOCTL, 0, unix.TIOCSTI); got != eperm {
		t.Errorf("typing into a terminal: %x", got)
	}
	for _, call := range []uint32{x32Bit, x32Bit | unix.SYS_READ, 1<<32 - 1} {
		if got := run(auditArch, call, 0, 0); got != eperm {
			t.Errorf("call %x: %x", call, got)
		}
	}
}

// Each version of Landlock adds what it knows.
func TestRightsOfVersions(t *testing.T) {
	t.Parallel()
	const first = 1<<13 - 1 // from executing to making symbolic links
	for version, want := range map[int]uint64{1: first, 2: first | 1<<13, 3: first | 1<<13 | 1<<14, 4: first | 1<<13 | 1<<14, 5: 1<<16 - 1, 8: 1<<16 - 1, 9: 1<<16 - 1 | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX} {
		if got := fsRights(version); got != want {
			t.Errorf("version %d: %x, want %x", version, got, want)
		}
	}
	if readRights != 1<<0|1<<2|1<<3 || fileRights != 1<<0|1<<1|1<<2|1<<14|1<<15 || netRights != 3 {
		t.Errorf("%x, %x, %x", readRights, fileRights, netRights)
	}
}

// Only what a policy lends can be given to a command.
func TestOnlyWhatIsLentIsGiven(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	p := Policy{Lend: []string{dir}}
	for what, err := range map[string]error{"give": p.Give(other, nil), "take": p.Take(other)} {
		if want := other + " is not lent here"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	if real, err := p.lent(dir); real != dir || err != nil {
		t.Errorf("%s, %v", real, err)
	}
	if _, err := p.lent(dir + "/none"); err == nil {
		t.Error("what is not there is lent")
	}
	if got := resolved([]string{dir, dir + "/none", other}); !slices.Equal(got, []string{dir, other}) {
		t.Errorf("resolved: %v", got)
	}
}

// A policy is carried out with its links followed, without what does not exist, and with each directory before what lies in it. A cache in
// another one, or where commands write anyway, needs no layer.
func TestRealPolicy(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	for _, name := range at("w/cache", "c/in", "c2", "h/deep", "home", "tmp") {
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "w"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	p := Policy{Write: at("link"), Protect: at("link/cache", "none"), Read: at("h/deep", "h"), Lend: at("link", "none"), Hide: at("h/deep", "none", "h"), Empty: at("tmp", "none"), Home: at("home")[0],
		Caches: at("c/in", "c2", "c", "link/cache", "none"), Aside: "aside", Below: "below", Temp: "temp"}
	want := Policy{Write: at("w"), Protect: at("w/cache"), Read: at("h", "h/deep"), Lend: at("w"), Hide: at("h", "h/deep"), Empty: at("tmp"), Home: at("home")[0],
		Caches: at("c", "c2"), Aside: "aside", Below: "below", Temp: "temp"}
	if got := p.real(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := (Policy{Home: dir + "/none"}).real(); got.Home != "" {
		t.Errorf("a home that does not exist is %q", got.Home)
	}
}

// A helper has the capabilities that it needs in a namespace of its own, and root is started without one where those are forbidden.
func TestHelperAttrs(t *testing.T) {
	t.Parallel()
	const own = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	all := HelperAttrs()
	uid, gid := os.Getuid(), os.Getgid()
	caps := []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID, unix.CAP_MKNOD}
	want := []*syscall.SysProcAttr{{Cloneflags: unix.CLONE_NEWUSER | own, AmbientCaps: caps, UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}}}
	if uid == 0 && Landlock() > 0 {
		want = append(want, &syscall.SysProcAttr{Cloneflags: own})
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
}
