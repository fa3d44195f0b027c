package tools

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"centurion"
)

type editInput struct {
	FilePath   string `json:"filePath"`
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll"`
}

func editTool() Tool {
	return define("edit", object(
		need("filePath", nonEmpty("The file, relative to the project or absolute")),
		need("oldString", nonEmpty("The text to replace, exactly as in the file, with enough context to occur once")),
		need("newString", str("The new text; empty deletes the old one")),
		may("replaceAll", boolean("Replace every occurrence (default false)")),
	), func(in editInput) Effect { return writes(in.FilePath) }, runEdit)
}

func runEdit(ctx context.Context, c *Call, in editInput) (Result, error) {
	const op = "edit"
	p, file, err := enterFile(ctx, c, op, in.FilePath)
	if err != nil {
		return Result{}, err
	}
	old := file.Data
	if typ := binaryType(old[:min(len(old), sniffLen)]); typ != "" {
		return Result{}, binaryError(op, p, typ, int64(len(old)))
	}
	data, n, err := substitute(p.Name, old, in)
	if err != nil || in.ReplaceAll {
		// A text that occurs once in the file can be replaced without a read: nothing that the session has not named is lost.
		if unseen := c.Seen.Check(p.key(), file.Version); unseen != nil {
			return Result{}, unseen
		}
	}
	if mark := c.Keys.Mark(in.OldString); err != nil && mark != "" {
		return Result{}, usage(op, "replace other lines, which name no key", "oldString has %s, which only stands for a key in %s", mark, p.Name)
	}
	if err != nil {
		return Result{}, err
	}
	if err := p.keepsKeys(c, op, old, data); err != nil {
		return Result{}, err
	}
	change := diff(p.Name, string(old), string(data))
	if err := p.allow(ctx, c, "edit", map[string]any{"filepath": p.Name, "diff": change}); err != nil {
		return Result{}, err
	}
	if err := p.replace(ctx, c, file.Version, data); err != nil {
		return Result{}, err
	}
	out := "edited " + p.Name
	if n > 1 {
		out += fmt.Sprintf(", %d places", n)
	}
	return Result{Output: out + "\n" + change, Title: p.Name, Files: p.changed(),
		Metadata: map[string]any{"filepath": p.Name, "diff": change, "replaced": n, knows: c.Seen.known(p.key())}}, nil
}

// substitute replaces the text in data and returns how often. The search uses LF only, as the model does; other bytes are unchanged,
// and inserted text gets the line ends of the replaced one.
func substitute(name string, data []byte, in editInput) ([]byte, int, error) {
	const op = "edit"
	from, to := lf(in.OldString), lf(in.NewString)
	if from == to {
		return nil, 0, usage(op, "say what has to become different", "oldString and newString are the same; nothing would change")
	}
	t := flatten(data)
	at := occurrences(t.text, from)
	switch {
	case len(at) == 0:
		return nil, 0, notFound(name, t.text, from)
	case len(at) > 1 && !in.ReplaceAll:
		return nil, 0, usage(op, "give more of the lines around the one you mean, or replaceAll",
			"oldString occurs %s in %s, %s", centurion.Count(len(at), "time"), name, atLines(t.text, at))
	}
	var out bytes.Buffer
	done := 0
	for _, i := range at {
		start, end := t.original(i), t.original(i+len(from))
		out.Write(data[done:start])
		repl := to
		if t.crlf(data[start:end]) {
			repl = strings.ReplaceAll(to, "\n", "\r\n")
		}
		out.WriteString(repl)
		done = end
	}
	out.Write(data[done:])
	return out.Bytes(), len(at), nil
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// flat is a text with LF for every CRLF and without byte order mark.
type flat struct {
	text   string
	skip   int   // length of the byte order mark
	crs    []int // positions in text of removed CRs, before the byte at that index
	mostly bool  // most lines end in CRLF
}

func flatten(data []byte) flat {
	t := flat{}
	if bytes.HasPrefix(data, bom) {
		t.skip = len(bom)
	}
	rest := data[t.skip:]
	var b strings.Builder
	b.Grow(len(rest))
	for {
		i := bytes.Index(rest, []byte("\r\n"))
		if i < 0 {
			break
		}
		b.Write(rest[:i])
		t.crs = append(t.crs, b.Len())
		rest = rest[i+1:]
	}
	b.Write(rest)
	t.text = b.String()
	t.mostly = len(t.crs)*2 > strings.Count(t.text, "\n")
	return t
}

// original is the position in the data of the byte at index i of the text. For an LF whose CR was removed it is that of the CR, so that
// both are replaced together.
func (t flat) original(i int) int {
	n, _ := slices.BinarySearch(t.crs, i) // CRs removed before i
	return t.skip + i + n
}

// crlf reports whether the replacement of a piece should have CRLF line ends.
func (t flat) crlf(piece []byte) bool {
	if n := bytes.Count(piece, []byte("\n")); n > 0 {
		return bytes.Count(piece, []byte("\r\n"))*2 >= n
	}
	return t.mostly
}

// occurrences returns the non-overlapping positions of part in text.
func occurrences(text, part string) []int {
	var at []int
	for i := 0; ; {
		j := strings.Index(text[i:], part)
		if j < 0 {
			return at
		}
		at = append(at, i+j)
		i += j + len(part)
	}
}

// atLines names the lines of the offsets.
func atLines(text string, at []int) string {
	const most = 10
	var s []string
	line, done := 1, 0
	for _, i := range at[:min(len(at), most)] {
		line += strings.Count(text[done:i], "\n")
		done = i
		s = append(s, fmt.Sprint(line))
	}
	if len(at) > most {
		s = append(s, "…")
	}
	return "in lines " + strings.Join(s, ", ")
}

// lineNumber matches the line numbers added by read.
var lineNumber = regexp.MustCompile(`(?m)^ *\d+\| ?`)

// notFound explains why a text is not in a file: it contains line numbers, only blanks differ, or otherwise the most similar lines.
func notFound(name, text, part string) error {
	where := fmt.Sprintf("oldString is not in %s: ", name)
	// Code is on separate lines, followed by the advice.
	shown := func(do, format string, at, n int, lines []string) error {
		return &centurion.Error{Op: "edit", Kind: centurion.KindUsage, Msg: where + fmt.Sprintf(format, lineRange(at+1, at+n)) + "\n" + quote(lines, at, n) + "\n" + do}
	}
	fail := func(hint, format string, args ...any) error {
		return &centurion.Error{Op: "edit", Kind: centurion.KindUsage, Hint: hint,
			Msg: where + fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return fail("use write", "the file is empty")
	}
	if bare := lineNumber.ReplaceAllString(part, ""); bare != part && strings.Contains(text, bare) {
		return fail("leave out the numbers", "it contains the line numbers that read shows")
	}
	have := strings.Split(text, "\n")
	want := strings.Split(strings.Trim(part, "\n"), "\n")
	if i := sameButBlanks(have, want); i >= 0 {
		return shown("copy the spaces and tabs exactly", "it differs only in whitespace from %s:", i, len(want), have)
	}
	i, score := nearestLines(have, want)
	if score < 0.5 {
		return fail("read the file again, or check that you mean this file", "nothing in it is like %q", headRunes(strings.TrimSpace(want[0]), 60))
	}
	return shown("copy that text exactly, or read the file again", "the nearest text is in %s:", i, min(len(want), len(have)-i), have)
}

// lineRange names lines by their numbers.
func lineRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("line %d", from)
	}
	return fmt.Sprintf("lines %d-%d", from, to)
}

