package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/jsonc"

	"centurion"
	"centurion/trust"
)

// maxDepth limits the nesting of a configuration file. Real ones stay below ten; the limit keeps a hostile file from exhausting the
// stack.
const maxDepth = 100

// source is a file with configuration.
type source struct {
	path    string // absolute; empty for text from the environment
	name    string // for display: relative to the project, or with ~
	project bool   // in the project: it came with the repository, or an agent wrote it
	trusted bool   // a person has trusted its content
	sum     string // of its content; see [loader.file]
	items   []trust.Item
}

// foreign reports whether the file is in the project and not trusted: what runs something or widens what agents may do does not count.
func (s *source) foreign() bool { return s.project && !s.trusted }

// withholds reports whether something in the file does not count because the file is not trusted, and notes it for the person.
func (s *source) withholds(line int, kind trust.Kind, format string, args ...any) bool {
	if !s.foreign() {
		return false
	}
	if i := (trust.Item{Line: line, Kind: kind, Text: fmt.Sprintf(format, args...)}); !slices.Contains(s.items, i) {
		s.items = append(s.items, i)
	}
	return true
}

// at returns a configuration error that names the file and the line.
func (s *source) at(line int, format string, args ...any) *centurion.Error {
	return s.fault(line, "", format, args...)
}

// fault is [source.at] with a hint.
func (s *source) fault(line int, hint, format string, args ...any) *centurion.Error {
	return configError(fmt.Sprintf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...)), hint)
}

type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// String returns the kind with its article, for error messages.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "a string", "an array", "an object"}[k]
}

// node is a JSON value with its position, so that faults found after merging still name the right file and line, and that values of the
// project can be distinguished from the person's own.
type node struct {
	src     *source
	line    int // counted from 1
	from    int // where it begins in the file, in bytes
	to      int // and ends
	kind    kind
	text    string // of a string, and of a number as written
	yes     bool
	members []member // of an object, in the file's order, keys unique
	elems   []*node

	raw     string // of a string: as written, before substitution
	missing string // of a string: the first environment variable it names that is not set
}

type member struct {
	key   string
	line  int
	value *node
}

// all yields a node and everything below it. It may be called on nil.
func (n *node) all(yield func(*node) bool) {
	if n != nil {
		n.walk(yield)
	}
}

func (n *node) walk(yield func(*node) bool) bool {
	for _, e := range n.elems {
		if !e.walk(yield) {
			return false
		}
	}
	for _, m := range n.members {
		if !m.value.walk(yield) {
			return false
		}
	}
	return yield(n)
}

// get returns the value of a key, or nil. It may be called on nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// set adds a member or replaces the value of the one with its key.
func (n *node) set(m member) {
	for i := range n.members {
		if n.members[i].key == m.key {
			n.members[i] = m
			return
		}
	}
	n.members = append(n.members, m)
}

// mismatch is the error for a value of the wrong type or range.
func (n *node) mismatch(key, want string) error {
	got := n.kind.String()
	switch n.kind {
	case kindBool:
		got = fmt.Sprint(n.yes)
	case kindNumber:
		got = n.text
	}
	return n.src.fault(n.line, "correct the value in "+n.src.name, "%q must be %s, not %s", key, want, got)
}

// MarshalJSON writes the value with its keys in order.
func (n *node) MarshalJSON() ([]byte, error) {
	switch n.kind {
	case kindNull:
		return []byte("null"), nil
	case kindBool:
		return json.Marshal(n.yes)
	case kindNumber:
		return []byte(n.text), nil
	case kindString:
		return json.Marshal(n.text)
	}
	if n.kind == kindArray {
		return json.Marshal(append([]*node{}, n.elems...))
	}
	b := []byte("{")
	for i, m := range n.members {
		k, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		v, err := m.value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), nil
}

// rawJSON returns the value as JSON with its keys in order, or nil.
func (n *node) rawJSON() json.RawMessage {
	if n == nil {
		return nil
	}
	b, err := n.MarshalJSON()
	if err != nil {
		return nil // impossible: every node was parsed from JSON or YAML
	}
	return b
}

