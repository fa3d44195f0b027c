package verify

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// everything touches all lines.
func everything(src string) touched {
	var t touched
	for i := range strings.Count(src, "\n") + 1 {
		t.added = append(t.added, i+1)
	}
	return t
}

func TestStubBodies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, before, after, want string
		lines                           touched
	}{
		{"go", "a.go", "", "package x\n\nimport (\n\t\"fmt\"\n\ty \"gopkg.in/yaml.v3\"\n\t\"x/go-redis/v9\"\n)\n\nfunc A[T any](t T) (T, error) { return t, fmt.Errorf(\"%v\", redis.Nil) }\n\nfunc (s *S[K]) B() int {\n\treturn 1\n}\n\nfunc C() (n int) { n = y.X; return }\n\nfunc main() { A(1) }\n\nvar D = func(int) bool { return true }\n\ntype S[K any] struct{}\n",
			"package x\n\nimport (\n\t_ \"fmt\"\n\t_ \"gopkg.in/yaml.v3\"\n\t_ \"x/go-redis/v9\"\n)\n\nfunc A[T any](t T) (_ T, _ error) { return }\n\nfunc (s *S[K]) B() (_ int) { return }\n\nfunc C() (n int) { return }\n\nfunc main() {}\n\nvar D = func(int) (_ bool) { return }\n\ntype S[K any] struct{}\n", touched{}},
		{"go, only what was touched", "a.go", "", "package x\n\nfunc A() int {\n\treturn 1\n}\n\nfunc B() int {\n\treturn 2\n}\n", "package x\n\nfunc A() int {\n\treturn 1\n}\n\nfunc B() (_ int) { return }\n", touched{added: []int{8}}},
		{"go, lines that went", "a.go", "", "package x\n\nfunc A() {\n}\n\nfunc B() {\n\tA()\n}\n", "package x\n\nfunc A() {}\n\nfunc B() {\n\tA()\n}\n", touched{removed: []int{4}}},
		{"go, undone", "a.go", "package x\n\nimport \"os\"\n\nfunc A() int { return os.Getpid() }\n", "package x\n\nimport \"fmt\"\n\nfunc A() int { return B() }\n\nfunc B() int { fmt.Print(); return 2 }\n",
			"package x; import \"os\"\n\nimport _ \"fmt\"\n\nfunc A() int { return os.Getpid() }\n\nfunc B() (_ int) { return }\n", touched{}},
		{"go that does not parse", "a.go", "", "package x\n\nfunc A( {\n", "package x\n\nfunc A( {\n", touched{}},
		{"python", "a.py", "", "import os\n\n@cache\ndef a(x,\n      y={1: 2}) -> dict[str, int]:\n    \"\"\"Doc\n  of a.\"\"\"\n    s = '''\nno: end\n'''\n\n    # c\n    return s\n\nclass B:\n    async def b(self): return 1\n    def gen(self):\n        yield 1\n\nX = lambda: 3\n",
			"import os\n\n@cache\ndef a(x,\n      y={1: 2}) -> dict[str, int]:\n    \"\"\"Doc\n  of a.\"\"\"\n    return None\n\nclass B:\n    async def b(self): return None\n    def gen(self):\n        return\n        yield\n\nX = lambda: 3\n", touched{}},
		{"python, only what was touched", "a.py", "", "def a():\n    return 1\n\ndef b():\n    return 2\n", "def a():\n    return None\n\ndef b():\n    return 2\n", touched{added: []int{2}}},
		{"python, undone in a class with comments and blank lines", "a.py", "class A:\n    def f(self):\n        return 0\n", "class A:\n\n# c\n    def f(self):\n        return 1\n",
			"class A:\n\n# c\n    def f(self):\n        return 0\n", touched{}},
		{"python, lines that go on", "a.py", "", "def a(x): \\\n    return x\n\ndef b():\n    s = 'it\\'s: #'\n    t = '''a\\'''b'''\n    return s", "def a(x): return None\n\ndef b():\n    return None", touched{}},
		{"python, a string that stays open", "a.py", "", "def a():\n    s = 'x\n    return 1\ndef b(): return 2\n", "def a():\n    return None\ndef b(): return None\n", touched{}},
		{"python, no body", "a.py", "", "def a(x)\n    return 1\ndef b():\n# c\n", "def a(x)\n    return 1\ndef b():\n# c\n", touched{}},
		{"python, a text that stays open", "a.py", "", "def a():\n    return '''x\ndef b(): return 2\n", "def a():\n    return None", touched{}},
		{"go, undone with a named import", "a.go", "package x\n\nimport o \"os\"\n\nfunc A() int { return o.Getpid() }\n", "package x\n\nfunc A() int { return 1 }\n", "package x; import o \"os\"\n\nfunc A() int { return o.Getpid() }\n", touched{}},
		{"javascript, only what was touched", "a.js", "", "function a() {\n  return 1\n}\nfunction b() {\n  return 2\n}\nfunction c() {\n  return 3\n}\n",
			"function a() {\n  return 1\n}\nfunction b() {}\nfunction c() {\n  return 3\n}\n", touched{added: []int{4}}},
		{"javascript, the last line", "a.js", "", "function a() {\n  return 1\n}\nfunction b() {\n  return 2\n}\n", "function a() {}\nfunction b() {\n  return 2\n}\n", touched{added: []int{3}}},
		{"python, undone", "a.py", "def a(n):\n    return 1\n", "def a(n):\n    return b(n)\n\ndef b(n):\n    return 2\n", "def a(n):\n    return 1\n\ndef b(n):\n    return None\n", touched{}},
		{"javascript", "a.js", "", "export function a(x = {b: '}'}) { return `${x.b + `}`}{` } // }\nconst r = /[/}]{2}/g, b = async (x) => { return x / 2 / 3 };\nclass C extends D {\n  constructor() { super(); }\n  m(x) { if (x) { return 1 } }\n  get n() { return 2 }\n  static async *g() { yield 1 }\n}\nif (a(1)) { b(2) }\nconst o = { p() { return 1 }, q: function () { return 2 }, r: x => x + 1, s: x => { return x } };\nfor (const x of y) { a(x) }\n",
			"export function a(x = {b: '}'}) {} // }\nconst r = /[/}]{2}/g, b = async (x) => {};\nclass C extends D {\n  constructor() { super(); }\n  m(x) {}\n  get n() {}\n  static async *g() {}\n}\nif (a(1)) { b(2) }\nconst o = { p() {}, q: function () {}, r: x => {}, s: x => {} };\nfor (const x of y) { a(x) }\n", touched{}},
		{"typescript", "a.ts", "", "export function a<T extends {x: number}>(t: T): Promise<Map<string, T[]>> { return t }\nconst f = (x: number): x is 'a' => { return true };\ninterface I { m(x: number): void; n: { o: string } }\nclass A { private m<K>(k: K): { a: number } | null { return null } }\ntype T = { a(): void };\n",
			"export function a<T extends {x: number}>(t: T): Promise<Map<string, T[]>> { return undefined as any }\nconst f = (x: number): x is 'a' => { return undefined as any };\ninterface I { m(x: number): void; n: { o: string } }\nclass A { private m<K>(k: K): { a: number } | null { return undefined as any } }\ntype T = { a(): void };\n", touched{}},
	}
	for _, test := range tests {
		l, ok := languageOf(test.file)
		if !ok {
			t.Fatal(test.file)
		}
		lines := test.lines
		if lines.added == nil && lines.removed == nil {
			lines = everything(test.after)
		}
		var before []byte
		if test.before != "" {
			before = []byte(test.before)
		}
		if out, stubbed, reverted := emptyBodies(l, []byte(test.after), before, lines); string(out) != test.want {
			t.Errorf("%s (%q, %q):\n%s\nwant\n%s", test.name, stubbed, reverted, out, test.want)
		}
	}
}

