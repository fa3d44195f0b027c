package verify

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"centurion"
)

type runner func(context.Context, centurion.Command) (centurion.CommandResult, error)

func (r runner) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	return r(ctx, c)
}

func TestRun(t *testing.T) {
	tests := []struct {
		name    string
		command string
		result  centurion.CommandResult
		err     error
		want    centurion.Receipt
	}{
		{"green", "go test", centurion.CommandResult{Output: "ok", Duration: 1500 * time.Millisecond}, nil,
			centurion.Receipt{Command: "go test", Passed: true, Output: "ok", Millis: 1500}},
		{"red", "go test ", centurion.CommandResult{ExitCode: 1, Output: "FAIL"}, nil, centurion.Receipt{Command: "go test ", ExitCode: 1, Output: "FAIL"}},
		{"timed out", "x", centurion.CommandResult{ExitCode: 0, TimedOut: true, Output: "…"}, nil,
			centurion.Receipt{Command: "x", ExitCode: -1, Error: "timed out after 10m0s", Output: "…"}},
		{"too much", "x", centurion.CommandResult{ExitCode: -1, Exceeded: "512 processes"}, nil,
			centurion.Receipt{Command: "x", ExitCode: -1, Error: "it used more than 512 processes"}},
		{"held", "x", centurion.CommandResult{ExitCode: 1, Held: "no network"}, nil, centurion.Receipt{Command: "x", ExitCode: 1, Output: "\n(no network)\n"}},
		{"killed", "x", centurion.CommandResult{ExitCode: -1}, nil, centurion.Receipt{Command: "x", ExitCode: -1}},
		{"not started", "x", centurion.CommandResult{}, errors.New("no shell"), centurion.Receipt{Command: "x", ExitCode: -1, Error: "no shell"}},
		{"empty", " \t", centurion.CommandResult{}, nil, centurion.Receipt{Command: " \t", ExitCode: -1, Error: "the command is empty and proves nothing"}},
	}
	for _, test := range tests {
		c := Checker{Runner: runner(func(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
			if c.Script != test.command || c.Dir != "/dir" || c.Timeout != DefaultTimeout || c.Keep != keep || !c.Check || c.Network != (test.name == "green") {
				t.Errorf("%s: ran %+v", test.name, c)
			}
			return test.result, test.err
		}), Network: func(command string) bool { return command == "go test" }}
		got, err := c.Run(t.Context(), "/dir", test.command)
		if err != nil || centurion.CheckID(centurion.PrefixReceipt, got.ID) != nil || got.Time.IsZero() {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
		got.ID, got.Time = "", centurion.Time{}
		if test.want.Error != "the command is empty and proves nothing" {
			test.want.Digest = digest(test.result.Output)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestRunStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := Checker{Timeout: time.Second, Runner: runner(func(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
		if c.Timeout != time.Second {
			t.Errorf("timeout %s", c.Timeout)
		}
		cancel(centurion.ErrShutdown)
		return centurion.CommandResult{Output: "so far"}, ctx.Err()
	})}
	got, err := c.Run(ctx, "/dir", "x")
	if centurion.KindOf(err) != centurion.KindInterrupted || got.Passed || got.ExitCode != -1 || got.Output != "so far" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPassedAlthoughStoppedAfterwards(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := Checker{Runner: runner(func(context.Context, centurion.Command) (centurion.CommandResult, error) {
		cancel(centurion.ErrCancelled)
		return centurion.CommandResult{}, nil // it had ended by itself
	})}
	if got, err := c.Run(ctx, "/dir", "x"); err != nil || !got.Passed {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDistinct(t *testing.T) {
	got := Distinct([]string{"b", " a ", "", "b", "a", "  ", "a b", "a  b"})
	if want := []string{"b", "a", "a b", "a  b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Distinct(nil); got != nil {
		t.Errorf("got %q", got)
	}
}
