package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

func FuzzLoad(f *testing.F) {
	for _, s := range []string{`{}`, `{"model":"a/b"}`, "{\"a\":[1,2,{\"b\":null}],}", `{"provider":{"x":{"options":{"apiKey":"{env:A}{file:x}"}}}}`,
		"// c\n{/*", `{"permission":{"a":{"b":"c"}}}`, `{"agent":{"A":{"tools":{"x":true}},"a":1}}`, "\"\\", "/", "{\"max_workers\":1e400}",
		`{"instructions":["~"],"tools":null,"verify":"x","worktree":{"setup":[]}}`} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		src := &source{name: "f", path: filepath.Join(dir, "f")}
		n, err := parseJSONC(src, []byte(text))
		if err != nil {
			if e, ok := errors.AsType[*centurion.Error](err); !ok || e.Kind != centurion.KindConfig {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		// What was read survives being written: the raw values that others parse are what the file says.
		again, err := parseJSONC(src, n.rawJSON())
		if err != nil || string(again.rawJSON()) != string(n.rawJSON()) {
			t.Fatalf("%q does not survive: %v", n.rawJSON(), err)
		}
		_, _ = decodeOwn(n)
		for _, project := range []bool{false, true} {
			src.project = project
			l := &loader{c: &Config{opts: Options{Dir: "/", Env: func(string) string { return "" }}, sources: []*source{src}}, subst: substituter{root: dir},
				table: openCodeKeys()}
			if l.addOpen(n) == nil && l.decodeOpen() == nil {
				l.notices()
			}
		}
	})
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{"---\na: b\n---\nx", "---\n", "---\na: [1, {b: c}]\n---", "---\n? x\n: y\n---\n", "---\na: |\n  b\n---\n", "---\n<<: *a\n---\n", "---\n- a\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		src := &source{name: "f"}
		front, rest, line, err := splitFrontmatter(src, text)
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, rest) || line != 1+strings.Count(text[:len(text)-len(rest)], "\n") && strings.HasSuffix(text[:len(text)-len(rest)], "\n") {
			t.Fatalf("the text %q is not said to begin on its line %d", rest, line)
		}
		n, err := parseYAML(src, front)
		if err == nil && n.rawJSON() == nil {
			t.Fatal("no value")
		}
	})
}
