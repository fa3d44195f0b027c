package v1

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"centurion"
	"centurion/workspace"
)

// The limits of answers about files, as OpenCode has them or less.
const (
	maxFound   = 100     // matches and files of one answer
	maxContent = 8 << 20 // bytes of a file that is read
	maxListed  = 50_000  // files that are looked at for a name
)

type fileNode struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Absolute string `json:"absolute"`
	Type     string `json:"type"`
	Ignored  bool   `json:"ignored"`
}

type fileContent struct {
	Type     string `json:"type"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty"`
	Mime     string `json:"mimeType,omitempty"`
}

type textOf struct {
	Text string `json:"text"`
}

type match struct {
	Path       textOf     `json:"path"`
	Lines      textOf     `json:"lines"`
	Line       int        `json:"line_number"`
	Offset     int        `json:"absolute_offset"`
	Submatches []submatch `json:"submatches"`
}

type submatch struct {
	Match textOf `json:"match"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

func (p *Project) fileRoutes() map[string]route {
	return map[string]route{
		"GET /file":         p.listFiles,
		"GET /file/content": p.readFile,
		"GET /api/fs/find":  p.findEntries, // of the second dialect; the terminal client completes @file by it
		"GET /file/status":  func(*http.Request) (any, error) { return []any{}, nil },
		"GET /find":         p.findText,
		"GET /find/file":    p.findFiles,
		"GET /find/symbol":  func(*http.Request) (any, error) { return []any{}, nil },
		"GET /vcs":          func(*http.Request) (any, error) { return map[string]string{"branch": p.branch()}, nil },
	}
}

// branch is the person's branch, "" if there is none.
func (p *Project) branch() string {
	head, err := os.ReadFile(filepath.Join(p.Directory, ".git", "HEAD"))
	name, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if err != nil || !ok {
		return ""
	}
	return name
}

func (p *Project) listFiles(r *http.Request) (any, error) {
	out := []fileNode{}
	dir := cmp.Or(r.FormValue("path"), ".")
	for e, err := range p.Files.Walk(r.Context(), workspace.WalkOptions{Dir: dir, MaxDepth: 1, Hidden: true, Named: true}) {
		if err != nil {
			return nil, err
		}
		kind := map[bool]string{true: "directory", false: "file"}[e.IsDir()]
		out = append(out, fileNode{path.Base(e.Path), e.Path, filepath.Join(p.Directory, filepath.FromSlash(e.Path)), kind, false})
	}
	return out, nil
}

func (p *Project) readFile(r *http.Request) (any, error) {
	rel, err := p.Files.Rel(r.FormValue("path"))
	if err != nil {
		return nil, err
	}
	data, _, err := p.Files.ReadFile(rel, maxContent)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(data) || slices.Contains(data, 0):
		return fileContent{"binary", base64.StdEncoding.EncodeToString(data), "base64", centurion.DetectFile(data)}, nil
	}
	return fileContent{Type: "text", Content: string(data)}, nil
}

// findFiles finds files by a part of their path, the shortest first.
func (p *Project) findFiles(r *http.Request) (any, error) {
	files, _, err := p.Files.Files(r.Context(), maxListed)
	if err != nil {
		return nil, err
	}
	query := strings.ToLower(r.FormValue("query"))
	files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(strings.ToLower(f), query) })
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	limit := int(number(r, "limit"))
	if limit <= 0 || limit > maxFound {
		limit = maxFound
	}
	return some(files[:min(len(files), limit)]), nil
}

// findEntries is findFiles as the second dialect has it.
func (p *Project) findEntries(r *http.Request) (any, error) {
	found, err := p.findFiles(r)
	if err != nil {
		return nil, err
	}
	data := []map[string]string{}
	for _, f := range found.([]string) {
		data = append(data, map[string]string{"path": f, "type": "file"})
	}
	return map[string]any{"data": data, "location": map[string]any{"directory": p.Directory, "project": map[string]string{"id": "global", "directory": p.Directory}}}, nil
}

// findText finds lines by an expression.
func (p *Project) findText(r *http.Request) (any, error) {
	re, err := regexp.Compile(r.FormValue("pattern"))
	if err != nil {
		return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: "pattern: it is no regular expression", Err: err}
	}
	out := []match{}
	for e, err := range p.Files.Walk(r.Context(), workspace.WalkOptions{}) {
		if err != nil && e.Path == "." {
			return nil, err
		}
		if err == nil && e.IsFile() {
			if out = p.matches(out, re, e.Path); len(out) == maxFound {
				break
			}
		}
	}
	return out, nil
}

// matches adds the matching lines of a text file.
func (p *Project) matches(out []match, re *regexp.Regexp, file string) []match {
	data, _, err := p.Files.ReadFile(file, maxContent)
	if err != nil || !utf8.Valid(data) {
		return out
	}
	offset, n := 0, 0
	for line := range strings.Lines(string(data)) {
		n++
		if found := re.FindAllStringIndex(strings.TrimRight(line, "\r\n"), -1); len(found) > 0 && len(out) < maxFound {
			m := match{textOf{file}, textOf{line}, n, offset, nil}
			for _, at := range found {
				m.Submatches = append(m.Submatches, submatch{textOf{line[at[0]:at[1]]}, at[0], at[1]})
			}
			out = append(out, m)
		}
		offset += len(line)
	}
	return out
}
