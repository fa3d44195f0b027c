package verify

import "slices"

// expression reads an expression, with commas.
func (p *jsParser) expression() {
	for p.assign(); p.accept(","); {
		p.assign()
	}
}

// list reads the elements of a call or an array. Commas may follow each other.
func (p *jsParser) list() {
	for p.i < p.end {
		if p.accept(",") {
			continue
		}
		p.accept("...")
		p.assign()
		if p.i < p.end {
			p.expect(",")
		}
	}
}

// arguments reads a list in brackets. The function in `const a = memo(() => …)` is named after a.
func (p *jsParser) arguments(open string) { p.given(p.hint, func() { p.within(open, p.list) }) }

// jsBinary are the operators between two operands.
var jsBinary = []string{"===", "!==", "**", "<<", "==", "!=", "<=", "&&", "||", "??", "+", "-", "*", "/", "%", "&", "|", "^", "<", "in", "instanceof"}

// jsAssigning are the assignment operators.
var jsAssigning = []string{"=", "**=", "<<=", "&&=", "||=", "??=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="}

// assign reads an expression without commas.
func (p *jsParser) assign() {
	defer p.deeper()()
	if p.arrow() {
		return
	}
	if p.accept("yield") {
		if star := p.accept("*"); star || !p.newline(0) && !p.is(";", ",", ":") {
			p.assign()
		}
		return
	}
	for last := ""; ; {
		if last = p.unary(); p.operators() {
			continue
		}
		switch {
		case p.is(jsAssigning...):
			p.i++
			p.given(last, p.assign)
		case p.accept("?"):
			p.middle()
			p.expect(":")
			p.assign()
		}
		return
	}
}

// middle reads the text between "?" and ":". In `a ? (b) : c => d` the colon begins no return type.
func (p *jsParser) middle() {
	if n := p.i; p.is("(") && p.ts[n].pair+1 < p.end && p.ts[p.ts[n].pair+1].text == ":" {
		p.unary()
		return
	}
	p.assign()
}

// operators reads the operator behind an operand. It reports whether another operand follows.
func (p *jsParser) operators() bool {
	for p.typed && p.is("as", "satisfies") && !p.newline(0) {
		p.i++
		p.typ()
	}
	if p.accept(">") { // >, >=, >>, >>=, >>>, >>>=
		for p.is(">", "=", "==", "=>") && p.ts[p.i].from == p.ts[p.i-1].to {
			p.i++
		}
		return true
	}
	if p.is(jsBinary...) {
		p.i++
		return true
	}
	return false
}

// arrow reads an arrow function, if one is next.
func (p *jsParser) arrow() bool {
	begin, j := p.i, p.i
	if p.is("async") && !p.newline(1) && (p.at(1) == "(" || p.at(1) == "<" || isWord(p.at(1)) && p.at(1) != "in" && p.at(1) != "instanceof" && p.at(1) != "as") {
		j++
	}
	switch {
	case j >= p.end:
		return false
	case isWord(p.ts[j].text):
		j++
	case p.ts[j].text == "(":
		j = p.ts[j].pair + 1
	case p.typed && p.ts[j].text == "<":
		if j = p.closing(j); j < 0 || j >= p.end || p.ts[j].text != "(" {
			return false
		}
		j = p.ts[j].pair + 1
	default:
		return false
	}
	if p.typed && j < p.end && p.ts[j].text == ":" && p.ts[j-1].text == ")" {
		if j = p.typeEnd(j + 1); j < 0 {
			return false
		}
	}
	if j >= p.end || p.ts[j].text != "=>" || p.ts[j].line {
		return false
	}
	p.i = j + 1
	name := p.named(p.hint)
	if p.is("{") {
		p.given("", func() { p.body(begin, name, false) })
		return true
	}
	from := p.i
	empty := p.returns(begin)
	owner := p.owner
	p.owner = ""
	p.given("", p.assign)
	p.owner = owner
	p.keep(begin, from, p.i, name, empty)
	return true
}

