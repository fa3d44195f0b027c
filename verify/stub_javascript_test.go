package verify

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each case is a piece of JavaScript or TypeScript, and what is left of it when everything in it does nothing.
func TestStubJavaScript(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, src, want string }{
		{"an arrow function", "a.mjs", "export const add = (a, b) => a + b;\nexport default () => 1;\n", "export const add = (a, b) => {};\nexport default () => {};\n"},
		{"async", "a.mjs", "const f = async x => {\n  await x; // c\n};\nconst g = async (x) => await f(x), h = async => async\n", "const f = async x => {};\nconst g = async (x) => {}, h = async => {}\n"},
		{"an object of functions", "a.cjs", "module.exports = { f(a) { return a }, g: a => a, async *h() {}, get i() { return 1 }, 'j-k': function () { return 1 }, [l]() { return 2 }, m, ...n };\n",
			"module.exports = { f(a) {}, g: a => {}, async *h() {}, get i() {}, 'j-k': function () {}, [l]() {}, m, ...n };\n"},
		{"given one by one", "a.cjs", "exports.f = a => ({ a });\nA.prototype.g = function g() { return this };\n", "exports.f = a => {};\nA.prototype.g = function g() {};\n"},
		{"a class", "a.mjs", "class A extends mix(B) {\n  static #n = 0\n  handle = (e) => { e() }\n  get x() { return 1 }\n  set x(v) { this.v = v }\n  static async *#g() { yield 1 }\n  static { A.n = 1 }\n  'q'() { return 1 }\n  constructor() { super(); this.f = () => 1 }\n}\n",
			"class A extends mix(B) {\n  static #n = 0\n  handle = (e) => {}\n  get x() {}\n  set x(v) {}\n  static async *#g() {}\n  static { A.n = 1 }\n  'q'() {}\n  constructor() { super(); this.f = () => {} }\n}\n"},
		{"no semicolons", "a.mjs", "const a = x => x\n  .y()\n  + 1\nconst b = x =>\n  x\n++c\nexport const d = x => x\n\nlet e = x => x // c\nvar c\n", "const a = x => {}\nconst b = x =>\n  {}\n++c\nexport const d = x => {}\n\nlet e = x => {} // c\nvar c\n"},
		{"within expressions", "a.cjs", "const a = b ? x => x : (y) => [y, 1], c = d(x => x ? 1 : 2, 3), e = { f: x => x, g: 1 }, h = x => y => x + y;\n", "const a = b ? x => {} : (y) => {}, c = d(x => {}, 3), e = { f: x => {}, g: 1 }, h = x => {};\n"},
		{"literals stay", "a.cjs", "const r = /=> {[/}]/g, s = '=> {', t = `${`}` + (() => 1)} => {`; // => {\nif (r) /'/.test(s)\nconst f = x => x / 2 / 3\n", "const r = /=> {[/}]/g, s = '=> {', t = `${`}` + (() => 1)} => {`; // => {\nif (r) /'/.test(s)\nconst f = x => {}\n"},
		{"no functions", "a.cjs", "if (a(1)) { b(2) } else while (c(1)) { d() }\ntry { e() } catch { f() } finally { g() }\nx = a ? f(b) : c\ntry { h() } catch (e) { i() }\nswitch (j(1)) { case k(2): { l() } default: { m() } }\nfor (const n of o) { p(n) }\nvar a, b, c, d, f, g, h, x, i, j, k, l, m, o, p\n", ""},
		{"a wrapper stays", "a.cjs", "(function () {\n  exports.f = () => 1;\n})();\n(async () => { const g = () => 1 })().catch(() => 1)\n", "(function () {\n  exports.f = () => {};\n})();\n(async () => { const g = () => {} })().catch(() => {})\n"},
		{"what is not understood stays", "a.js", "const f = (x) => x ++ y\nconst g = x => 1\nconst h = x => a b, i = x => 1\n", "const f = (x) => x ++ y\nconst g = x => {}\nconst h = x => a b, i = x => 1\n"},
		{"a class without a body", "a.js", "const f = x => x\nclass A extends B", "const f = x => {}\nclass A extends B"},
		{"a function without a body", "a.js", "const f = x => x\nfunction g()", "const f = x => {}\nfunction g()"},
		{"in both branches", "a.js", "if (a) { b = x => x } else { c = x => x }\nif (a) b = x => x; else c = x => x\n", "if (a) { b = x => {} } else { c = x => {} }\nif (a) b = x => {}; else c = x => {}\n"},
		{"brackets that do not match", "a.js", "const f = x => (x]\n", ""},
		{"a component", "a.jsx", "export const A = ({ b }) => (\n  <B a=\"it's\" c={() => 1} {...b}>\n    Don't {b ? <></> : <C.D/>} {/* { */}\n  </B>\n)\nconst f = x => x < 1 / 2\n", "export const A = ({ b }) => {}\nconst f = x => {}\n"},
		{"an element that stays", "a.jsx", "root.render(<A b={x => x}>it's {'}'}</A>)\nconst f = x => x\n", "root.render(<A b={x => x}>it's {'}'}</A>)\nconst f = x => {}\n"},
		{"types", "a.ts", "type F = (a: X) => { b: number }\ninterface I { m: (a: X) => Y; n(): { o: 1 } }\nlet f: (a: X) => Y = (a) => a as Y\ndeclare function g(a: X): { b: 1 }\nconst h = <T extends U, V>(t: T): t is V => true\nabstract class A<T> { private abstract m(): { a: 1 }\n  x?: (a: T) => void\n  y: T[] = []\n  set z(v: T) { this.x!(v) } }\nnamespace N { export const o = (a: X): Y => a! }\nexport type { F }\n",
			"type F = (a: X) => { b: number }\ninterface I { m: (a: X) => Y; n(): { o: 1 } }\nlet f: (a: X) => Y = (a) => { return undefined as any }\ndeclare function g(a: X): { b: 1 }\nconst h = <T extends U, V>(t: T): t is V => { return undefined as any }\nabstract class A<T> { private abstract m(): { a: 1 }\n  x?: (a: T) => void\n  y: T[] = []\n  set z(v: T) {} }\nnamespace N { export const o = (a: X): Y => { return undefined as any } }\nexport type { F }\n"},
		{"type arguments", "a.ts", "export const f = () => new Map<string, number>([[a, 1]]), g = (x: any) => x as Map<A, B>;\nconst h = a < b, i = c > (x => x)\n", "export const f = () => { return undefined as any }, g = (x: any) => { return undefined as any };\nconst h = a < b, i = c > (x => { return undefined as any })\n"},
		{"decorators and overloads", "a.ts", "@Component<X>({ a: () => 1 })\nexport class A {\n  @Input() a = 1\n  @on('x') b(x: string): void\n  @on('x') b(x: any) { return x }\n  constructor(private readonly c: C) { this.c = c }\n}\nfunction f(a: string): string\nfunction f(a: any) { return a }\n",
			"@Component<X>({ a: () => 1 })\nexport class A {\n  @Input() a = 1\n  @on('x') b(x: string): void\n  @on('x') b(x: any) { return undefined as any }\n  constructor(private readonly c: C) {}\n}\nfunction f(a: string): string\nfunction f(a: any) { return undefined as any }\n"},
		{"a decorator that is computed", "a.ts", "@(b(() => 1))\nexport class A { c() { return 1 } }\n", "@(b(() => 1))\nexport class A { c() { return undefined as any } }\n"},
		{"a typed component", "a.tsx", "const A = <T,>({ x }: P<T>): JSX.Element => <B<T> a={x => x}>don't</B>\nconst f = <T extends X>(t: T) => t\n", "const A = <T,>({ x }: P<T>): JSX.Element => { return undefined as any }\nconst f = <T extends X>(t: T) => { return undefined as any }\n"},
		{"labels and loops", "a.cjs", "a: for (;;) { do { if (b) break a; continue } while (c(() => 1)); debugger }\nwhile (d) f = () => 1, g = () => 2\nvar b, c, d, f, g\n", "a: for (;;) { do { if (b) break a; continue } while (c(() => {})); debugger }\nwhile (d) f = () => {}, g = () => {}\nvar b, c, d, f, g\n"},
		{"nothing behind a keyword", "a.cjs", "for (;;) {\n  if (a) break\n  b(() => 1)\n  if (a) continue\n  b(() => 2)\n}\nif (a) return\ndo { b(() => 3) } while (a)\nvar a, b\n",
			"for (;;) {\n  if (a) break\n  b(() => {})\n  if (a) continue\n  b(() => {})\n}\nif (a) return\ndo { b(() => {}) } while (a)\nvar a, b\n"},
		{"beside comments", "a.mjs", "\ufeffconst f = x => x /* => {\n} */ + 1\nconst g = x => x /*\n*/ h(() => 1)\nvar h\n", "\ufeffconst f = x => {}\nconst g = x => {} /*\n*/ h(() => {})\nvar h\n"},
		{"escapes", "a.cjs", "const r = /\\/[\\]/]=> {/, s = 'it\\'s => {', t = `\\`${'}'}\\${`, f = x => x\n", "const r = /\\/[\\]/]=> {/, s = 'it\\'s => {', t = `\\`${'}'}\\${`, f = x => {}\n"},
		{"a comment that stays open", "a.js", "const f = x => x /*\n", ""},
		{"a string that stays open", "a.js", "const f = x => x + '\n'\n", ""},
		{"a template that stays open", "a.js", "const f = x => `${x}\n", ""},
		{"a template with a wrong bracket", "a.js", "const f = x => `${x)}`\n", ""},
		{"a slash", "a.cjs", "if (a) { } /'/.test(b); const o = { v() { return 1 } } / 2, f = x => x / 1, g = b.in / 2 / f.return, h = b++ / 2, i = x => x / a[0] / 1\nvar a, b\n", "if (a) { } /'/.test(b); const o = { v() {} } / 2, f = x => {}, g = b.in / 2 / f.return, h = b++ / 2, i = x => {}\nvar a, b\n"},
		{"a slash behind a mark", "a.ts", "const a = b! / 2, f = (x: N) => x / 2, c = !/'/.test(d)\n", "const a = b! / 2, f = (x: N) => { return undefined as any }, c = !/'/.test(d)\n"},
		{"question marks", "a.cjs", "const a = b ?.5 : c(() => 1)\nd?.(() => 1)?.[b(() => 2)]\nd`c`(() => 3)\nvar b, c, d\n", "const a = b ?.5 : c(() => {})\nd?.(() => {})?.[b(() => {})]\nd`c`(() => {})\nvar b, c, d\n"},
		{"lists with holes", "a.cjs", "const [, a = () => 1] = [, ...b(() => 2), , () => 3], { c = () => 4 } = d\nvar b, d\n", "const [, a = () => 1] = [, ...b(() => {}), , () => {}], { c = () => 4 } = d\nvar b, d\n"},
		{"shifts and numbers as names", "a.cjs", "a >>>= b; c = a >> b >= d(x => x)\nconst e = { 1() { return 1 }, 2.5: x => x }\nvar a, b, c, d\n", "a >>>= b; c = a >> b >= d(x => {})\nconst e = { 1() {}, 2.5: x => {} }\nvar a, b, c, d\n"},
		{"members on lines of their own", "a.cjs", "class A {\n  async\n  b() { return 1 };\n  static\n  c() { return 1 }\n  static { a(new.target, () => 1) }\n}\nvar a\n", "class A {\n  async\n  b() {};\n  static\n  c() {}\n  static { a(new.target, () => {}) }\n}\nvar a\n"},
		{"what a file exports", "a.js", "export default async function () { return 1 }\nexport default @a.b class { c() { return 1 } }\nexport default function f() { return 1 }\nexport default (x => x)\n", "export default async function () {}\nexport default @a.b class { c() {} }\nexport default function f() {}\nexport default (x => {})\n"},
		{"what a typed file exports", "a.ts", "export default abstract class A { a() { return 1 } }\nexport default interface I { a(): { b: 1 } }\nexport as namespace N\nexport = { f() { return 1 } }\nexport type * from 'x'\nimport a = require('b')\nconst g = () => 1\n",
			"export default abstract class A { a() { return undefined as any } }\nexport default interface I { a(): { b: 1 } }\nexport as namespace N\nexport = { f() { return undefined as any } }\nexport type * from 'x'\nimport a = require('b')\nconst g = () => { return undefined as any }\n"},
		{"lists of types", "a.ts", "class A<T> extends B<T> implements C<T>, D { a(): T { return 1 } }\ninterface I<T> extends J, K<T> { a(): void }\nconst enum H { I = 1 }\nmodule S.T { const u = () => 1 }\nconst v = <W>x(() => 1)\n",
			"class A<T> extends B<T> implements C<T>, D { a(): T { return undefined as any } }\ninterface I<T> extends J, K<T> { a(): void }\nconst enum H { I = 1 }\nmodule S.T { const u = () => { return undefined as any } }\nconst v = <W>x(() => { return undefined as any })\n"},
		{"types of types", "a.ts", "type L<T> = T extends (infer U)[] ? [U, keyof typeof m] : -1\ntype N = import('n').O<string>[] | unique symbol\nlet p!: T, q: readonly string[] = r(() => 1), s: abstract new () => T = (): -1 => 1\n",
			"type L<T> = T extends (infer U)[] ? [U, keyof typeof m] : -1\ntype N = import('n').O<string>[] | unique symbol\nlet p!: T, q: readonly string[] = r(() => { return undefined as any }), s: abstract new () => T = (): -1 => { return undefined as any }\n"},
		{"elements in elements", "a.jsx", "a(<B c=<D/> e='}' /* > */ f={'>'} g:h i-j>{<K>{() => 1}</K>}<L.M></L.M ></B>, () => 1)\nconst f = x => x\n", "a(<B c=<D/> e='}' /* > */ f={'>'} g:h i-j>{<K>{() => 1}</K>}<L.M></L.M ></B>, () => {})\nconst f = x => {}\n"},
		{"an element that stays open", "a.jsx", "const f = x => x\na(<B>{1}</C>)\n", ""},
		{"type arguments of an element", "a.tsx", "const a = <B<'>', () => C> d={() => 1}/>, f = (x: T) => x\n", "const a = <B<'>', () => C> d={() => 1}/>, f = (x: T) => { return undefined as any }\n"},
		{"classes and functions as values", "a.mjs", "const A = class { m() { return 1 } }, f = async function () { return 1 }\nlet h = async\nfunction g() { return 1 }\nasync\nfunction k() { return 1 }\nvar async, B = class C extends A { n() { return 1 } }\n",
			"const A = class { m() {} }, f = async function () {}\nlet h = async\nfunction g() {}\nasync\nfunction k() {}\nvar async, B = class C extends A { n() {} }\n"},
		{"a decorated class as a value", "a.js", "const A = @b class { c() { return 1 } }\n", "const A = @b class { c() {} }\n"},
		{"called at once", "a.cjs", "!function () { a = () => 1 }()\n;(function () { a = () => 1 }).call(this)\n;(() => { a = () => 1 }).apply(0)\n;(x => x).name\n;(function () { return 1 }).bind(0)\nvar a\n",
			"!function () { a = () => {} }()\n;(function () { a = () => {} }).call(this)\n;(() => { a = () => {} }).apply(0)\n;(x => {}).name\n;(function () {}).bind(0)\nvar a\n"},
		{"operators and nothing", "a.cjs", "a--; a(() => 1)\na?.b?.(() => 1)\nb ? (c) + a(() => 1) : 0;\n(function* () { a(yield, () => 1); b = c ? yield : () => 2 })()\nvar a, b, c\n",
			"a--; a(() => {})\na?.b?.(() => {})\nb ? (c) + a(() => {}) : 0;\n(function* () { a(yield, () => {}); b = c ? yield : () => {} })()\nvar a, b, c\n"},
		{"members named as modifiers", "a.cjs", "class A { get() { return 1 }\n  static = () => 1\n  async() { return 1 }\n  set = 1; static static() { return 1 } }\n", "class A { get() {}\n  static = () => {}\n  async() {}\n  set = 1; static static() {} }\n"},
		{"lines that begin anew", "a.ts", "let a = b\nas(() => 1)\nlet c = d\n!e(() => 1)\ntype\nf(() => 1)\nconst g = async <T>(t: T) => t\nclass H { i!: T = j(() => 1) }\n",
			"let a = b\nas(() => { return undefined as any })\nlet c = d\n!e(() => { return undefined as any })\ntype\nf(() => { return undefined as any })\nconst g = async <T>(t: T) => { return undefined as any }\nclass H { i!: T = j(() => { return undefined as any }) }\n"},
		{"a return type in a condition", "a.ts", "const a = b ? (c) : d => e\n", "const a = b ? (c) : d => { return undefined as any }\n"},
	}
	node, _ := exec.LookPath("node")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, _ := languageOf(test.file)
			if test.want == "" {
				test.want = test.src
			}
			out, stubbed, _ := emptyBodies(l, []byte(test.src), nil, everything(test.src))
			if string(out) != test.want {
				t.Errorf("%q:\n%s\nwant\n%s", stubbed, out, test.want)
			}
			if ext := filepath.Ext(test.file); node != "" && (ext == ".mjs" || ext == ".cjs") {
				for _, text := range []string{test.src, string(out)} {
					file := filepath.Join(t.TempDir(), test.file)
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					if said, err := exec.Command(node, "--check", file).CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, said)
					}
				}
			}
		})
	}
}

