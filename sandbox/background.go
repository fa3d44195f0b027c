package sandbox

import (
	"cmp"
	"context"
	"io"

	"centurion"
)

var _ centurion.BackgroundRunner = (*Runner)(nil)

// RunBackground runs one command like [Runner.Run], with the same process group, environment, mark and time limit, but without a slot,
// since it runs beside others. Output goes to out immediately, and the result has none; after an error of out the rest is read and
// dropped, so that the command does not block. It calls started, which may be nil, once with the shell's process id.
func (r *Runner) RunBackground(ctx context.Context, c centurion.Command, out io.Writer, started func(pid int)) (centurion.CommandResult, error) {
	none := centurion.CommandResult{ExitCode: -1}
	shell, err := r.prepare(c)
	if err != nil {
		return none, err
	}
	if ctx.Err() != nil {
		return none, causeOf(ctx, runOp)
	}
	kept := newOutput(cmp.Or(r.Keep, DefaultKeep))
	res, err := r.run(ctx, shell, c, io.MultiWriter(kept, out), started)
	said, _ := kept.result()
	res.Held = cmp.Or(res.Held, r.held(c, res.ExitCode, said))
	return res, err
}

// copyOut copies an output of a command to w, without keys, like the function of that name.
func (r *Runner) copyOut(w io.Writer, out io.Reader) (total int64) {
	if r.Redact == nil {
		return copyOut(w, out)
	}
	clean := r.Redact.Writer(w)
	total = copyOut(clean, out)
	_ = clean.Close() // an error of w stops nothing
	return total
}

// copyOut copies r to w until r ends or fails, and continues to read if w fails. It returns the length of r.
func copyOut(w io.Writer, r io.Reader) (total int64) {
	buf := make([]byte, 32<<10)
	broken := false
	for {
		n, err := r.Read(buf)
		total += int64(n)
		if n > 0 && !broken {
			_, werr := w.Write(buf[:n])
			broken = werr != nil
		}
		if err != nil {
			return total
		}
	}
}
