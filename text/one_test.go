package text_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// spellings are what only this package does: a literal or a call that writes an amount, a duration or a size in a way of its own, or
// that decides for itself which characters are safe to show.
var spellings = map[string]*regexp.Regexp{
	"an amount of money: text.USD":   regexp.MustCompile(`^"[^"]*\$%(\.\d)?[fgv]`),
	"a size: centurion.Bytes":        regexp.MustCompile(`^"[^"]*%d (KiB|MiB|KB|MB)\b`),
	"a duration: text.Span":          regexp.MustCompile(`\.Round\(time\.(Second|Minute)\)$`),
	"a sanitizer: text.Clean":        regexp.MustCompile(`^unicode\.(IsPrint|IsControl|Cf|Mn|Me|Co|Cs|Cc)$`),
	"an escape sequence: text.Clean": regexp.MustCompile(`^(0x1b|'\\x1b')$`),
}

// others may, by the name of their file.
var others = map[string]bool{
	"keys.go":   true, // whether an API key can be sent in a header
	"unit.go":   true, // whether a path can stand in a service file
	"ruling.go": true, // the verdict of a review, which models decorate
	"lists.go":  true, // prices of a million tokens, to the last digit
}

// 14.5: an amount, a duration and a size have one spelling, and what is unsafe to show is decided in one place.
func TestOneSpelling(t *testing.T) {
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel("..", p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "text" || rel == "cmd/trial" || rel == "internal/trial" || d.Name() == "testdata" || strings.HasPrefix(rel, ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || others[d.Name()] {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, p, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			said := ""
			switch n := n.(type) {
			case *ast.BasicLit:
				said = n.Value
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					said = x.Name + "." + n.Sel.Name
				}
			case *ast.CallExpr: // x.Round(time.Second), formatted
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Round" && len(n.Args) == 1 {
					if unit, ok := n.Args[0].(*ast.SelectorExpr); ok {
						said = ".Round(time." + unit.Sel.Name + ")"
					}
				}
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Span" || sel.Sel.Name == "Took") {
					return false // rounded, then said by this package
				}
			}
			for what, like := range spellings {
				if said != "" && like.MatchString(said) {
					t.Errorf("%s: %s is %s", set.Position(n.Pos()), said, what)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
