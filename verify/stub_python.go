package verify

import (
	"bytes"
	"centurion"
	"strings"
)

// pyHeader is the first line of a function or a class.
var pyHeader = centurion.Pattern(`^[ \t]*(class|(?:async[ \t]+)?def)[ \t]+(\w+)`)

// pyYield is a statement that makes a function a generator.
var pyYield = centurion.Pattern(`\byield\b`)

// pythonFunctions finds the functions of a Python file by indentation. Decorators and docstrings stay.
func pythonFunctions(src []byte) ([]function, bool) {
	ls := pythonLines(src)
	var fs []function
	type scope struct {
		indent int
		prefix string // of the names in it
	}
	around := []scope{{-1, ""}}
	for i, l := range ls {
		text := string(src[l.from:l.to])
		indent := len(text) - len(strings.TrimLeft(text, " \t"))
		if strings.TrimSpace(text) == "" || strings.HasPrefix(strings.TrimSpace(text), "#") {
			continue
		}
		for around[len(around)-1].indent >= indent {
			around = around[:len(around)-1]
		}
		m := pyHeader().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		name := around[len(around)-1].prefix + m[2]
		around = append(around, scope{indent, name + "."})
		if f, ok := pythonFunction(src, ls[i:], indent); ok && m[1] != "class" {
			f.name = name
			fs = append(fs, f)
		}
	}
	return fs, true
}

// pyLine is a logical line: one statement, whose strings and brackets may span several lines of the file.
type pyLine struct {
	from, to int // without the line feed at its end
	colon    int // behind the colon that ends a header, or 0
	line     int // of the file, from 1
}

// pythonLines splits a file into logical lines.
func pythonLines(src []byte) []pyLine {
	var ls []pyLine
	cur, line, depth := pyLine{line: 1}, 1, 0
	lambda := false
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case c == '"' || c == '\'':
			end := pythonString(src, i)
			line += bytes.Count(src[i:end], []byte("\n"))
			i = end
			continue
		case c == '\\' && i+1 < len(src) && src[i+1] == '\n':
			line++
			i++
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth = max(0, depth-1)
		case c == 'l' && bytes.HasPrefix(src[i:], []byte("lambda")) && depth == 0:
			lambda = true
		case c == ':' && depth == 0 && lambda:
			lambda = false
		case c == ':' && depth == 0 && cur.colon == 0:
			cur.colon = i + 1
		case c == '\n':
			line++
			if depth == 0 {
				cur.to = i
				ls = append(ls, cur)
				cur, lambda = pyLine{from: i + 1, line: line}, false
			}
		}
		i++
	}
	if cur.from < len(src) {
		cur.to = len(src)
		ls = append(ls, cur)
	}
	return ls
}

// pythonString returns the end of the string literal that begins at i.
func pythonString(src []byte, i int) int {
	q := src[i : i+1]
	if bytes.HasPrefix(src[i:], bytes.Repeat(q, 3)) {
		for j := i + 3; j < len(src); j++ {
			if src[j] == '\\' {
				j++
			} else if bytes.HasPrefix(src[j:], bytes.Repeat(q, 3)) {
				return j + 3
			}
		}
		return len(src)
	}
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '\\':
			j++
		case q[0]:
			return j + 1
		case '\n':
			return j // it is not closed
		}
	}
	return len(src)
}

// pythonFunction reads the function whose header is ls[0].
func pythonFunction(src []byte, ls []pyLine, indent int) (function, bool) {
	head := ls[0]
	if head.colon == 0 {
		return function{}, false
	}
	f := function{from: head.colon, to: head.to, first: head.line}
	f.head = strings.Join(strings.Fields(string(src[head.from:head.colon])), " ")
	f.last = head.line + bytes.Count(src[head.from:head.to], []byte("\n"))
	if rest := strings.TrimSpace(string(src[head.colon:head.to])); rest != "" && rest[0] != '#' { // all on one line
		f.stub = []edit{{f.from, f.to, " return None"}}
		return f, true
	}
	inner, doc := "", ""
	for i, l := range ls[1:] {
		text := string(src[l.from:l.to])
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		lead := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if len(lead) <= indent {
			break
		}
		if inner == "" {
			inner = lead
			if isDocstring(trimmed) {
				doc = "\n" + string(src[ls[i+1].from:l.to])
			}
		}
		f.to, f.last = l.to, l.line+bytes.Count(src[l.from:l.to], []byte("\n"))
	}
	if inner == "" {
		return function{}, false
	}
	empty := "\n" + inner + "return None"
	if pyYield().Match(src[f.from:f.to]) {
		empty = "\n" + inner + "return\n" + inner + "yield"
	}
	f.stub = []edit{{f.from, f.to, doc + empty}}
	return f, true
}

// isDocstring reports whether a statement is a string and nothing else.
func isDocstring(s string) bool {
	s = strings.TrimLeft(s, "rRuU")
	return s != "" && (s[0] == '"' || s[0] == '\'') && pythonString([]byte(s), 0) == len(s)
}
