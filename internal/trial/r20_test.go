package trial

import (
	"os"
	"strings"
	"testing"
)

// R20: what has grown is told, and what only wavers is not.
func TestGrown(t *testing.T) {
	first := usage{mib: 100, descriptors: 70, threads: 20}
	for name, c := range map[string]struct {
		last usage
		want string
	}{
		"the same":         {first, ""},
		"less":             {usage{50, 30, 10, 0}, ""},
		"a little":         {usage{113, 79, 29, 0}, ""},
		"memory":           {usage{115, 70, 20, 0}, "resident memory has grown from 100 to 115 MiB"},
		"descriptors":      {usage{100, 81, 20, 0}, "descriptors have grown from 70 to 81"},
		"a thread or more": {usage{100, 70, 31, 0}, "threads have grown from 20 to 31"},
		"all":              {usage{200, 120, 70, 0}, "resident memory has grown from 100 to 200 MiB\ndescriptors have grown from 70 to 120\nthreads have grown from 20 to 70"},
	} {
		if got := strings.Join(grown(first, c.last), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// R20: the runtime's list is counted without idle connections; every other goroutine counts.
func TestCountGoroutines(t *testing.T) {
	const list = "SIGQUIT: quit\nPC=0x1 m=0\n\ngoroutine 0 gp=0x1 m=0 [idle]:\nruntime.futex()\n\ngoroutine 1 gp=0x2 [select]:\nmain.main()\n\n" +
		"goroutine 7 [IO wait]:\nnet/http.(*persistConn).readLoop(0x1)\n\ngoroutine 9 [chan receive]:\ncenturion/orchestrator.leak()\n\nrax 0x1\n"
	if n := countGoroutines(list); n != 3 {
		t.Errorf("%d goroutines, want 3", n)
	}
	if n := countGoroutines("the host has ended"); n != 0 {
		t.Errorf("%d goroutines where there is no list", n)
	}
}

// R20: the figures of a process are the kernel's.
func TestUsageOf(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	before, err := usageOf(os.Getpid())
	if err != nil || before.mib < 1 || before.threads < 1 || before.descriptors < 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	for range 20 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if now, err := usageOf(os.Getpid()); err != nil || now.descriptors < before.descriptors+20 {
		t.Errorf("%+v, then %+v, %v", before, now, err)
	}
}
