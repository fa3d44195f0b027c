// Package gitobj reads and writes the objects, refs and indexes of a git repository. Git does it, in processes that answer one question after
// the other: a process for each costs three milliseconds and more of a large repository, and fifty tasks ask thousands. They run nothing of
// the repository.
package gitobj

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"centurion"
)

// Repo is the objects and refs of a repository. Its methods are safe for concurrent use; they return git's errors as Failed makes them.
type Repo struct {
	// Command makes a git command for the repository that is not started. fresh reports whether the configuration that it was made for is
	// still that of the repository.
	Command func(ctx context.Context, args []string) (cmd *exec.Cmd, fresh func() bool, err error)
	Failed  func(args []string, stderr string, err error) error
	Temp    string // the directory for temporary files, which is made

	mu     sync.Mutex
	idle   map[string][]*process          // by arguments
	turns  map[string]*semaphore.Weighted // likewise
	closed bool

	trees trees
}

const (
	maxProcesses = 4               // of one kind; each takes some megabytes, and answers in less than a millisecond
	rest         = 5 * time.Second // after which a waiting one ends
	maxComplaint = 64 << 10        // bytes of what it said on its standard error
)

// process is a git that answers questions.
type process struct {
	repo    *Repo
	args    []string
	fresh   func() bool
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errs    *os.File // a file, because a reader of its own would be a goroutine that never rests
	resting *time.Timer
	rested  bool
}

// ask writes a question to a git with these arguments, and reads the answer. A question is asked again if a process that had rested
// has died: it must not matter that it is answered twice.
func (r *Repo) ask(ctx context.Context, args []string, question string, answer func(*bufio.Reader) error) error {
	turn := r.turn(args)
	if turn.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer turn.Release(1)
	for {
		p, err := r.process(ctx, args)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = p.cmd.Cancel() })
		_, err = io.WriteString(p.in, question)
		if err == nil {
			err = answer(p.out)
		}
		if !stop() {
			_ = p.end()
			return context.Cause(ctx)
		}
		if err == nil {
			r.keep(p)
			return nil
		}
		ended := p.end()
		switch {
		case p.rested:
		case ended != nil:
			return ended
		default:
			return &centurion.Error{Op: "git " + args[0], Kind: centurion.KindInternal, Msg: "its answer is cut off", Err: err}
		}
	}
}

// process returns a process that waits, or a new one.
func (r *Repo) process(ctx context.Context, args []string) (*process, error) {
	for p := r.take(args); p != nil; p = r.take(args) {
		if p.fresh() {
			return p, nil
		}
		_ = p.end()
	}
	p := &process{repo: r, args: args}
	var out io.Reader
	var err error
	if p.cmd, p.fresh, err = r.Command(ctx, args); err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		out, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		err = os.MkdirAll(r.Temp, 0o700)
	}
	if err == nil {
		p.errs, err = os.CreateTemp(r.Temp, "git-")
	}
	if err != nil {
		return nil, &centurion.Error{Op: "run git", Kind: centurion.KindDisk, Err: err}
	}
	p.cmd.Stderr = p.errs
	_ = os.Remove(p.errs.Name()) // where an open file can be removed
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(r.Failed(args, "", err), p.forget())
	}
	p.out = bufio.NewReaderSize(out, 64<<10)
	return p, nil
}

// end ends the process, and returns why it failed.
func (p *process) end() error {
	_ = p.in.Close() // it ends by that, or has ended
	err := p.cmd.Wait()
	if err != nil {
		said, _ := io.ReadAll(io.NewSectionReader(p.errs, 0, maxComplaint))
		err = p.repo.Failed(p.args, string(said), err)
	}
	return errors.Join(err, p.forget())
}

func (p *process) forget() error {
	err := p.errs.Close()
	_ = os.Remove(p.errs.Name())
	return err
}

// turn limits the processes with some arguments.
func (r *Repo) turn(args []string) *semaphore.Weighted {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := strings.Join(args, " ")
	if r.turns == nil {
		r.turns = map[string]*semaphore.Weighted{}
	}
	if r.turns[kind] == nil {
		r.turns[kind] = semaphore.NewWeighted(maxProcesses)
	}
	return r.turns[kind]
}

// take returns a process that waits, or nil.
func (r *Repo) take(args []string) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := strings.Join(args, " ")
	all := r.idle[kind]
	if len(all) == 0 {
		return nil
	}
	p := all[len(all)-1]
	r.idle[kind] = all[:len(all)-1]
	p.resting.Stop()
	p.rested = true
	return p
}

// keep keeps a process for the next question.
func (r *Repo) keep(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := strings.Join(p.args, " ")
	if r.closed {
		_ = p.end()
		return
	}
	if r.idle == nil {
		r.idle = map[string][]*process{}
	}
	r.idle[kind] = append(r.idle[kind], p)
	p.resting = time.AfterFunc(rest, func() {
		r.mu.Lock()
		i := slices.Index(r.idle[kind], p)
		if i >= 0 {
			r.idle[kind] = slices.Delete(r.idle[kind], i, i+1)
		}
		r.mu.Unlock()
		if i >= 0 {
			_ = p.end()
		}
	})
}

// Close ends the processes that wait. The repository can be used further, at a higher price.
func (r *Repo) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, all := range r.idle {
		for _, p := range all {
			p.resting.Stop()
			_ = p.end()
		}
	}
	r.idle = nil
}

