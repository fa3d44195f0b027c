package scripted

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wanted is a text to look for: a substring or a regular expression.
type wanted struct {
	plain string
	re    *regexp.Regexp
}

// newWanted parses a text or a /regular expression/.
func newWanted(s string) (wanted, error) {
	if len(s) > 2 && s[0] == '/' && s[len(s)-1] == '/' {
		re, err := regexp.Compile(s[1 : len(s)-1])
		return wanted{plain: s, re: re}, err
	}
	return wanted{plain: s}, nil
}

func (w wanted) in(s string) bool {
	if w.re != nil {
		return w.re.MatchString(s)
	}
	return strings.Contains(s, w.plain)
}

// matchTexts returns a matcher that finds every text in one of the places listed by where.
func matchTexts(key string, texts []string, where func(*Request) []string) (matcher, error) {
	all := make([]wanted, len(texts))
	for i, t := range texts {
		w, err := newWanted(t)
		if err != nil {
			return matcher{}, err
		}
		all[i] = w
	}
	return matcher{says: fmt.Sprintf("%s %q", key, texts), holds: func(r *Request) bool {
		places := where(r)
		for _, w := range all {
			if !slices.ContainsFunc(places, w.in) {
				return false
			}
		}
		return true
	}}, nil
}

func first(r *Request) []string   { return []string{r.First()} }
func last(r *Request) []string    { return []string{r.Last()} }
func results(r *Request) []string { return r.Results() }

// anywhere lists the texts of all messages and the arguments of all calls.
func anywhere(r *Request) []string {
	var out []string
	for _, m := range r.Messages() {
		out = append(out, m.Text)
		for _, c := range m.Calls {
			out = append(out, c.Arguments)
		}
	}
	return out
}

// matchAgent looks for an expression in the first line of the system prompt, ignoring case.
func matchAgent(expr string) (matcher, error) {
	re, err := regexp.Compile("(?i)" + expr)
	if err != nil {
		return matcher{}, err
	}
	return matcher{says: fmt.Sprintf("agent %q", expr), holds: func(r *Request) bool {
		line, _, _ := strings.Cut(r.System(), "\n")
		return re.MatchString(line)
	}}, nil
}

// matchItem looks for a whole word in the first user message: T1 is not found in T12, T1.2 or AT1.
func matchItem(id string) matcher {
	return matcher{says: fmt.Sprintf("item %q", id), holds: func(r *Request) bool { return hasWord(r.First(), id) }}
}

func hasWord(s, word string) bool {
	for from := 0; word != ""; {
		i := strings.Index(s[from:], word)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, size := utf8.DecodeRuneInString(s[i+len(word):])
		next, _ := utf8.DecodeRuneInString(s[i+len(word)+size:])
		if !wordy(before) && before != '.' && !wordy(after) && !(after == '.' && wordy(next)) {
			return true
		}
		from = i + len(word)
	}
	return false
}

func wordy(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// matchSession accepts the number of the session or its exact name.
func matchSession(s string) matcher {
	says := "session " + s
	if n, err := strconv.Atoi(s); err == nil {
		return matcher{says, func(r *Request) bool { return r.Nth == n }}
	}
	return matcher{says, func(r *Request) bool { return r.Session == s }}
}

func matchNumber(key string, n int, of func(*Request) int) matcher {
	return matcher{fmt.Sprintf("%s %d", key, n), func(r *Request) bool { return of(r) == n }}
}

func matchRoot(root bool) matcher {
	return matcher{fmt.Sprintf("root %t", root), func(r *Request) bool { return (r.Parent == "") == root }}
}

func matchTool(name string) matcher {
	return matcher{"has_tool " + name, func(r *Request) bool { return slices.Contains(r.Tools(), name) }}
}

func matchModel(name string) matcher {
	return matcher{"model " + name, func(r *Request) bool { return r.Model == name }}
}
