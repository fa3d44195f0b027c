package centurion_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// word is a pattern for words and signs that do not belong into texts, what to write instead, and how many places still have it; the
// number may only fall.
type word struct {
	pattern, instead string
	places           int
}

// wording are the words that do not belong into texts for people or models.
var wording = []word{
	{`[\x{ab}\x{bb}]`, `straight quotes, or backticks for code`, 0},
	{`\b[Mm]end(s|ed|ing)?\b`, "fix", 0},
	{`\b(befalls?|befell)\b`, "happen", 0},
	{`\bput right\b`, "correct", 0},
	{`\b([Gg]o|goes|went|gone|going) on\b`, "continue, resume", 8},
	{`\b([Tt]akes?|taken|took|taking) (it |this |them )?back\b`, "undo, revert", 0},
	{`\bthe check died\b`, "the check failed without the change", 0},
	{`\b([Ww]hoever|[Ww]homever|[Ww]herever)\b`, "the person, the agent, where", 0},
	{`\b(stands? still|stood still)\b`, "idle, stopped", 0},
	{`\b(nobody is there|somebody else's)\b`, "no one to ask; another agent's", 0},
	{`\bof which\b|\bin which\b`, "two sentences", 0},
	{`\b([Nn]obody|[Ss]omebody|[Ee]verybody)\b`, "no one, someone, all agents; or the active voice", 3},
	{`\bmind(s)?\b`, "model", 0},
	{`%d (requests|files|items|tasks|lines|tokens|times|checks|messages)\b`, "text.Count, which agrees with its number", 1},
}

// commented are the words that do not belong into comments. The patterns ignore case.
var commented = []word{
	{`(?i)[\x{ab}\x{bb}]`, "straight quotes, or backticks for code", 0},
	{`(?i)\b(whoever|whomever)\b`, "the person, the agent, the caller", 0},
	{`(?i)\bmend(s|ed|ing)?\b`, "fix", 0},
	{`(?i)\b(befalls?|befell)\b`, "happen", 0},
	{`(?i)\bput right\b`, "correct, repair", 0},
}

// unread are packages with texts that no user reads.
var unread = []string{"internal/trial", "cmd/trial", "workspace/todotest", "store/storetest", "internal/browser", "failpoint", "guard", "guard/cputime", "guard/synced", "provider/scripted", "server/opencode/v1/contract"}

// TestWords looks at the string literals and comments of the product, and at every text file that people or models read.
func TestWords(t *testing.T) {
	texts := map[string]string{} // by where they stand
	fset, files := parsed(t)
	for file, f := range files {
		if slices.Contains(unread, path.Dir(file)) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if imp, ok := n.(*ast.ImportSpec); ok && imp != nil {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(strings.TrimSpace(s), " ") {
					at := fset.Position(lit.Pos())
					texts[fmt.Sprintf("%s:%d:%d", file, at.Line, at.Column)] = s
				}
			}
			return true
		})
	}
	for name, text := range documents(t) {
		for i, line := range strings.Split(text, "\n") {
			texts[fmt.Sprintf("%s:%d", name, i+1)] = line
		}
	}
	limit(t, texts, wording)
	limit(t, comments(fset, files), commented)
}

// comments are the lines of all comments, by position.
func comments(fset *token.FileSet, files map[string]*ast.File) map[string]string {
	out := map[string]string{}
	for file, f := range files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				for i, line := range strings.Split(c.Text, "\n") {
					out[fmt.Sprintf("%s:%d", file, fset.Position(c.Pos()).Line+i)] = line
				}
			}
		}
	}
	return out
}

// limit checks how many of the texts, which are by position, have each word.
func limit(t *testing.T, texts map[string]string, words []word) {
	t.Helper()
	for _, w := range words {
		pattern, where := regexp.MustCompile(w.pattern), []string{}
		for _, at := range slices.Sorted(maps.Keys(texts)) {
			if m := pattern.FindString(texts[at]); m != "" {
				where = append(where, at+": "+m)
			}
		}
		switch n := len(where); {
		case n > w.places:
			t.Errorf("%d places have %s, at most %d: write %s\n\t%s", n, w.pattern, w.places, w.instead, strings.Join(where, "\n\t"))
		case n < w.places:
			t.Errorf("%d places have %s, fewer than %d: write the new figure into the table", n, w.pattern, w.places)
		}
	}
}

// documents are the Markdown and HTML files of the repository, without those that tests only compare with or that are made from comments.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "node_modules" || slices.Contains(unread, filepath.ToSlash(p))):
			return fs.SkipDir
		case d.IsDir() || filepath.ToSlash(p) == requirementsDoc || filepath.Ext(p) != ".md" && filepath.Ext(p) != ".html":
			return nil
		}
		b, err := os.ReadFile(p)
		out[filepath.ToSlash(p)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
