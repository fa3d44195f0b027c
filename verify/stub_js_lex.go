package verify

import (
	"bytes"
	"slices"
	"strings"
)

// jsToken is one piece of JavaScript or TypeScript: a word, a number, a literal, or an operator. Operators that begin with ">" are split into
// characters, because two of them may close two lists of types; "=>" is not.
type jsToken struct {
	text     string // "" for a string, a template, a regular expression, or a JSX element
	from, to int
	pair     int  // the index of the matching bracket, or -1
	line     bool // it is the first of its line
}

// jsOperators are the operators of several characters, longest first.
var jsOperators = []string{"===", "!==", "**=", "<<=", "&&=", "||=", "??=", "...", "=>", "==", "!=", "<=", "<<", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "&&", "||", "??", "?.", "++", "--"}

// jsLexer splits a file. jsx and typed say which dialect it may be in.
type jsLexer struct {
	src        []byte
	jsx, typed bool
	budget     int // remaining pieces in braces and JSX elements, which limits the cost of a hostile file
}

const (
	// maxNested limits the pieces of code within templates and JSX elements, and the elements themselves. Written code has a few hundred in a thousand
	// lines.
	maxNested = 20_000
	// lookedLikeElement is the cost of a "<" that began no element, since the text after it was read in vain.
	lookedLikeElement = 20
)

// maxDeep limits the nesting of brackets and expressions. Hand-written code never comes close.
const maxDeep = 400

// begin counts a nested piece of code or element, and reports whether it may be read. If not, the whole file is rejected.
func (x *jsLexer) begin(deep int) bool {
	if x.budget--; deep > maxDeep {
		x.budget = 0
	}
	return x.budget > 0
}

// code reads tokens from i to the end of the file, or, with inner, to the brace that closes the one before i. end is after the last token, or at that
// brace; ok is false if a bracket or a literal is not closed.
func (x *jsLexer) code(i int, inner bool, deep int) (ts []jsToken, end int, ok bool) {
	if !x.begin(deep) {
		return nil, 0, false
	}
	var open []int
	line := true
	for i < len(x.src) {
		next, newline := jsSpace(x.src, i)
		if next < 0 {
			return nil, 0, false
		}
		if line = line || newline; next > i {
			i = next
			continue
		}
		if inner && x.src[i] == '}' && len(open) == 0 {
			return ts, i, true
		}
		t := jsToken{from: i, pair: -1, line: line}
		line = false
		if t.text, t.to = x.token(ts, i, deep); t.to < 0 || x.budget <= 0 {
			return nil, 0, false
		}
		switch t.text {
		case "(", "[", "{":
			open = append(open, len(ts))
		case ")", "]", "}":
			if len(open) == 0 {
				return nil, 0, false
			}
			o := open[len(open)-1]
			open = open[:len(open)-1]
			if strings.Index("([{", ts[o].text) != strings.Index(")]}", t.text) {
				return nil, 0, false
			}
			t.pair, ts[o].pair = o, len(ts)
		}
		ts = append(ts, t)
		i = t.to
	}
	return ts, i, len(open) == 0 && !inner
}

// jsSpace skips one blank, or one comment. It returns i if there is none, and -1 if a comment is not closed.
func jsSpace(src []byte, i int) (end int, newline bool) {
	switch c := src[i]; {
	case c <= ' ':
		return i + 1, c == '\n' || c == '\r'
	case bytes.HasPrefix(src[i:], []byte("//")) || i == 0 && bytes.HasPrefix(src, []byte("#!")):
		for i < len(src) && src[i] != '\n' {
			i++
		}
		return i, false
	case bytes.HasPrefix(src[i:], []byte("/*")):
		n := bytes.Index(src[i+2:], []byte("*/"))
		if n < 0 {
			return -1, false
		}
		end = i + 2 + n + 2
		return end, bytes.IndexByte(src[i:end], '\n') >= 0
	case bytes.HasPrefix(src[i:], []byte("\ufeff")):
		return i + 3, false
	}
	return i, false
}