func TestStubNames(t *testing.T) {
	t.Parallel()
	src := "package x\n\nfunc A() {}\nfunc (s *S[K]) B() int {\n\treturn 1\n}\nvar D = func(int) bool { return true }\n"
	if _, stubbed, reverted := emptyBodies(language{goFunctions, finishGo}, []byte(src), nil, everything(src)); !slices.Equal(stubbed, []string{"A", "S.B", "D.1"}) || len(reverted) > 0 {
		t.Errorf("%q, %q", stubbed, reverted)
	}
	if _, stubbed, reverted := emptyBodies(language{goFunctions, finishGo}, []byte(src), []byte("package x\n\nfunc A() {}\n"), everything(src)); !slices.Equal(stubbed, []string{"S.B", "D.1"}) || !slices.Equal(reverted, []string{"A"}) {
		t.Errorf("%q, %q", stubbed, reverted)
	}
}

// Stubbing twice changes nothing more, a Go file still parses, and the brackets and literals of JavaScript are still closed.
func FuzzStubBodies(f *testing.F) {
	f.Add("a.go", "package x\n\nimport \"fmt\"\n\nfunc A[T any](t T) (T, error) { return t, fmt.Errorf(\"\") }\n")
	f.Add("a.go", "package x; var f, g = func() (int, error) { return func() (int, error) { return 1, nil }() }, 2")
	f.Add("a.py", "def a(x: int = 3): # c\n\n  'doc'\n  yield\nclass B:\n\tdef b(self): pass\n")
	f.Add("a.ts", "class A { m(x: number): string { return `${x}` } }; const f = () => { /}/ }")
	f.Add("a.mjs", "export const a = (x = 1) => x ? {b: () => /[/}]/g} : `${x => `}`}`\nexport default async x => await x\n")
	f.Add("a.js", "(function () { module.exports = { f(a) { return a }, g: a => a / 2 / 3, get h() { return 1 } } })(); if (a) /b/.test(c)")
	f.Add("a.tsx", "const A = <T,>({ x }: P<T>): JSX.Element => <B<T> a=\"}\" {...x}>don't {x.map(y => <i key={y}/>)} <></></B>\n")
	f.Add("a.ts", "class A<T> extends B<T>(c) { static #x = 1; h = (e: E): e is F => { }; @d() get g(): T { return <T>this.x! } }; type F = (a: number) => { b: 1 }")
	f.Fuzz(func(t *testing.T, file, src string) {
		l, ok := languageOf(file)
		if !ok {
			return
		}
		once, names, _ := emptyBodies(l, []byte(src), nil, everything(src))
		if len(names) == 0 && string(once) != src {
			t.Fatalf("%q: changed without a name:\n%s", src, once)
		}
		twice, _, _ := emptyBodies(l, once, nil, everything(string(once)))
		if string(once) != string(twice) {
			t.Fatalf("%q:\n%s\nand again\n%s", src, once, twice)
		}
		if strings.HasSuffix(file, ".go") && len(names) > 0 {
			if _, err := parser.ParseFile(token.NewFileSet(), "", once, parser.SkipObjectResolution); err != nil {
				t.Fatalf("%q: %v\n%s", src, err, once)
			}
		}
		if !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".py") && len(names) > 0 {
			if _, ok := l.functions(once); !ok {
				t.Fatalf("%q: not closed any more:\n%s", src, once)
			}
		}
		_, _, _ = emptyBodies(l, []byte(src), once, everything(src))
	})
}

