package verify

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

// jsFunctions finds the functions of JavaScript, and of TypeScript if typed is set, also those in classes and objects. With jsx the file
// may have JSX elements. It does not look into elements and templates, and skips a statement that it does not understand.
func jsFunctions(typed, jsx bool) func(src []byte) ([]function, bool) {
	return func(src []byte) ([]function, bool) {
		x := jsLexer{src: src, jsx: jsx, typed: typed, budget: maxNested}
		ts, _, ok := x.code(0, false, 0)
		if !ok {
			return nil, false
		}
		p := jsParser{src: src, ts: ts, typed: typed, end: len(ts), lines: lineStarts(src)}
		p.statements()
		return p.fs, true
	}
}

// jsParser reads the tokens of a file and collects its functions.
type jsParser struct {
	src   []byte
	ts    []jsToken
	typed bool
	i     int // the next token
	end   int // where the innermost bracket closes
	deep  int
	hint  string // the name for a function expression
	owner string // the class or object around, with a dot, or ""
	fs    []function
	lines []int
}

// jsUnsure is the value of the parser's panic at code that it does not understand. Only sure recovers it.
type jsUnsure struct{}

func (p *jsParser) unsure() { panic(jsUnsure{}) }

// sure reports whether read understood the code.
func (p *jsParser) sure(read func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil && r != any(jsUnsure{}) {
			panic(r)
		}
	}()
	read()
	return true
}

// deeper enters one level of nesting; the caller defers what it returns.
func (p *jsParser) deeper() func() {
	if p.deep++; p.deep > maxDeep {
		p.unsure()
	}
	return func() { p.deep-- }
}

// pass skips the next token or, at a bracket, everything up to its closing one.
func (p *jsParser) pass() { p.i = max(p.i, p.ts[p.i].pair) + 1 }

// at is the text of the token n ahead; beyond the end of the bracket it is ")", which begins nothing.
func (p *jsParser) at(n int) string {
	if p.i+n >= p.end {
		return ")"
	}
	return p.ts[p.i+n].text
}

// is reports whether the next token is one of these.
func (p *jsParser) is(texts ...string) bool {
	return p.i < p.end && slices.Contains(texts, p.ts[p.i].text)
}

// newline reports whether the token n ahead begins a line, or there is none.
func (p *jsParser) newline(n int) bool { return p.i+n >= p.end || p.ts[p.i+n].line }

// literal reports whether the next token is a string, a template, a regular expression or an element.
func (p *jsParser) literal() bool { return p.i < p.end && p.ts[p.i].text == "" }

func (p *jsParser) accept(text string) bool {
	if p.is(text) {
		p.i++
		return true
	}
	return false
}

func (p *jsParser) expect(text string) {
	if !p.accept(text) {
		p.unsure()
	}
}

// word reads a name.
func (p *jsParser) word() string {
	if p.i >= p.end || !isWord(p.ts[p.i].text) {
		p.unsure()
	}
	p.i++
	return p.ts[p.i-1].text
}

// skip goes behind the bracket that begins with the next token.
func (p *jsParser) skip(open string) {
	if !p.is(open) {
		p.unsure()
	}
	p.pass()
}

// within reads the contents of the next bracket, all of them, and goes behind it.
func (p *jsParser) within(open string, read func()) {
	if !p.is(open) {
		p.unsure()
	}
	defer p.deeper()()
	end, closing := p.end, p.ts[p.i].pair
	p.i, p.end = p.i+1, closing
	read()
	if p.i != closing {
		p.unsure()
	}
	p.i, p.end = closing+1, end
}

// body reads a function's block and keeps the function, whose signature begins with the token at begin. A function with same set must not be emptied.
func (p *jsParser) body(begin int, name string, same bool) {
	if !p.is("{") {
		p.unsure()
	}
	if !same {
		p.keep(begin, p.i, p.ts[p.i].pair+1, name, p.returns(begin))
	}
	owner := p.owner
	p.owner = ""
	p.within("{", p.statements)
	p.owner = owner
}

// keep adds a function whose signature begins with the token at begin and whose body is the tokens from from to to.
func (p *jsParser) keep(begin, from, to int, name, empty string) {
	f := function{name: name, from: p.ts[from].from, to: p.ts[to-1].to}
	f.head = strings.Join(strings.Fields(string(p.src[p.ts[begin].from:f.from])), " ")
	f.first, f.last = lineOf(p.lines, p.ts[begin].from), lineOf(p.lines, f.to-1)
	f.stub = []edit{{f.from, f.to, empty}}
	p.fs = append(p.fs, f)
}

// returns is the body that does nothing. Type checkers accept its value for any result.
func (p *jsParser) returns(begin int) string {
	for i := begin; p.typed && i < p.i && p.ts[i].text != "("; i++ { // modifiers
		if word := p.ts[i].text; word == "constructor" || word == "set" && p.ts[i+1].text != "(" {
			return "{}"
		}
	}
	if p.typed {
		return "{ return undefined as any }"
	}
	return "{}"
}

// parameters skips the list of parameters. Functions in their defaults are part of the signature.
func (p *jsParser) parameters() {
	p.generics()
	p.skip("(")
	p.annotation()
}