// The names are those a person would look for, and an old body is put back only where it belongs.
func TestStubJavaScriptNames(t *testing.T) {
	t.Parallel()
	src := "export default () => 1\nconst a = () => 1, b = { c() { return 1 }, d: { e: x => x } }\nmodule.exports = { f() { return 1 } }\nG.h = function () { return 1 }\nclass I { j() { return 1 } k = () => 1 }\nclass L { j() { return 2 } }\nm(() => 1)\nconst n = memo(() => 1), o = p({ q() {} })\nclass P { q = () => 1\n r() { return 1 } }\ns = function () { return 1 }\nv[0] = () => 1\n"
	l, _ := languageOf("a.js")
	_, stubbed, reverted := emptyBodies(l, []byte(src), nil, everything(src))
	slices.Sort(stubbed)
	if got, want := strings.Join(stubbed, " "), "I.j I.k L.j P.q P.r a a function a function b.c b.d.e default f h n o.q s"; got != want || len(reverted) > 0 {
		t.Errorf("%s, want %s; %q", got, want, reverted)
	}
	before := "class I { j() { return 0 } }\nconst a = () => 0\nconst n = async () => { await 1 }\n"
	after := "class I { j() { return 1 } }\nclass L { j() { return 2 } }\nconst a = () => { return 1 }\nconst n = () => 2\n"
	out, stubbed, reverted := emptyBodies(l, []byte(after), []byte(before), everything(after))
	if want := "class I { j() { return 0 } }\nclass L { j() {} }\nconst a = () => 0\nconst n = () => {}\n"; string(out) != want {
		t.Errorf("%q, %q:\n%s", stubbed, reverted, out)
	}
	// What a generator yields may hold functions; one that is called at once is none itself.
	gen := "(function* () {\n\tyield memo(x => x)\n\tyield* o({ q() { return 1 } })\n\tyield\n})()\nfunction k() { return 1 }\n"
	if _, stubbed, _ := emptyBodies(l, []byte(gen), nil, everything(gen)); strings.Join(stubbed, " ") != "a function q k" {
		t.Errorf("of a generator: %q", stubbed)
	}
	// Which of two functions without a name is meant is not known.
	if out, _, reverted := emptyBodies(l, []byte("f(x => 1)\nf(x => 2)\n"), []byte("f(x => 3)\n"), everything("\n\n")); string(out) != "f(x => {})\nf(x => {})\n" {
		t.Errorf("%q:\n%s", reverted, out)
	}
	if out, _, reverted := emptyBodies(l, []byte("f(x => 1)\n"), []byte("f(x => 3)\nf(x => 2)\n"), everything("\n")); string(out) != "f(x => {})\n" {
		t.Errorf("%q:\n%s", reverted, out)
	}
}

// A file that is nested deeper than people write ends soon.
func TestStubJavaScriptDeep(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"(", "[", "{", "x => ", "a ? b : ", "<a>{", "`${", "!", "if (a) ", "function f() {", "new ", "a < ", "(a): b => ", "<a b=", "class A extends ", "@a ", "yield "} {
		for _, file := range []string{"a.js", "a.ts", "a.tsx"} {
			l, _ := languageOf(file)
			for _, src := range []string{strings.Repeat(piece, 8_000), strings.Repeat(piece, 3000) + "1" + strings.Repeat(map[string]string{"(": ")", "[": "]", "{": "}", "`${": "}`", "<a>{": "}</a>", "function f() {": "}"}[piece], 3000)} {
				_, _, _ = emptyBodies(l, []byte(src), nil, everything(src))
			}
		}
	}
}
