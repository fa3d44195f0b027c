package verify

import "slices"

// statements reads statements up to the end of the surrounding bracket.
func (p *jsParser) statements() {
	for p.i < p.end {
		p.statement()
	}
}

// statement reads one statement. It skips one that it does not understand, including its functions.
func (p *jsParser) statement() {
	was := *p
	if p.sure(func() { defer p.deeper()(); p.hint = ""; p.one() }) {
		p.hint = was.hint
		return
	}
	was.fs = p.fs[:len(was.fs)]
	*p = was
	p.resume()
}

// jsBegins are words that begin a statement.
var jsBegins = []string{"export", "import", "function", "async", "class", "abstract", "const", "let", "var", "if", "for", "while", "switch", "try", "return", "throw", "interface", "type", "enum", "declare", "namespace", "module", "@"}

// resume skips to the next token that certainly begins a statement.
func (p *jsParser) resume() {
	for first := true; p.i < p.end; first = false {
		if !first && p.ts[p.i].line && p.is(jsBegins...) {
			return
		}
		if p.accept(";") {
			return
		}
		p.pass()
	}
}

// endStatement reads the semicolon at the end of a statement, or checks that it may be omitted.
func (p *jsParser) endStatement() {
	if !p.accept(";") && !p.newline(0) {
		p.unsure()
	}
}

func (p *jsParser) one() {
	word := p.at(0)
	switch {
	case word == "{":
		p.within("{", p.statements)
	case word == ";":
		p.i++
	case word == "@":
		p.decorators()
		p.one()
	case word == "import" && p.at(1) != "(" && p.at(1) != ".":
		p.loose()
	case word == "export":
		p.export()
	case word == "function" || word == "async" && p.at(1) == "function" && !p.newline(1):
		begin := p.i
		p.accept("async")
		p.function(begin, true)
	case word == "class":
		p.class()
	case word == "var" || word == "const" && p.at(1) != "enum" || word == "let" && (isWord(p.at(1)) || p.at(1) == "[" || p.at(1) == "{"):
		p.i++
		p.declarations()
	case p.typed && p.typeStatement():
	case isWord(word) && p.at(1) == ":" && !slices.Contains([]string{"default", "case"}, word): // a label
		p.i += 2
		p.statement()
	default:
		p.control(word)
	}
}

// export reads an export.
func (p *jsParser) export() {
	p.i++
	switch {
	case p.accept("default"):
		p.hint = "default"
		switch begin := p.i; {
		case p.is("function") || p.is("async") && p.at(1) == "function":
			p.accept("async")
			p.function(begin, true)
		case p.is("class", "@") || p.is("abstract") && p.at(1) == "class":
			p.decorators()
			p.accept("abstract")
			p.class()
		case p.typed && p.is("interface"):
			p.one()
		default:
			p.expression()
			p.endStatement()
		}
	case p.is("{", "*") || p.typed && p.is("type") && (p.at(1) == "{" || p.at(1) == "*"):
		p.loose()
	case p.typed && p.accept("="):
		p.given("exports", p.assign)
		p.endStatement()
	case p.typed && p.is("as"):
		p.loose()
	default:
		p.one()
	}
}

// loose skips a statement without functions: an import, an export of names, a declaration of types.
func (p *jsParser) loose() {
	for first := true; p.i < p.end; first = false {
		if !first && p.ts[p.i].line && !p.is("from", "{", "}", "=", ",", "*", "as") && !slices.Contains([]string{",", "from", "=", "import", "*", "as"}, p.ts[p.i-1].text) {
			return
		}
		if p.accept(";") {
			return
		}
		p.pass()
	}
}

// declarations reads the declarations after const, let and var.
func (p *jsParser) declarations() {
	for {
		name := ""
		if p.is("{", "[") {
			p.pass()
		} else {
			name = p.word()
		}
		if p.typed {
			p.accept("!")
		}
		p.annotation()
		if p.accept("=") {
			p.given(name, p.assign)
		}
		if !p.accept(",") {
			break
		}
	}
	p.endStatement()
}

// typeStatement reads a statement that only TypeScript has, if one is next.
func (p *jsParser) typeStatement() bool {
	next := p.at(1)
	if !isWord(next) && next != "" || p.newline(1) || next == "in" || next == "instanceof" {
		return false
	}
	switch p.at(0) {
	case "abstract":
		if next != "class" {
			return false
		}
		p.i++
		p.class()
	case "type":
		p.i += 2
		p.generics()
		p.expect("=")
		p.typ()
		p.endStatement()
	case "interface":
		p.i += 2
		p.generics()
		if p.accept("extends") {
			for p.typ(); p.accept(","); {
				p.typ()
			}
		}
		p.skip("{")
	case "const", "enum":
		p.accept("const")
		p.expect("enum")
		p.word()
		p.skip("{")
	case "namespace", "module":
		for p.i++; !p.is("{"); p.i++ {
			if p.i >= p.end || p.newline(0) {
				p.unsure()
			}
		}
		p.within("{", p.statements)
	case "declare":
		p.loose()
	default:
		return false
	}
	return true
}

// control reads a statement with a keyword of its own, or an expression.
func (p *jsParser) control(word string) {
	switch word {
	case "if", "while", "with":
		p.i++
		p.within("(", p.expression)
		p.statement()
		if word == "if" && p.accept("else") {
			p.statement()
		}
	case "for":
		p.i++
		p.accept("await")
		p.skip("(")
		p.statement()
	case "do":
		p.i++
		p.statement()
		p.expect("while")
		p.within("(", p.expression)
		p.accept(";")
	case "switch":
		p.i++
		p.within("(", p.expression)
		p.within("{", p.cases)
	case "try":
		p.i++
		p.within("{", p.statements)
		if p.accept("catch") {
			if p.is("(") {
				p.skip("(")
			}
			p.within("{", p.statements)
		}
		if p.accept("finally") {
			p.within("{", p.statements)
		}
	case "return", "throw":
		p.i++
		if !p.newline(0) && !p.is(";") {
			p.expression()
		}
		p.endStatement()
	case "break", "continue", "debugger":
		p.i++
		if !p.newline(0) && !p.is(";") {
			p.word()
		}
		p.endStatement()
	default:
		p.expression()
		p.endStatement()
	}
}

// cases reads the body of a switch.
func (p *jsParser) cases() {
	for p.i < p.end {
		switch {
		case p.accept("case"):
			p.expression()
			p.expect(":")
		case p.is("default") && p.at(1) == ":":
			p.i += 2
		default:
			p.statement()
		}
	}
}
