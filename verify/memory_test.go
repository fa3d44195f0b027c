package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
)

// files is a tree in memory.
type files map[string]string

// memory keeps trees in memory. Lay writes them to dir, if there is one.
type memory struct {
	trees   map[string]files
	dir     string
	laid    string
	changed func(laid string) []string
}

func newMemory(trees map[string]files) *memory { return &memory{trees: trees} }

func (m *memory) Lay(_ context.Context, tree string) (centurion.Place, error) {
	m.laid = tree
	if m.dir == "" {
		return centurion.Place{Dir: "/dir"}, nil
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return centurion.Place{}, err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(m.dir, e.Name())); err != nil {
			return centurion.Place{}, err
		}
	}
	for path, text := range m.trees[tree] {
		path = filepath.Join(m.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return centurion.Place{}, err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return centurion.Place{}, err
		}
	}
	return centurion.Place{Dir: m.dir}, nil
}

func (m *memory) Changed(context.Context) ([]string, error) {
	if m.changed != nil {
		return m.changed(m.laid), nil
	}
	var out []string
	for path, text := range m.trees[m.laid] {
		if m.dir == "" {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(m.dir, path)); err != nil || string(b) != text {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (m *memory) Diff(_ context.Context, from, to string) ([]centurion.FileDiff, error) {
	return diffTrees(m.trees[from], m.trees[to]), nil
}

func (m *memory) Read(_ context.Context, tree, path string) ([]byte, error) {
	text, ok := m.trees[tree][path]
	if !ok {
		return nil, &centurion.Error{Op: "read", Kind: centurion.KindNotFound, Msg: path}
	}
	return []byte(text), nil
}

func (m *memory) With(_ context.Context, tree string, put map[string][]byte) (string, error) {
	out := maps.Clone(m.trees[tree])
	for path, text := range put {
		if delete(out, path); text != nil {
			out[path] = string(text)
		}
	}
	return m.add(out), nil
}

func (m *memory) add(t files) string {
	for name, other := range m.trees {
		if maps.Equal(t, other) {
			return name
		}
	}
	name := fmt.Sprintf("tree%d", len(m.trees))
	m.trees[name] = t
	return name
}

func (m *memory) Without(_ context.Context, from, to string, out func(centurion.FileDiff, *centurion.Hunk) bool) (string, string, error) {
	result := maps.Clone(m.trees[to])
	var removed []centurion.FileDiff
	for _, f := range diffTrees(m.trees[from], m.trees[to]) {
		if len(f.Hunks) == 0 {
			continue
		}
		taken := f
		taken.Hunks = nil
		text := strings.SplitAfter(m.trees[to][f.Path], "\n")
		for _, h := range slices.Backward(f.Hunks) {
			if !out(f, &h) {
				continue
			}
			taken.Hunks = append(taken.Hunks, h)
			var old []string
			for l := range strings.Lines(h.Text) {
				if l[0] != '+' {
					old = append(old, l[1:])
				}
			}
			start := h.NewStart - 1
			if h.NewLines == 0 {
				start++
			}
			text = slices.Replace(text, start, start+h.NewLines, old...)
		}
		if len(taken.Hunks) == 0 {
			continue
		}
		slices.Reverse(taken.Hunks)
		removed = append(removed, taken)
		if result[f.Path] = strings.Join(text, ""); f.Status == "added" && len(taken.Hunks) == len(f.Hunks) {
			delete(result, f.Path)
		}
	}
	return m.add(result), patch(removed), nil
}

func diffTrees(a, b files) []centurion.FileDiff {
	both := maps.Clone(a)
	maps.Copy(both, b)
	var out []centurion.FileDiff
	for _, path := range slices.Sorted(maps.Keys(both)) {
		was, had := a[path]
		is, has := b[path]
		if was == is && had == has {
			continue
		}
		d := diffFile(was, is)
		d.Path, d.Status = path, "modified"
		if !had {
			d.Status = "added"
		} else if !has {
			d.Status = "deleted"
		}
		out = append(out, d)
	}
	return out
}

// diffFile finds the longest common lines and makes hunks with three lines of context.
func diffFile(was, is string) centurion.FileDiff {
	a, b := splitLines(was), splitLines(is)
	long := make([][]int, len(a)+1)
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if long[i][j] = max(long[i+1][j], long[i][j+1]); a[i] == b[j] {
				long[i][j] = long[i+1][j+1] + 1
			}
		}
	}
	var ops []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			ops, i, j = append(ops, " "+a[i]), i+1, j+1
		case i < len(a) && (j == len(b) || long[i+1][j] >= long[i][j+1]):
			ops, i = append(ops, "-"+a[i]), i+1
		default:
			ops, j = append(ops, "+"+b[j]), j+1
		}
	}
	var f centurion.FileDiff
	for from := 0; from < len(ops); {
		if ops[from][0] == ' ' {
			from++
			continue
		}
		end, last := from, from
		for ; end < len(ops) && end-last <= 6; end++ {
			if ops[end][0] != ' ' {
				last = end
			}
		}
		start, stop := max(0, from-3), min(len(ops), last+4)
		f.Hunks = append(f.Hunks, hunkOf(ops, start, stop))
		from = stop
	}
	for _, op := range ops {
		switch op[0] {
		case '+':
			f.Added++
		case '-':
			f.Deleted++
		}
	}
	return f
}

func hunkOf(ops []string, start, stop int) centurion.Hunk {
	oldAt, newAt, oldN, newN := 1, 1, 0, 0
	for _, op := range ops[:start] {
		if op[0] != '+' {
			oldAt++
		}
		if op[0] != '-' {
			newAt++
		}
	}
	for _, op := range ops[start:stop] {
		if op[0] != '+' {
			oldN++
		}
		if op[0] != '-' {
			newN++
		}
	}
	if oldN == 0 {
		oldAt--
	}
	if newN == 0 {
		newAt--
	}
	return centurion.Hunk{Header: fmt.Sprintf("@@ -%d,%d +%d,%d @@", oldAt, oldN, newAt, newN), Text: strings.Join(ops[start:stop], ""), NewStart: newAt, NewLines: newN}
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return slices.Collect(strings.Lines(s))
}

// host runs commands with bash, for tests that need real test runners.
type host struct{ env []string }

func (h host) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	ctx, cancel := context.WithTimeout(ctx, min(c.Timeout, time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", c.Script)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), h.env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	res := centurion.CommandResult{Output: string(out), Duration: time.Since(start), ExitCode: cmd.ProcessState.ExitCode()}
	if err != nil && cmd.ProcessState == nil {
		return res, err
	}
	return res, nil
}

// need fails a test on a machine that lacks a program: what it prints is what is tested.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing: install it, as CI has it", program)
	}
}
