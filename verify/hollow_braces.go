package verify

import (
	"bytes"
	"slices"
	"strings"
)

// jsToken is one piece of JavaScript or TypeScript: a word, a number, a literal, or one character of punctuation ("=>" is one).
type jsToken struct {
	text     string // "" for a string, a template or a regular expression
	from, to int
	pair     int // the index of the bracket that belongs to this one, or -1
}

// braceFunctions finds the functions of JavaScript and TypeScript whose body is a block.
func braceFunctions(src []byte) ([]function, bool) {
	ts, ok := jsTokens(src)
	if !ok {
		return nil, false
	}
	starts := lineStarts(src)
	var fs []function
	for i, t := range ts {
		if t.text != "{" || t.pair < i {
			continue
		}
		begin, name, ok := jsHeader(ts, i)
		if !ok {
			continue
		}
		body := src[t.from:ts[t.pair].to]
		if name == "constructor" && bytes.Contains(body, []byte("super(")) {
			continue // without super() the object cannot be made
		}
		f := function{name: name, from: t.from, to: ts[t.pair].to, head: strings.Join(strings.Fields(string(src[ts[begin].from:t.from])), " ")}
		f.first, f.last = lineOf(starts, ts[begin].from), lineOf(starts, f.to-1)
		f.nothing = []edit{{f.from, f.to, "{}"}}
		fs = append(fs, f)
	}
	return fs, true
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

func lineOf(starts []int, at int) int {
	i, found := slices.BinarySearch(starts, at)
	if found {
		return i + 1
	}
	return i
}

// jsControl are words before a parenthesis that begin a statement and no function.
var jsControl = []string{"if", "for", "while", "switch", "catch", "with", "return", "await", "typeof", "new", "of", "in"}

// jsHeader looks whether the brace at i opens the body of a function. begin is the token at which its signature begins.
func jsHeader(ts []jsToken, i int) (begin int, name string, ok bool) {
	j := i - 1
	if j < 0 {
		return 0, "", false
	}
	if ts[j].text == "=>" {
		return jsArrow(ts, j)
	}
	if ts[j].text != ")" {
		if j = jsReturnType(ts, j); j < 0 {
			return 0, "", false
		}
		if ts[j].text == "=>" {
			return 0, "", false
		}
	}
	open := ts[j].pair
	if open <= 0 {
		return 0, "", false
	}
	k := open - 1
	if ts[k].text == ">" { // type parameters
		for depth := 0; k > 0; k-- {
			if ts[k].text == ">" {
				depth++
			} else if ts[k].text == "<" {
				if depth--; depth == 0 {
					k--
					break
				}
			}
		}
	}
	if k < 0 {
		return 0, "", false
	}
	switch word := ts[k].text; {
	case word == "function" || word == "*":
		return k, jsNamed(ts, k), true
	case word == "]" && ts[k].pair >= 0: // [Symbol.iterator]() {}
		return ts[k].pair, "[…]", true
	case isWord(word) && !slices.Contains(jsControl, word):
		return k, word, true
	}
	return 0, "", false
}

// jsArrow reads the head of an arrow function whose arrow is at j.
func jsArrow(ts []jsToken, j int) (int, string, bool) {
	k := j - 1
	if k < 0 {
		return 0, "", false
	}
	if ts[k].text != ")" {
		if typed := jsReturnType(ts, k); typed >= 0 {
			k = typed
		}
	}
	if ts[k].text == ")" && ts[k].pair >= 0 {
		k = ts[k].pair
	} else if !isWord(ts[k].text) {
		return 0, "", false
	}
	return k, jsNamed(ts, k), true
}

// jsNamed finds the name to which a function expression that begins at k is given, if there is one.
func jsNamed(ts []jsToken, k int) string {
	for k--; k > 0; k-- {
		switch ts[k].text {
		case "async", "function":
			continue
		case "=", ":":
			if isWord(ts[k-1].text) {
				return ts[k-1].text
			}
		}
		break
	}
	return "a function"
}

// jsReturnType goes back from the last token of a return type to the parenthesis before its colon, or returns -1.
func jsReturnType(ts []jsToken, j int) int {
	for n := 0; j > 0 && n < 60; n++ {
		switch t := ts[j]; {
		case t.text == ":" && ts[j-1].text == ")" && n > 0:
			return j - 1
		case (t.text == "}" || t.text == "]" || t.text == ")") && t.pair >= 0:
			j = t.pair
		case t.text == "" || isWord(t.text) && t.text != "case" && t.text != "return" && t.text != "class" || len(t.text) == 1 && strings.Contains("<>,.|&[]?", t.text):
		default:
			return -1
		}
		j--
	}
	return -1
}

func isWord(s string) bool {
	return s != "" && (s[0] == '_' || s[0] == '$' || s[0] == '#' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z' || s[0] >= 0x80)
}

// jsTokens splits a file. ok is false if a bracket or a literal is not closed.
func jsTokens(src []byte) ([]jsToken, bool) {
	var ts []jsToken
	var open []int
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c <= ' ':
			i++
		case bytes.HasPrefix(src[i:], []byte("//")) || i == 0 && bytes.HasPrefix(src, []byte("#!")):
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case bytes.HasPrefix(src[i:], []byte("/*")):
			end := bytes.Index(src[i+2:], []byte("*/"))
			if end < 0 {
				return nil, false
			}
			i += end + 4
		case c == '"' || c == '\'' || c == '`' || c == '/' && regexpMayStand(ts):
			end := jsLiteral(src, i)
			if end < 0 {
				return nil, false
			}
			ts = append(ts, jsToken{"", i, end, -1})
			i = end
		case isWord(string(c)) || c >= '0' && c <= '9':
			end := i + 1
			for end < len(src) && (isWord(string(src[end])) || src[end] >= '0' && src[end] <= '9') {
				end++
			}
			ts = append(ts, jsToken{string(src[i:end]), i, end, -1})
			i = end
		case bytes.HasPrefix(src[i:], []byte("=>")):
			ts = append(ts, jsToken{"=>", i, i + 2, -1})
			i += 2
		default:
			t := jsToken{string(c), i, i + 1, -1}
			switch c {
			case '(', '[', '{':
				open = append(open, len(ts))
			case ')', ']', '}':
				if len(open) == 0 {
					return nil, false
				}
				o := open[len(open)-1]
				open = open[:len(open)-1]
				if strings.IndexByte("([{", ts[o].text[0]) != strings.IndexByte(")]}", c) {
					return nil, false
				}
				t.pair, ts[o].pair = o, len(ts)
			}
			ts = append(ts, t)
			i++
		}
	}
	return ts, len(open) == 0
}