// jsPrefix are the operators before an operand.
var jsPrefix = []string{"+", "-", "!", "~", "++", "--", "typeof", "void", "delete", "await"}

// unary reads an operand with its prefixes. last is the last name in it, which becomes the function's name in `module.exports.f = …`.
func (p *jsParser) unary() (last string) {
	for p.is(jsPrefix...) {
		p.i++
	}
	if p.typed && p.is("<") { // a type before a value, as in <T>x
		p.angles()
		return p.unary()
	}
	return p.operand()
}

// jsNoOperand are words that begin no operand.
var jsNoOperand = []string{"if", "for", "while", "do", "return", "const", "var", "switch", "case", "default", "else", "try", "catch", "finally", "throw", "break", "continue", "export", "enum", "extends", "in", "instanceof", "with", "debugger"}

// operand reads an operand with the calls and members behind it.
func (p *jsParser) operand() (last string) {
	begin, n := p.i, len(p.fs)
	called := false // whether it may be called immediately: (() => 1)()
	switch word := p.at(0); {
	case p.i >= p.end:
		p.unsure()
	case word == "" || jsDigit(word[0]) || word[0] == '.' && len(word) > 1 && jsDigit(word[1]):
		p.i++
	case word == "(":
		called = true
		p.within("(", p.expression)
	case word == "[":
		p.arguments("[")
	case word == "{":
		p.object()
	case word == "@" || word == "class":
		p.decorators()
		p.class()
	case word == "function" || word == "async" && p.at(1) == "function" && !p.newline(1):
		called = true
		p.accept("async")
		p.function(begin, false)
	case word == "new":
		p.i++
		if p.accept(".") {
			p.word()
		} else {
			p.operand()
		}
	case isWord(word) && !slices.Contains(jsNoOperand, word):
		p.i++
		last = word
	default:
		p.unsure()
	}
	if called && (p.is("(") || p.is(".") && slices.Contains([]string{"call", "apply"}, p.at(1))) {
		p.free(n, p.i)
	}
	return p.members(last)
}

// free removes, among the functions from n on, the one that ends at the token end: it is called immediately, and the functions in it count instead.
func (p *jsParser) free(n, end int) {
	to := p.ts[end-1].to
	if p.ts[end-1].text == ")" {
		to = p.ts[end-2].to
	}
	outer := -1
	for i := n; i < len(p.fs); i++ {
		if p.fs[i].to == to && (outer < 0 || p.fs[i].from < p.fs[outer].from) {
			outer = i
		}
	}
	if outer >= 0 {
		p.fs = slices.Delete(p.fs, outer, outer+1)
	}
}

// jsBehindTypes may follow the type arguments of a call or a value; before anything else, "<" and ">" are comparisons.
var jsBehindTypes = []string{"(", ")", "]", "}", ",", ";", ":", ".", "?.", "=", "===", "!==", "&&", "||", "??"}

// members reads what follows an operand: members, calls, templates.
func (p *jsParser) members(last string) string {
	for p.i < p.end {
		switch t := p.ts[p.i]; {
		case t.text == "." || t.text == "?.":
			p.i++
			if t.text == "?." && p.is("(", "[") || p.literal() {
				continue
			}
			last = p.word()
		case t.text == "(" || t.text == "[":
			p.arguments(t.text)
			last = ""
		case t.text == "" && p.src[t.from] == '`':
			p.i++
			last = ""
		case t.text == "++" || t.text == "--":
			if t.line {
				return last
			}
			p.i++
		case t.text == "!" && p.typed && !t.line:
			p.i++
		case t.text == "<" && p.typed:
			j := p.typeArguments(p.i)
			if j < 0 || j < p.end && !p.ts[j].line && !slices.Contains(jsBehindTypes, p.ts[j].text) && (p.ts[j].text != "" || p.src[p.ts[j].from] != '`') {
				return last
			}
			p.i = j
		default:
			return last
		}
	}
	return last
}