// What is said of a tree says what was done in it, and above a patch how much one red run shows.
func TestLacking(t *testing.T) {
	t.Parallel()
	var two lacking
	two.stubbed = two.stubbed.with("stats/stats.go", []string{"Of"})
	one := two
	two.reverted = two.reverted.with("main.go", []string{"main", "run"})
	if got, want := two.heading(), "Taken out so that this function does nothing: Of (stats/stats.go); these functions do what they did before the work: main, run (main.go).\n"+
		"All at once: which of them the check depends on was not tried.\n"; got != want {
		t.Error(got)
	}
	if got, want := one.heading(), "Taken out so that this function does nothing: Of (stats/stats.go).\n"; got != want {
		t.Error(got)
	}
	for name, l := range map[string]lacking{"stubbed, reverted": {stubbed: one.stubbed, reverted: one.stubbed}, "stubbed, empty": {stubbed: one.stubbed, empty: []string{"a.sh"}},
		"reverted, empty": {reverted: one.stubbed, empty: []string{"a.sh"}}} {
		if !strings.Contains(l.heading(), "All at once") {
			t.Errorf("%s: %q", name, l.heading())
		}
	}
	if got := (lacking{piece: "a.rs"}).heading(); got != "" {
		t.Error(got)
	}
	if got, want := (lacking{empty: []string{"a.sh", "b.sh"}}).String(), "these files are empty: a.sh, b.sh"; got != want {
		t.Error(got)
	}
}
