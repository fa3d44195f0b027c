package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"centurion"
	"centurion/guard"
)

// secret reads a line without showing it on a terminal, or from a pipe. On a terminal Ctrl-C, Ctrl-D and the end of ctx end it.
func (c *cli) secret(ctx context.Context, prompt string) (string, error) {
	const hint = "type or paste the key, or pipe it: printenv MY_KEY | centurion auth login PROVIDER"
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "no key came on standard input", Err: err, Hint: hint}
		}
		return line, nil
	}
	in, err := cancelreader.NewReader(f)
	if err != nil {
		return "", &centurion.Error{Op: "read key", Kind: centurion.KindInternal, Err: err}
	}
	defer in.Close()
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", &centurion.Error{Op: "read key", Kind: centurion.KindInternal, Err: err}
	}
	stop := guard.After(ctx, "end of input", func() { in.Cancel() })
	keys := &keyed{Reader: in}
	line, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, c.err}, "").ReadPassword(prompt)
	stop()
	if rerr := term.Restore(int(f.Fd()), before); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		fmt.Fprintln(c.err) // the prompt's line
	}
	line = strings.TrimSpace(line)
	switch {
	case keys.end == ctrlC || ctx.Err() != nil:
		return "", &centurion.Error{Kind: centurion.KindInterrupted, Msg: "interrupted: no key was stored", Hint: hint}
	case err == nil && line != "":
		return line, nil
	case errors.Is(err, io.EOF):
		err = nil
	}
	return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "no key was given", Err: err, Hint: hint}
}

const ctrlC, ctrlD = 0x03, 0x04

// keyed are the keys of a person at a terminal in raw mode, up to the one that ends their input.
type keyed struct {
	io.Reader
	end byte
}

func (t *keyed) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if i := bytes.IndexAny(b[:n], string([]byte{ctrlC, ctrlD})); i >= 0 {
		t.end = b[i]
		return 0, io.EOF
	}
	return n, err
}
