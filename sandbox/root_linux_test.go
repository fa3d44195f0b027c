package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"centurion"
	"centurion/sandbox/confine"
)

// withoutVariable is set in a test process of root that can make no user namespace.
const withoutVariable = "CENTURION_TEST_WITHOUT_USER_NAMESPACES"

// Issue "Fifty workspaces" 7: a container that forbids user namespaces, where this process is root: it is confined, and mounts layers.
func TestRootWithoutUserNamespaces(t *testing.T) {
	if os.Getenv(withoutVariable) != "" {
		t.Skip("runs below this test")
	}
	tests := []string{"TestRootIsConfined", "TestConfinedCommandWorks", "TestConfinementHolds", "TestChecksAreApart", "TestCachesAreLaidOver", "TestDaemonsEndWithTheWorkspace",
		"TestLayers", "TestFilesOfLayers", "TestMountable"}
	cmd := exec.Command("sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -test.v -test.run "$1"`, os.Args[0], "^("+strings.Join(tests, "|")+")$")
	cmd.Env = append(os.Environ(), withoutVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	for _, name := range tests {
		if err != nil || !strings.Contains(string(out), "\n--- PASS: "+name+" ") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestRootIsConfined(t *testing.T) {
	if os.Getenv(withoutVariable) == "" {
		t.Skip("runs below TestRootWithoutUserNamespaces")
	}
	if way, why := Best(); way != confine.Full {
		t.Fatalf("the best way is %s: %v", way, why)
	}
	if err := exec.Command("unshare", "-U", "true").Run(); err == nil {
		t.Fatal("user namespaces can be made")
	}
	s := newScene(t, confine.Full)
	for _, script := range []string{"echo x > /proc/sys/kernel/hostname", "echo /tmp/x > /proc/sys/kernel/core_pattern", "mount -t tmpfs x .", "mknod d b 8 0", "head -c 1 /dev/mem",
		"for d in /dev/[vsx]d*; do echo x > $d && exit 0; done; exit 1", "chown 7 main.go"} {
		if res := s.run(t, centurion.Command{Script: script}); res.ExitCode == 0 {
			t.Errorf("%s: %s", script, res.Output)
		}
	}
	if res := s.run(t, centurion.Command{Script: "grep Cap /proc/self/status"}); !strings.Contains(res.Output, "CapEff:\t0000000000000000") || !strings.Contains(res.Output, "CapBnd:\t0000000000000000") {
		t.Errorf("capabilities are left: %s", res.Output)
	}
}
