package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"centurion"
)

// shell is the runner: it knows a few commands and keeps what it ran.
//
//	exists NAME     succeeds if the file exists
//	sleep DURATION  takes its time, and so does build, which no rule takes for a command that only reads
//	rm NAME         removes a file
//	put NAME TEXT   writes a file
//	holds NAME TEXT succeeds if the file holds the text, and lacks if it does not
//	flaky N         fails the Nth time that it is run
//	held WHAT       is held by confinement
//	bomb LIMIT      is killed because it exceeds a limit
//	printenv        prints the variables of the command
//	panic           crashes
//	anything else   succeeds, unless it begins with "false"
type shell struct {
	mu  sync.Mutex
	ran []string

	online map[string]bool // of those that ran, whether they had the network
	named  map[string]bool // whether they had connections by name

	released []string // directories in which everything was ended
}

func (s *shell) Release(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, dir)
	return nil
}

// releases counts how often everything in a directory was ended.
func (s *shell) releases(dir string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.released {
		if d == dir {
			n++
		}
	}
	return n
}

func (s *shell) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	s.mu.Lock()
	s.ran = append(s.ran, c.Script)
	if s.online == nil {
		s.online, s.named = map[string]bool{}, map[string]bool{}
	}
	s.named[c.Script] = c.Connect != nil
	s.online[c.Script] = c.Network
	s.mu.Unlock()
	word, arg, _ := strings.Cut(c.Script, " ")
	if word == "flaky" && arg == fmt.Sprint(s.times(c.Script)) {
		return centurion.CommandResult{ExitCode: 1, Output: "not this time"}, nil
	}
	// It ends nothing at its limit: what takes longer has waited in the line for as long, and never ran.
	if d, _ := time.ParseDuration(arg); c.Begun != nil && d <= c.Timeout {
		c.Begun()
	}
	switch word {
	case "exists":
		if _, err := os.Stat(filepath.Join(c.Cwd(), arg)); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: "no " + arg}, nil
		}
	case "sleep", "build":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return centurion.CommandResult{ExitCode: 2, Output: err.Error()}, nil
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return centurion.CommandResult{ExitCode: -1}, context.Cause(ctx)
		}
	case "holds", "lacks":
		name, want, _ := strings.Cut(arg, " ")
		b, _ := os.ReadFile(filepath.Join(c.Cwd(), name))
		if strings.Contains(string(b), want) != (word == "holds") {
			return centurion.CommandResult{ExitCode: 1, Output: "FAIL: " + name + " is wrong: " + string(b)}, nil
		}
	case "put":
		name, text, _ := strings.Cut(arg, " ")
		if err := os.WriteFile(filepath.Join(c.Cwd(), name), []byte(text), 0o644); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: err.Error()}, nil
		}
	case "rm":
		if err := os.Remove(filepath.Join(c.Cwd(), arg)); err != nil {
			return centurion.CommandResult{ExitCode: 1, Output: err.Error()}, nil
		}
	case "held":
		return centurion.CommandResult{ExitCode: 1, Held: arg}, nil
	case "bomb":
		return centurion.CommandResult{ExitCode: -1, Exceeded: arg}, nil
	case "printenv":
		return centurion.CommandResult{Output: strings.Join(c.Env, " ")}, nil
	case "panic":
		panic("the shell has crashed")
	case "false":
		return centurion.CommandResult{ExitCode: 1, Output: "it is false"}, nil
	}
	return centurion.CommandResult{}, nil
}

// RunBackground knows the same commands.
func (s *shell) RunBackground(ctx context.Context, c centurion.Command, out io.Writer, started func(int)) (centurion.CommandResult, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	started(4711)
	res, err := s.Run(limited, c)
	if limited.Err() != nil && ctx.Err() == nil {
		res.TimedOut, err = true, nil
	}
	n, werr := io.WriteString(out, res.Output)
	res.Output, res.Bytes, res.Duration = "", int64(n), time.Since(began)
	return res, errors.Join(err, werr)
}

// times returns how often a command was run.
func (s *shell) times(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.ran {
		if c == command {
			n++
		}
	}
	return n
}
