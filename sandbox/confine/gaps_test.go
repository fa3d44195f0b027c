package confine

import (
	"runtime"
	"strings"
	"testing"
)

// All that a person is told of what a way does not stop.
func TestAllGaps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		way          Way
		system, want string
	}{
		{Full, "linux", "reading files of yours that are not known to hold keys; the network of a command that a person allowed to use it; sockets in the file system that were made after the workspace's first command"},
		{Files, "darwin", "reading files of yours that are not known to hold keys; hidden files that have a second name elsewhere (hard links); reading shared directories for temporary files; seeing which other processes run; " +
			"requests to launchd other than new jobs; processes that leave their command's group: they stay confined, but may outlive the workspace; the number of processes and their memory; " +
			"the network of a command that a person allowed to use it, the machine's own services included"},
		{Files, "linux", "reading files of yours that are not known to hold keys; writing .git and the project's configuration in the workspace; sockets in the file system, such as the session bus; " +
			"seeing other processes, and before Linux 6.12 ending them; reading shared directories for temporary files; the network of a command that a person allowed to use it, and UDP, or TCP before Linux 6.7, of any other"},
		{Job, "windows", "reading, changing and deleting what you can; the network; ending other processes of yours; processes that a service starts for a command"},
		{None, "linux", "anything: commands can reach what you can reach"},
	} {
		if got := strings.Join(tt.way.gaps(tt.system), "; "); got != tt.want {
			t.Errorf("%s on %s:\n got %s\nwant %s", tt.way, tt.system, got, tt.want)
		}
	}
	if got, want := strings.Join(Files.Gaps(), "; "), strings.Join(Files.gaps(runtime.GOOS), "; "); got != want {
		t.Errorf("here: %s", got)
	}
}