// token reads the token at i after ts. end is -1 if it is not closed.
func (x *jsLexer) token(ts []jsToken, i, deep int) (text string, end int) {
	c := x.src[i]
	switch {
	case c == '"' || c == '\'' || c == '/' && jsOperandNext(x.src, ts):
		return "", jsQuoted(x.src, i)
	case c == '`':
		return "", x.template(i, deep)
	case jsDigit(c) || c == '.' && i+1 < len(x.src) && jsDigit(x.src[i+1]):
		for end = i + 1; end < len(x.src) && (jsWordByte(x.src[end]) || x.src[end] == '.'); end++ {
		}
		return string(x.src[i:end]), end
	case jsWordByte(c) || c == '#':
		for end = i + 1; end < len(x.src) && jsWordByte(x.src[end]); end++ {
		}
		return string(x.src[i:end]), end
	case c == '<' && x.jsx && jsOperandNext(x.src, ts):
		if end = x.element(i, deep+1); end >= 0 {
			return "", end
		}
		x.budget -= lookedLikeElement
		return "<", i + 1
	}
	for _, op := range jsOperators {
		if !bytes.HasPrefix(x.src[i:], []byte(op)) {
			continue
		}
		if op == "?." && i+2 < len(x.src) && jsDigit(x.src[i+2]) { // a ?.5 : 1
			continue
		}
		return op, i + len(op)
	}
	return string(x.src[i : i+1]), i + 1
}

func jsDigit(c byte) bool { return c >= '0' && c <= '9' }

func jsWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || jsDigit(c)
}

// isWord reports whether a token is a name or a keyword.
func isWord(s string) bool {
	return s != "" && !jsDigit(s[0]) && (jsWordByte(s[0]) || s[0] == '#' && len(s) > 1)
}

// jsBeforeOperand are the keywords that may precede an expression.
var jsBeforeOperand = []string{"return", "typeof", "case", "in", "of", "instanceof", "delete", "void", "throw", "new", "else", "do", "await", "yield", "default", "extends"}

// jsOperandNext reports whether an operand may follow these tokens: then a slash begins a regular expression instead of being a division.
func jsOperandNext(src []byte, ts []jsToken) bool {
	n := len(ts)
	if n == 0 {
		return true
	}
	switch last := ts[n-1]; {
	case last.text == "" || last.text == "]" || last.text == "++" || last.text == "--" || jsDigit(last.text[0]):
		return false
	case last.text == ")":
		return last.pair > 0 && slices.Contains([]string{"if", "while", "for", "with"}, ts[last.pair-1].text)
	case last.text == "}":
		return jsBlock(ts, last.pair)
	case last.text == "!": // a! / b
		return n == 1 || ts[n-2].to != last.from || jsOperandNext(src, ts[:n-1])
	case isWord(last.text):
		return slices.Contains(jsBeforeOperand, last.text) && (n == 1 || ts[n-2].text != "." && ts[n-2].text != "?.")
	}
	return true
}

// jsBlock reports whether the brace at i opens a block of statements instead of an object.
func jsBlock(ts []jsToken, i int) bool {
	return i == 0 || slices.Contains([]string{")", ";", "{", "}", "=>", "else", "do", "try", "finally"}, ts[i-1].text)
}

// jsQuoted returns the end of the string or regular expression that begins at i, or -1.
func jsQuoted(src []byte, i int) int {
	quote, class := src[i], false
	for j := i + 1; j < len(src); j++ {
		switch c := src[j]; {
		case c == '\\':
			j++
		case c == '\n':
			return -1
		case quote == '/' && c == '[':
			class = true
		case quote == '/' && c == ']':
			class = false
		case c == quote && !class:
			for j++; quote == '/' && j < len(src) && jsWordByte(src[j]); j++ { // flags
			}
			return j
		}
	}
	return -1
}

// template returns the end of the template that begins at i, or -1.
func (x *jsLexer) template(i, deep int) int {
	for j := i + 1; j < len(x.src); j++ {
		switch c := x.src[j]; {
		case c == '\\':
			j++
		case c == '`':
			return j + 1
		case c == '$' && j+1 < len(x.src) && x.src[j+1] == '{':
			_, end, ok := x.code(j+2, true, deep+1)
			if !ok {
				return -1
			}
			j = end
		}
	}
	return -1
}

