package workspace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"centurion"
)

// AppendJSON appends lines, each one JSON value without a line break, to a file of such lines, creating the file and its parent
// directories. When it returns nil they are on disk. A partial line left by a crash is removed by the next call; a complete one without
// its line end is completed. Errors are those of [Workspace.WriteFile].
func (w *Workspace) AppendJSON(rel string, lines ...[]byte) error {
	const op = "append to file"
	d, name, base, _, err := w.target(op, rel)
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := d.OpenFile(base, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return w.fail(op, name, err)
	}
	err = appendLines(f, lines)
	if err = errors.Join(err, f.Close(), syncDir(d)); err != nil {
		return w.fail(op, name, err)
	}
	return nil
}

func appendLines(f *os.File, lines [][]byte) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail, err := tailOf(f, end)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	switch {
	case len(tail) == 0:
	case json.Valid(tail):
		b.WriteByte('\n')
	default:
		end -= int64(len(tail))
	}
	for _, l := range lines {
		b.Write(l)
		b.WriteByte('\n')
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	if _, err := f.WriteAt(b.Bytes(), end); err != nil {
		return err
	}
	return f.Sync()
}

// tailOf returns the text after the last line break of a file that ends at end.
func tailOf(f io.ReaderAt, end int64) (tail []byte, err error) {
	const block = 64 << 10
	for at := end; at > 0; {
		n := min(at, block)
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at-n); err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return slices.Concat(b[i+1:], tail), nil
		}
		tail, at = slices.Concat(b, tail), at-n
	}
	return tail, nil
}

// Lines yields the lines of a file without their ends, of any length. A missing file has none. A line is valid until the next one is
// read.
func (w *Workspace) Lines(rel string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		f, _, err := w.Open(rel)
		if err != nil {
			if centurion.KindOf(err) != centurion.KindNotFound {
				yield(nil, err)
			}
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 64<<10)
		for {
			line, err := r.ReadBytes('\n')
			if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 && !yield(line, nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, w.fail("read file", rel, err))
				return
			}
		}
	}
}

// Names returns the sorted names in a directory with an ending; nil, not an empty list, if the directory is missing. It ignores
// .gitignore files.
func (w *Workspace) Names(rel, ending string) ([]string, error) {
	const op = "read directory"
	w, name, err := w.within(rel)
	if err != nil {
		return nil, err
	}
	d, err := w.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, w.fail(op, name, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, w.fail(op, name, err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ending) })
	slices.Sort(names)
	return names, nil
}
