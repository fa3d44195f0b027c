package verify

import (
	"slices"
	"strings"
)

// generics skips the list of type parameters, if there is one.
func (p *jsParser) generics() {
	if p.typed && p.is("<") {
		p.angles()
	}
}

// angles skips a list in angle brackets.
func (p *jsParser) angles() {
	j := p.closing(p.i)
	if j < 0 {
		p.unsure()
	}
	p.i = j
}

// maxTypes limits the tokens of a list of types.
const maxTypes = 2000

// closing returns the token after the list of types whose "<" is at j, or -1 if it is not one.
func (p *jsParser) closing(j int) int {
	depth := 0
	for from := j; j < p.end && j < from+maxTypes; j++ {
		switch t := p.ts[j]; {
		case t.text == "<":
			depth++
		case t.text == ">":
			if depth--; depth == 0 {
				if j == from+1 {
					return -1
				}
				return j + 1
			}
		case t.text == "(" || t.text == "[" || t.text == "{":
			j = t.pair
		case t.text == "" || isWord(t.text) || jsDigit(t.text[0]) || t.text == "=>" || t.text == "..." || len(t.text) == 1 && strings.Contains(",.|&?:=-", t.text):
		default:
			return -1
		}
	}
	return -1
}

// typeEnd returns the token after the type that begins at j, or -1 if there is none. It moves nothing.
func (p *jsParser) typeEnd(j int) int {
	return p.ahead(j, p.typ)
}

// typeArguments returns the token after the list of types whose "<" is at j, or -1 if "<" is a comparison. It moves nothing.
func (p *jsParser) typeArguments(j int) int {
	return p.ahead(j+1, func() {
		for p.typ(); p.accept(","); {
			p.typ()
		}
		p.expect(">")
	})
}

// ahead returns the token that read reaches from j, or -1 if it is unsure. It moves nothing.
func (p *jsParser) ahead(j int, read func()) (end int) {
	was, deep := p.i, p.deep
	defer func() { p.i, p.deep = was, deep }()
	if p.i = j; !p.sure(read) {
		return -1
	}
	return p.i
}

// jsTypePrefix are the words before a type that belong to it.
var jsTypePrefix = []string{"keyof", "unique", "readonly", "infer", "typeof", "new", "abstract", "asserts"}

// typ skips a type without reading the content of its brackets.
func (p *jsParser) typ() {
	defer p.deeper()()
	if !p.accept("|") {
		p.accept("&")
	}
	for {
		p.typeOperand()
		if p.is("is") && !p.newline(0) { // x is T
			p.i++
			p.typ()
			return
		}
		if !p.accept("|") && !p.accept("&") {
			break
		}
	}
	if p.is("extends") && !p.newline(0) {
		p.i++
		p.typ()
		p.expect("?")
		p.typ()
		p.expect(":")
		p.typ()
	}
}

func (p *jsParser) typeOperand() {
	for p.is(jsTypePrefix...) && !p.newline(1) && (isWord(p.at(1)) && p.at(1) != "is" && p.at(1) != "extends" || slices.Contains([]string{"(", "[", "{", "<"}, p.at(1)) || p.at(1) == "" && p.i+1 < p.end) {
		p.i++
	}
	switch word := p.at(0); {
	case p.i >= p.end:
		p.unsure()
	case word == "" || jsDigit(word[0]):
		p.i++
	case word == "-":
		p.i += 2
	case word == "{" || word == "[":
		p.skip(word)
	case word == "(" || word == "<":
		p.generics()
		p.skip("(")
		if p.accept("=>") {
			p.typ()
			return
		}
	case isWord(word):
		p.i++
		if word == "import" {
			p.skip("(")
		}
		for p.accept(".") {
			p.word()
		}
		if p.is("<") && !p.newline(0) {
			p.angles()
		}
	default:
		p.unsure()
	}
	for p.is("[") && !p.newline(0) {
		p.skip("[")
	}
}
