package store

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"centurion"
)

const fullEnv = "CENTURION_STORE_FULL"

// limitFiles lets no file of this process grow beyond so many bytes, which a write then meets as it meets a full disk.
func limitFiles(n uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		return err
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: min(n, now.Max), Max: now.Max})
}

// full fills the disk that a limit pretends, twice, and prints what is wrong with the state afterwards.
func full(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	s, err := Open(ctx, path)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	told := map[string]bool{}
	write := func(id string, size int) error {
		err := s.Update(ctx, func(tx *Tx) error {
			if err := tx.PutMission(&centurion.Mission{ID: id, Goal: strings.Repeat("x", size)}); err != nil {
				return err
			}
			return fact(tx, id)
		})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			told[id] = true
		}
		return err
	}
	for round := range 3 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			return err
		}
		if err := limitFiles(uint64(info.Size()) + 40_000); err != nil {
			return err
		}
		var failed int
		for i := 0; failed < 3 && i < 500; i++ {
			var wg sync.WaitGroup
			errs := make([]error, 4) // some of them committed together
			for w := range errs {
				wg.Go(func() { errs[w] = write(fmt.Sprintf("msn_%d_%d_%d", round, i, w), 3000*w) })
			}
			wg.Wait()
			for _, err := range errs {
				if err == nil {
					continue
				}
				if failed++; centurion.KindOf(err) != centurion.KindDisk || centurion.HintOf(err) == "" {
					return fmt.Errorf("%w of kind %s", err, centurion.KindOf(err))
				}
			}
		}
		if failed < 3 {
			return fmt.Errorf("the disk was never full")
		}
		if err := s.Probe(ctx); centurion.KindOf(err) != centurion.KindDisk {
			return fmt.Errorf("a probe of a full disk: %w", err)
		}
		if _, err := s.Missions(ctx); err != nil {
			return fmt.Errorf("a full disk cannot be read: %w", err)
		}
		if err := limitFiles(1 << 40); err != nil {
			return err
		}
		if err := s.Probe(ctx); err != nil {
			return fmt.Errorf("a probe when there is space again: %w", err)
		}
		if err := write(fmt.Sprintf("msn_after_%d", round), 50_000); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	if err := Check(ctx, path); err != nil {
		return err
	}
	if s, err = Open(ctx, path); err != nil {
		return err
	}
	missions, err := s.Missions(ctx)
	if err != nil {
		return err
	}
	events, err := s.Events(ctx, EventQuery{Limit: 1 << 20})
	if err != nil {
		return err
	}
	if len(missions) != len(told) || len(events) != len(told) {
		return fmt.Errorf("%d acknowledged, %d missions, %d events", len(told), len(missions), len(events))
	}
	for _, e := range events {
		if !told[e.Session] {
			return fmt.Errorf("%s was not acknowledged and is there", e.Session)
		}
	}
	return s.Close()
}

// TRIAL R4: what is acknowledged around a full disk is there, what failed is not, and the same process goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fullEnv+"="+filepath.Join(t.TempDir(), "state.db"))
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%s (%v)", out, err)
	}
}

func init() {
	path := os.Getenv(fullEnv)
	if path == "" {
		return
	}
	if err := full(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ok")
	os.Exit(0)
}