// sameButBlanks returns the index of the lines that equal want except for blanks, or -1.
func sameButBlanks(have, want []string) int {
	squeezed := make([]string, len(want))
	letters := 0
	for j, w := range want {
		squeezed[j] = squeeze(w)
		letters += len(squeezed[j])
	}
	if letters == 0 {
		return -1
	}
next:
	for i := range len(have) - len(want) + 1 {
		for j, w := range squeezed {
			if squeeze(have[i+j]) != w {
				continue next
			}
		}
		return i
	}
	return -1
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// nearestLines returns the position of the lines most similar to want, and their similarity from 0 to 1. To limit its cost it compares
// only the first lines of want and of the file.
func nearestLines(have, want []string) (at int, score float64) {
	want = want[:min(len(want), 8)]
	sets := make([]map[[2]byte]bool, len(want))
	for j, w := range want {
		sets[j] = pairs(w)
	}
	haveSets := make([]map[[2]byte]bool, 0, len(have))
	for _, h := range have[:min(len(have), 20_000)] {
		haveSets = append(haveSets, pairs(h))
	}
	for i := range haveSets {
		sum, n := 0.0, 0
		for j, s := range sets {
			if len(s) == 0 {
				continue
			}
			n++
			if i+j < len(haveSets) {
				sum += alike(haveSets[i+j], s)
			}
		}
		if n > 0 && sum/float64(n) > score {
			at, score = i, sum/float64(n)
		}
	}
	return at, score
}

// alike is the share of common pairs of two lines.
func alike(a, b map[[2]byte]bool) float64 {
	common := 0
	for p := range b {
		if a[p] {
			common++
		}
	}
	return float64(2*common) / float64(len(a)+len(b))
}

// pairs is the set of adjacent bytes in a line, ignoring blanks and case.
func pairs(line string) map[[2]byte]bool {
	line = strings.ToLower(squeeze(line[:min(len(line), 300)]))
	if len(line) == 1 {
		return map[[2]byte]bool{{line[0]}: true}
	}
	set := make(map[[2]byte]bool, len(line))
	for i := range len(line) - 1 {
		set[[2]byte{line[i], line[i+1]}] = true
	}
	return set
}

// quote shows n lines with numbers, with literal tabs.
func quote(lines []string, at, n int) string {
	const most = 12
	var b strings.Builder
	for i := at; i < min(at+min(n, most), len(lines)); i++ {
		fmt.Fprintf(&b, "%6d| %s\n", i+1, headRunes(valid(lines[i]), 300))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	diffMaxInput = 1 << 20 // bytes; comparing more takes too long
	diffMaxLines = 80      // of one answer
	diffMaxBytes = 8 << 10
)

// diff returns a unified diff of two texts, shortened for reading.
func diff(name, before, after string) string {
	if len(before)+len(after) > diffMaxInput {
		return fmt.Sprintf("(%s before, %s now; too long to compare)", centurion.Count(lineCount(before), "line"),
			centurion.Count(lineCount(after), "line"))
	}
	plain := strings.NewReplacer("\r\n", "\n", "\r", "␍", string(bom), "")
	before, after = valid(plain.Replace(before)), valid(plain.Replace(after))
	full := udiff.Unified("a/"+name, "b/"+name, before, after)
	var b strings.Builder
	n, left := 0, 0
	for line := range strings.Lines(full) {
		if n == diffMaxLines || b.Len()+len(line) > diffMaxBytes {
			left++
			continue
		}
		n++
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "… %s more\n", centurion.Count(left, "line"))
	}
	return b.String()
}