// Resolve returns the object of a name, such as refs/heads/main^{commit}, and its type. The error has [centurion.KindNotFound] if there is
// none.
func (r *Repo) Resolve(ctx context.Context, name string) (id, kind string, err error) {
	missing := notFound("find an object", "the repository has no "+strconv.Quote(name))
	if strings.ContainsAny(name, "\n\x00") {
		return "", "", missing
	}
	err = r.ask(ctx, batchCommand, "info "+name+"\n", func(out *bufio.Reader) error {
		l, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		if f := strings.Fields(l); len(f) == 3 && IsID(f[0]) {
			id, kind = f[0], f[1]
		}
		return nil
	})
	if err == nil && id == "" {
		err = missing
	}
	return id, kind, err
}

var batchCommand = []string{"cat-file", "--batch-command"}

// Object returns the content of an object of a type. The error has [centurion.KindNotFound] if there is none of that type.
func (r *Repo) Object(ctx context.Context, id, kind string) (content []byte, err error) {
	is := ""
	err = r.ask(ctx, batchCommand, "contents "+id+"\n", func(out *bufio.Reader) error {
		l, err := out.ReadString('\n')
		if err != nil {
			return err
		}
		f := strings.Fields(l)
		if len(f) != 3 || !IsID(f[0]) {
			return nil // missing
		}
		n, err := strconv.Atoi(f[2])
		if err != nil {
			return err
		}
		is, content = f[1], make([]byte, n)
		if _, err := io.ReadFull(out, content); err != nil {
			return err
		}
		_, err = out.Discard(1)
		return err
	})
	if err == nil && is != kind {
		return nil, notFound("read an object", fmt.Sprintf("the repository has no %s %s", kind, id))
	}
	return content, err
}

// Compare returns what diff-tree prints with these arguments for two trees.
func (r *Repo) Compare(ctx context.Context, from, to string, args ...string) (printed []byte, err error) {
	mark := "end " + rand.Text() + "\n" // git repeats what is no tree
	head := from + " " + to + "\n"
	err = r.ask(ctx, slices.Concat([]string{args[0], "--stdin"}, args[1:]), head+mark, func(out *bufio.Reader) error {
		for {
			part, err := out.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			if printed = append(printed, part...); bytes.HasSuffix(printed, []byte(mark)) {
				break
			}
		}
		printed = bytes.TrimPrefix(printed[:len(printed)-len(mark)], []byte(head))
		return nil
	})
	return printed, err
}

// MaxAsked is how many bytes of paths [Repo.Fields] takes: the pipe to git holds them all, so that neither waits for the other.
const MaxAsked = 8 << 10

// Fields asks a git with these arguments about paths, of which it reads one after the other and answers each with n fields. Both end with a
// NUL, and all paths together, with these, have at most [MaxAsked] bytes.
func (r *Repo) Fields(ctx context.Context, args, paths []string, n int) (answers [][]string, err error) {
	err = r.ask(ctx, args, strings.Join(paths, "\x00")+"\x00", func(out *bufio.Reader) error {
		for answers = nil; len(answers) < len(paths); {
			one := make([]string, n)
			for i := range one {
				f, err := out.ReadString(0)
				if err != nil {
					return err
				}
				one[i] = f[:len(f)-1]
			}
			answers = append(answers, one)
		}
		return nil
	})
	return answers, err
}

// MoveRef lets a ref point to a commit, or deletes it if to is empty. from is where it has to be: "" for anywhere, zeros for nowhere.
func (r *Repo) MoveRef(ctx context.Context, ref, to, from string) error {
	if strings.ContainsAny(ref, " \n\x00") {
		return &centurion.Error{Op: "move a ref", Kind: centurion.KindUsage, Msg: strconv.Quote(ref) + " is no name of a ref"}
	}
	line := strings.TrimRight("update "+ref+" "+to+" "+from, " ")
	if to == "" {
		line = strings.TrimRight("delete "+ref+" "+from, " ")
	}
	return r.ask(ctx, []string{"update-ref", "-m", "centurion", "--no-deref", "--stdin"}, "start\n"+line+"\ncommit\n", func(out *bufio.Reader) error {
		for range 2 {
			if _, err := out.ReadString('\n'); err != nil {
				return err
			}
		}
		return nil
	})
}

// Put stores an object of a type, byte for byte.
func (r *Repo) Put(ctx context.Context, kind string, content []byte) (id string, err error) {
	f, err := os.CreateTemp(r.Temp, kind+"-")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(r.Temp, 0o700); err == nil {
			f, err = os.CreateTemp(r.Temp, kind+"-")
		}
	}
	if err != nil {
		return "", &centurion.Error{Op: "write a temporary file", Kind: centurion.KindDisk, Err: err}
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", &centurion.Error{Op: "write a temporary file", Kind: centurion.KindDisk, Err: err}
	}
	args := []string{"hash-object", "-t", kind, "-w", "--no-filters", "--stdin-paths"}
	err = r.ask(ctx, args, filepath.ToSlash(f.Name())+"\n", func(out *bufio.Reader) error {
		l, err := out.ReadString('\n')
		id = strings.TrimSpace(l)
		return err
	})
	return id, err
}

// IsID reports whether a name is a full object id, which git prefers to a branch of that name.
func IsID(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
}

func notFound(op, msg string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindNotFound, Msg: msg}
}
