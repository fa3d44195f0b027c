package tools

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"regexp/syntax"
	"runtime"
	"strconv"
	"strings"
	"time"

	"centurion"
)

const (
	rgColumns = 4096     // bytes of a line printed by ripgrep; more than is ever shown
	rgOutput  = 16 << 20 // maximum bytes read of its output
)

// pickSearcher returns the search with ripgrep if it is installed, otherwise our own.
func pickSearcher() searcher {
	if rg, err := exec.LookPath("rg"); err == nil {
		return searchWith(rg)
	}
	return searchOurselves
}

// searchWith searches with ripgrep, which is many times faster on large trees. We select the files in both cases and pass them by name,
// so that the results are the same.
func searchWith(rg string) searcher {
	return func(ctx context.Context, s *search, files []string) error {
		pattern, ok := ripgrepPattern(s.re.String())
		if !ok {
			return searchOurselves(ctx, s, files)
		}
		for len(files) > 0 {
			n := argCount(files)
			batch := files[:n]
			files = files[n:]
			found, ok := runRipgrep(ctx, rg, pattern, s, batch)
			if ctx.Err() != nil {
				return ended(ctx, "grep")
			}
			if !ok { // it does not support this pattern, or cannot be run
				return searchOurselves(ctx, s, append(batch, files...))
			}
			for _, rel := range batch {
				if more, err := s.add(ctx, rel, found[rel]); !more || err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// argCount returns how many files fit in one command line: 32 KB on Windows, elsewhere 2 MB with the environment.
func argCount(files []string) int {
	room := 500_000
	if runtime.GOOS == "windows" {
		room = 20_000
	}
	for i, f := range files {
		if room -= len(f) + 4; room < 0 && i > 0 {
			return i
		}
	}
	return len(files)
}

// runRipgrep returns the matching lines by file; false if ripgrep fails.
func runRipgrep(ctx context.Context, rg, pattern string, s *search, files []string) (map[string][]hit, bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	args := []string{"--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--line-number",
		"--null", "--crlf", "--max-count=" + strconv.Itoa(grepMatches+1), "--max-columns=" + strconv.Itoa(rgColumns),
		"--max-columns-preview", "--regexp=" + pattern, "--"}
	for _, f := range files {
		args = append(args, "./"+f)
	}
	cmd := exec.CommandContext(ctx, rg, args...)
	cmd.Dir = s.at.abs
	cmd.Env = []string{"LC_ALL=C.UTF-8"} // it needs no other variables
	if s.call.Mark != "" {
		cmd.Env = append(cmd.Env, centurion.HostVariable+"="+s.call.Mark)
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, false
	}
	if err := cmd.Start(); err != nil {
		return nil, false
	}
	limited := &io.LimitedReader{R: out, N: rgOutput}
	found := parseRipgrep(limited)
	if limited.N == 0 { // there is unread output
		stop()
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == 2 && len(found) == 0 {
		return nil, false
	}
	for rel, hits := range found {
		if found[rel] = s.sameAsOurs(rel, hits); len(found[rel]) == 0 {
			delete(found, rel)
		}
	}
	return found, true
}

// parseRipgrep parses lines of the form ./path NUL number : text.
func parseRipgrep(r io.Reader) map[string][]hit {
	found := map[string][]hit{}
	b := bufio.NewReader(r)
	for {
		line, err := b.ReadBytes('\n')
		if err != nil {
			return found
		}
		name, rest, ok := bytes.Cut(line[:len(line)-1], []byte{0})
		num, text, ok2 := bytes.Cut(rest, []byte{':'})
		n, err := strconv.Atoi(string(num))
		if !ok || !ok2 || err != nil {
			continue // a message of ripgrep, such as that a binary file matches
		}
		rel := strings.TrimPrefix(filepath.ToSlash(string(name)), "./")
		found[rel] = append(found[rel], hit{n, string(bytes.TrimSuffix(text, []byte{'\r'}))})
	}
}

// ripgrepPattern converts a pattern to one with the same meaning in ripgrep: \w, \d and \b in ASCII, line anchors as such. It returns
// false for a pattern with anchors of the whole text, which in our search match in every line.
func ripgrepPattern(pattern string) (string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	s := re.String() // writes \w and the like as ranges
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch i++; s[i] {
		case 'A', 'z':
			return "", false
		case 'b', 'B':
			b.WriteString(`(?-u:\` + s[i:i+1] + `)`)
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String(), true
}

// sameAsOurs removes hits that our own search would not find, such as lines of binary files.
func (s *search) sameAsOurs(rel string, hits []hit) []hit {
	if isBinary(s.at.below(rel)) {
		return nil
	}
	var same []hit
	for _, h := range hits {
		h.text = strings.TrimPrefix(h.text, string(bom))
		if len(h.text) >= rgColumns || s.re.MatchString(h.text) {
			same = append(same, h)
		}
	}
	return same
}

func isBinary(p place) bool {
	f, err := p.open("grep")
	if err != nil {
		return true
	}
	defer f.Close()
	head := make([]byte, sniffLen)
	n, _ := io.ReadFull(f, head)
	return binaryType(head[:n]) != ""
}