// merge lays over upon base: objects key by key, everything else replaced. Neither argument is changed.
func merge(base, over *node) *node {
	switch {
	case base == nil:
		return over
	case over == nil, over.kind == kindNull: // as if it were missing: null in a project's file must not lift a limit of the person's
		return base
	}
	if base.kind != kindObject || over.kind != kindObject {
		return over
	}
	out := &node{src: over.src, line: over.line, kind: kindObject}
	out.members = append(out.members, base.members...)
	for _, m := range over.members {
		m.value = merge(base.get(m.key), m.value)
		out.set(m)
	}
	return out
}

// parseJSONC parses JSON with comments and trailing commas. The result is always an object; a text without any value is an empty one,
// as in OpenCode.
func parseJSONC(src *source, text []byte) (*node, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) {
		return nil, src.fault(1, "save it as UTF-8", "the file is not UTF-8")
	}
	// The conversion keeps every offset, so line numbers in its result are those of the file.
	p := parser{src: src, text: jsonc.ToJSON(text), line: 1}
	p.dec = json.NewDecoder(bytes.NewReader(p.text))
	p.dec.UseNumber()
	tok, err := p.next()
	if errors.Is(err, io.EOF) {
		return &node{src: src, line: 1, kind: kindObject}, nil
	}
	if err != nil {
		return nil, err
	}
	n, err := p.value(tok, 0)
	if err != nil {
		return nil, err
	}
	if n.kind != kindObject {
		return nil, src.at(n.line, "the file must hold an object { … }, not %s", n.kind)
	}
	switch _, err := p.next(); {
	case err == nil:
		return nil, src.at(p.line, "there is text after the closing }")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return n, nil
}

type parser struct {
	src  *source
	text []byte
	dec  *json.Decoder
	from int // of the token that was read last
	pos  int // offset up to which lines were counted
	line int
}

// next returns the next token and sets line to its end, which for JSON is its position.
func (p *parser) next() (json.Token, error) {
	for p.from = p.pos; p.from < len(p.text) && bytes.IndexByte([]byte(" \t\r\n,:"), p.text[p.from]) >= 0; {
		p.from++
	}
	tok, err := p.dec.Token()
	end := min(int(p.dec.InputOffset()), len(p.text))
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		end = min(max(end, int(se.Offset)), len(p.text))
	}
	if end > p.pos {
		p.line += bytes.Count(p.text[p.pos:end], []byte("\n"))
		p.pos = end
	}
	if err == nil || errors.Is(err, io.EOF) {
		return tok, err
	}
	msg := strings.TrimPrefix(err.Error(), "json: ")
	if errors.Is(err, io.ErrUnexpectedEOF) {
		msg = "the file ends too early: a closing } or ] or quote is missing"
	}
	return nil, p.syntax(msg)
}

func (p *parser) syntax(msg string) error {
	return p.src.fault(p.line, "check the commas, quotes and braces around that line", "not valid JSON: %s", msg)
}

func (p *parser) value(tok json.Token, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, p.src.at(p.line, "values are nested deeper than %d levels", maxDepth)
	}
	n := &node{src: p.src, line: p.line, from: p.from, to: p.pos}
	switch v := tok.(type) {
	case nil:
	case bool:
		n.kind, n.yes = kindBool, v
	case json.Number:
		n.kind, n.text = kindNumber, v.String()
	case string:
		n.kind, n.text, n.raw = kindString, v, v
	case json.Delim:
		return n, p.compound(n, v, depth)
	}
	return n, nil
}

// compound reads the rest of an array or object.
func (p *parser) compound(n *node, open json.Delim, depth int) error {
	n.kind = kindArray
	if open == '{' {
		n.kind = kindObject
	}
	for {
		tok, err := p.next()
		if errors.Is(err, io.EOF) {
			return p.syntax("the file ends too early: a closing } or ] is missing")
		}
		if err != nil {
			return err
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			n.to = p.pos
			return nil
		}
		if n.kind == kindArray {
			e, err := p.value(tok, depth+1)
			if err != nil {
				return err
			}
			n.elems = append(n.elems, e)
			continue
		}
		key, _ := tok.(string) // the decoder allows nothing else here
		line := p.line
		if tok, err = p.next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = p.syntax("the file ends too early: a value is missing")
			}
			return err
		}
		v, err := p.value(tok, depth+1)
		if err != nil {
			return err
		}
		n.set(member{key, line, v})
	}
}
