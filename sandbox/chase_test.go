//go:build unix

package sandbox

import (
	"os"
	"testing"
	"time"
)

// R10: nothing is left behind for lack of time: however long a look at the processes takes, what is found gets SIGKILL, and what is
// found for ever is given up.
func TestChase(t *testing.T) {
	const grace, limit = 200 * time.Millisecond, 600 * time.Millisecond
	for _, test := range []struct {
		name          string
		grace, scan   time.Duration // how long one look takes
		found         []int         // by it; the last one again and again
		looks, killed int           // how many there are, and how many of them send SIGKILL to somebody
	}{
		{"nobody", grace, time.Millisecond, []int{0}, 2, 0},
		{"nobody, slowly", grace, time.Hour, []int{0}, 2, 0},
		{"one that obeys", grace, 50 * time.Millisecond, []int{1, 0}, 3, 0},
		{"one that is not seen for a moment", grace, 50 * time.Millisecond, []int{1, 0, 1, 0}, 5, 0},
		{"one that takes SIGKILL", grace, 100 * time.Millisecond, []int{1, 1, 1, 0}, 5, 1},
		{"one that takes SIGKILL, slowly", grace, time.Second, []int{1, 1, 0}, 4, 1},
		{"one that forks, slowly", grace, time.Second, []int{1, 1, 1, 0}, 5, 2},
		{"many for ever", grace, 50 * time.Millisecond, []int{9}, 12, 8},
		{"many for ever, slowly", grace, time.Second, []int{9}, 4, 3},
		{"nobody is asked", 0, time.Second, []int{1, 0}, 3, 1},
		{"nobody once time is up", grace, 300 * time.Millisecond, []int{1, 1, 0, 0}, 4, 1},
	} {
		c := chase{grace: test.grace, limit: limit}
		looks, killed := 0, 0
		for now := time.Duration(0); ; {
			sig, found := c.signal(now), test.found[min(looks, len(test.found)-1)]
			now += test.scan
			if looks++; found > 0 && sig == os.Kill {
				killed++
			}
			if !c.again(now, sig, found) || looks > 99 {
				break
			}
		}
		if looks != test.looks || killed != test.killed {
			t.Errorf("%s: %d looks, %d of them with SIGKILL; want %d and %d", test.name, looks, killed, test.looks, test.killed)
		}
	}
}