// annotation skips a colon and the type behind it, if there is one.
func (p *jsParser) annotation() {
	if p.typed && p.accept(":") {
		p.typ()
	}
}

// function reads a function declaration or expression. begin is the token at which it begins.
func (p *jsParser) function(begin int, declared bool) {
	p.expect("function")
	p.accept("*")
	name, hint := "", p.hint
	if !p.is("(") && !p.is("<") {
		name = p.word()
	}
	p.hint = ""
	p.parameters()
	if declared && p.typed && !p.is("{") { // an overload
		p.endStatement()
		return
	}
	if name == "" {
		name = p.named(hint)
	}
	p.body(begin, name, false)
}

// named is the name of a function expression assigned to hint.
func (p *jsParser) named(hint string) string {
	if hint == "" {
		return "a function"
	}
	return p.owner + hint
}

// class reads a class declaration or expression.
func (p *jsParser) class() {
	p.expect("class")
	owner, name := p.owner, p.hint
	p.hint = ""
	if !p.is("{", "extends", "implements", "<") {
		name = p.word()
	}
	p.generics()
	if p.accept("extends") {
		p.operand()
		if p.typed && p.is("<") {
			p.angles()
		}
	}
	if p.typed && p.accept("implements") {
		for p.typ(); p.accept(","); {
			p.typ()
		}
	}
	if p.owner = ""; name != "" {
		p.owner = name + "."
	}
	p.within("{", func() {
		for p.i < p.end {
			p.member()
		}
	})
	p.owner = owner
}

// jsModifiers stand before the name of a member of a class.
var jsModifiers = []string{"static", "async", "get", "set", "public", "private", "protected", "readonly", "abstract", "override", "declare", "accessor"}

// member reads one member of a class.
func (p *jsParser) member() {
	if p.accept(";") {
		return
	}
	p.decorators()
	begin := p.i
	for p.is(jsModifiers...) && !slices.Contains([]string{"(", "=", ";", ":", "?", "!", "<", ")", "}"}, p.at(1)) {
		if p.is("static") && p.at(1) == "{" {
			p.i++
			p.within("{", p.statements)
			return
		}
		if !p.is("static", "get", "set") && p.newline(1) { // a field without a semicolon
			break
		}
		p.i++
	}
	p.accept("*")
	name := p.key()
	if p.typed && !p.accept("?") {
		p.accept("!")
	}
	if p.is("(") || p.typed && p.is("<") {
		p.parameters()
		if !p.is("{") { // an overload, or an abstract method
			p.endStatement()
			return
		}
		super := name == "constructor" && bytes.Contains(p.src[p.ts[p.i].from:p.ts[p.ts[p.i].pair].to], []byte("super(")) // without it the object cannot be made
		p.body(begin, p.owner+name, super)
		return
	}
	p.annotation()
	if p.accept("=") {
		p.given(name, p.assign)
	}
	p.endStatement()
}

// given reads a value that is assigned to name.
func (p *jsParser) given(name string, read func()) {
	hint := p.hint
	p.hint = name
	read()
	p.hint = hint
}

// key reads the name of a member or a property.
func (p *jsParser) key() string {
	switch {
	case p.is("["):
		p.skip("[")
		return "[…]"
	case p.literal():
		p.i++
		return strings.Trim(string(p.src[p.ts[p.i-1].from:p.ts[p.i-1].to]), `'"`)
	case p.i < p.end && jsDigit(p.ts[p.i].text[0]):
		p.i++
		return p.ts[p.i-1].text
	}
	return p.word()
}

// object reads an object literal, or a pattern that looks like one.
func (p *jsParser) object() {
	owner := p.owner
	if p.hint != "" && p.hint != "exports" && p.hint != "default" {
		p.owner += p.hint + "."
	}
	p.hint = ""
	p.within("{", func() {
		for p.i < p.end {
			p.property()
			if p.i < p.end {
				p.expect(",")
			}
		}
	})
	p.owner = owner
}

func (p *jsParser) property() {
	if p.accept("...") {
		p.assign()
		return
	}
	begin := p.i
	for p.is("async", "get", "set") && !slices.Contains([]string{"(", ":", ",", "=", ")", "<"}, p.at(1)) {
		p.i++
	}
	p.accept("*")
	name := p.key()
	switch {
	case p.is("(") || p.typed && p.is("<"):
		p.parameters()
		p.body(begin, p.owner+name, false)
	case p.accept(":") || p.accept("="):
		p.given(name, p.assign)
	}
}

// decorators skips the decorators of a class or a member.
func (p *jsParser) decorators() {
	for p.accept("@") {
		if p.is("(") {
			p.skip("(")
			continue
		}
		for p.word(); p.accept("."); {
			p.word()
		}
		if p.typed && p.is("<") {
			p.angles()
		}
		if p.is("(") {
			p.skip("(")
		}
	}
}

func lineStarts(src []byte) []int {
	starts := []int{0}
	for i, c := range src {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// lineOf is the line, from 1, of the byte at.
func lineOf(starts []int, at int) int { return sort.SearchInts(starts, at+1) }