// regexpMayStand reports whether a slash behind these tokens begins a regular expression and is no division.
func regexpMayStand(ts []jsToken) bool {
	if len(ts) == 0 {
		return true
	}
	switch last := ts[len(ts)-1]; {
	case last.text == "":
		return false
	case last.text == ")" && last.pair > 0:
		return slices.Contains([]string{"if", "while", "for", "with"}, ts[last.pair-1].text)
	case last.text == "]" || last.text == "}" || last.text == "<" || last.text[0] >= '0' && last.text[0] <= '9':
		return false
	case isWord(last.text):
		return slices.Contains([]string{"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield"}, last.text)
	}
	return true
}

// jsLiteral returns the end of the string, template or regular expression that begins at i, or -1.
func jsLiteral(src []byte, i int) int {
	quote, class := src[i], false
	for j := i + 1; j < len(src); j++ {
		switch c := src[j]; {
		case c == '\\':
			j++
		case quote == '`' && c == '$' && j+1 < len(src) && src[j+1] == '{':
			if j = jsHole(src, j+2); j < 0 {
				return -1
			}
		case quote != '`' && c == '\n':
			return -1
		case quote == '/' && c == '[':
			class = true
		case quote == '/' && c == ']':
			class = false
		case c == quote && !class:
			return j + 1
		}
	}
	return -1
}

// jsHole returns the brace that closes the expression in a template that begins at i, or -1.
func jsHole(src []byte, i int) int {
	depth := 0
	for j := i; j < len(src); j++ {
		switch c := src[j]; c {
		case '"', '\'', '`':
			end := jsLiteral(src, j)
			if end < 0 {
				return -1
			}
			j = end - 1
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return j
			}
			depth--
		}
	}
	return -1
}
