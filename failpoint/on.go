//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Enabled says whether this build obeys failpoints.
const Enabled = true

// The environment is read once, at the start of the process.
var (
	armed, count = parse(os.Getenv("CENTURION_FAILPOINT"))
	logFile      = os.Getenv("CENTURION_FAILPOINT_LOG")

	mu   sync.Mutex // protects hits
	hits int
)

// parse splits "name:n"; without a number n is 1.
func parse(s string) (Point, int) {
	name, n, found := strings.Cut(s, ":")
	count, err := strconv.Atoi(n)
	if !found || err != nil {
		count = 1
	}
	return Point(name), count
}

// Hit marks a step as reached, and ends the process if it was told to do so here.
func Hit(p Point) {
	mu.Lock()
	defer mu.Unlock()
	if logFile != "" {
		if f, err := os.OpenFile(logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, p)
			f.Close()
		}
	}
	if p != armed {
		return
	}
	if hits++; hits == count {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = self.Kill() // SIGKILL: nothing is cleaned up
		}
		select {} // until it arrives
	}
}
