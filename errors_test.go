package centurion_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"centurion"
)

func TestKindAndHint(t *testing.T) {
	auth := &centurion.Error{Kind: centurion.KindAuth, Hint: "set the key"}
	bare := &centurion.Error{Op: "read"}
	for name, tt := range map[string]struct {
		err  error
		kind centurion.Kind
		hint string
	}{
		"nil":                                {nil, "", ""},
		"foreign":                            {io.EOF, centurion.KindInternal, ""},
		"deadline":                           {fmt.Errorf("x: %w", context.DeadlineExceeded), centurion.KindTimeout, ""},
		"cancelled":                          {fmt.Errorf("x: %w", context.Canceled), centurion.KindCancelled, ""},
		"own":                                {auth, centurion.KindAuth, "set the key"},
		"wrapped by fmt":                     {fmt.Errorf("call: %w", auth), centurion.KindAuth, "set the key"},
		"outermost kind counts":              {&centurion.Error{Kind: centurion.KindConfig, Err: auth}, centurion.KindConfig, "set the key"},
		"outermost hint counts":              {&centurion.Error{Hint: "look", Err: auth}, centurion.KindAuth, "look"},
		"without a kind, the cause's":        {&centurion.Error{Op: "a", Err: fmt.Errorf("b: %w", &centurion.Error{Err: auth})}, centurion.KindAuth, "set the key"},
		"without any kind":                   {&centurion.Error{Op: "a", Err: io.EOF}, centurion.KindInternal, ""},
		"without a kind, around a context's": {&centurion.Error{Op: "a", Err: context.Canceled}, centurion.KindCancelled, ""},
		"a kind outranks a context's":        {&centurion.Error{Kind: centurion.KindStall, Err: context.DeadlineExceeded}, centurion.KindStall, ""},
		"joined":                             {errors.Join(io.EOF, auth), centurion.KindAuth, "set the key"},
		"joined, the first without":          {errors.Join(bare, auth), centurion.KindAuth, "set the key"},
		"joined, the first's kind counts":    {errors.Join(&centurion.Error{Kind: centurion.KindDisk}, auth), centurion.KindDisk, "set the key"},
		"joined inside":                      {&centurion.Error{Op: "a", Err: errors.Join(io.EOF, bare, fmt.Errorf("c: %w", auth))}, centurion.KindAuth, "set the key"},
		"two causes of fmt":                  {fmt.Errorf("%w and %w", bare, auth), centurion.KindAuth, "set the key"},
		"cause of a context":                 {cause(centurion.ErrBudget), centurion.KindBudget, ""},
	} {
		if got := centurion.KindOf(tt.err); got != tt.kind {
			t.Errorf("%s: kind %q, want %q", name, got, tt.kind)
		}
		if got := centurion.HintOf(tt.err); got != tt.hint {
			t.Errorf("%s: hint %q, want %q", name, got, tt.hint)
		}
	}
}

func cause(err error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(err)
	return context.Cause(ctx)
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]*centurion.Error{
		"read config: no such key: EOF": {Op: "read config", Msg: "no such key", Err: io.EOF, Hint: "not shown", Kind: centurion.KindConfig},
		"no such key":                   {Msg: "no such key"},
		"read config: EOF":              {Op: "read config", Err: io.EOF},
		"auth":                          {Kind: centurion.KindAuth},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for err, kind := range map[*centurion.Error]centurion.Kind{centurion.ErrCancelled: centurion.KindCancelled, centurion.ErrShutdown: centurion.KindInterrupted,
		centurion.ErrHandover: centurion.KindInterrupted, centurion.ErrBudget: centurion.KindBudget} {
		want := map[*centurion.Error]string{centurion.ErrCancelled: "cancelled", centurion.ErrShutdown: "interrupted", centurion.ErrHandover: "handed over to another host", centurion.ErrBudget: "budget reached"}[err]
		if err.Kind != kind || err.Error() != want {
			t.Errorf("%s of kind %s, want %s of kind %s", err, err.Kind, want, kind)
		}
	}
	if !errors.Is(&centurion.Error{Op: "a", Err: io.EOF}, io.EOF) {
		t.Error("the cause cannot be found")
	}
}