// element returns the end of the JSX element or fragment that begins at i, or -1 if there is none.
func (x *jsLexer) element(i, deep int) int {
	if !x.begin(deep) {
		return -1
	}
	name, i := x.tagName(i + 1)
	if name == "" && (i >= len(x.src) || x.src[i] != '>') {
		return -1
	}
	if rest := bytes.TrimLeft(x.src[i:], " \t\r\n"); x.typed && (bytes.HasPrefix(rest, []byte(",")) || bytes.HasPrefix(rest, []byte("extends "))) { // <T,>(x: T) => x
		return -1
	}
	i, alone := x.attributes(x.tagTypes(i), deep)
	if i < 0 || alone {
		return i
	}
	for i < len(x.src) {
		switch x.src[i] {
		case '{':
			_, end, ok := x.code(i+1, true, deep+1)
			if !ok {
				return -1
			}
			i = end + 1
		case '<':
			if !bytes.HasPrefix(x.src[i:], []byte("</")) {
				if i = x.element(i, deep+1); i < 0 {
					return -1
				}
				continue
			}
			closing, end := x.tagName(i + 2)
			if end = x.blank(end); end < 0 || end >= len(x.src) || closing != name || x.src[end] != '>' {
				return -1
			}
			return end + 1
		case '}', '>': // not allowed in text
			return -1
		default:
			i++
		}
	}
	return -1
}

// tagTypes skips the type arguments of a tag, as in <Select<string> …>.
func (x *jsLexer) tagTypes(i int) int {
	if !x.typed || i >= len(x.src) || x.src[i] != '<' {
		return i
	}
	depth := 0
	for j := i; j < len(x.src); j++ {
		switch c := x.src[j]; {
		case c == '<':
			depth++
		case c == '>' && x.src[j-1] != '=':
			if depth--; depth == 0 {
				return j + 1
			}
		case c == '"' || c == '\'':
			if j = jsQuoted(x.src, j) - 1; j < 0 {
				return i
			}
		}
	}
	return i
}

// tagName reads the name of an element or an attribute.
func (x *jsLexer) tagName(i int) (string, int) {
	from := i
	for i < len(x.src) && (jsWordByte(x.src[i]) || i > from && strings.IndexByte(".:-", x.src[i]) >= 0) {
		i++
	}
	return string(x.src[from:i]), i
}

// blank skips blanks and comments. It returns -1 if a comment is not closed.
func (x *jsLexer) blank(i int) int {
	for i < len(x.src) {
		next, _ := jsSpace(x.src, i)
		if next == i || next < 0 {
			return next
		}
		i = next
	}
	return i
}

// attributes reads a tag after its name. end is after its closing bracket, or -1; alone is set if no closing tag follows.
func (x *jsLexer) attributes(i, deep int) (end int, alone bool) {
	for {
		if i = x.blank(i); i < 0 || i >= len(x.src) {
			return -1, false
		}
		switch c := x.src[i]; {
		case c == '>':
			return i + 1, false
		case bytes.HasPrefix(x.src[i:], []byte("/>")):
			return i + 2, true
		case c == '{':
			_, end, ok := x.code(i+1, true, deep+1)
			if !ok {
				return -1, false
			}
			i = end + 1
		case c == '=':
			if i = x.blank(i + 1); i < 0 || i >= len(x.src) {
				return -1, false
			}
			switch c := x.src[i]; c {
			case '"', '\'':
				n := bytes.IndexByte(x.src[i+1:], c)
				if n < 0 {
					return -1, false
				}
				i += n + 2
			case '<':
				if i = x.element(i, deep+1); i < 0 {
					return -1, false
				}
			case '{': // the next iteration reads it
			default:
				return -1, false
			}
		default:
			name, next := x.tagName(i)
			if name == "" {
				return -1, false
			}
			i = next
		}
	}
}
