package centurion

import (
	"slices"
	"strings"
	"unicode"
)

// Ruling is the verdict of a review.
type Ruling string

// The rulings. An answer without a clear verdict has [RulingNone].
const (
	RulingNone Ruling = ""
	RulingPass Ruling = "PASS"
	RulingFail Ruling = "FAIL"
)

// rulingLines is how many non-blank lines at the start of an answer are searched for a verdict.
const rulingLines = 5

// RulingOf finds the verdict in a review's answer. It is in one of the first five lines, or is the very last line: as the line's first
// word (PASS, "Pass.", "**FAIL**: a.go is wrong") or after a label ("Verdict: PASS"). Sentences that mention the words, lines with both
// of them, conditions ("PASS if …") and contradicting lines do not count. A wrong PASS costs more than asking again.
func RulingOf(answer string) Ruling {
	lines := rulingText(answer)
	said := RulingNone
	for i, l := range lines[:min(len(lines), rulingLines)] {
		got, plain := l.ruling(i == 0)
		if plain && testOutput(lines, i) || got == RulingNone {
			continue
		}
		if said != RulingNone && got != said {
			if plain || i == 0 {
				return RulingNone
			}
			continue // a finding below the verdict
		}
		said = got
	}
	if len(lines) == 0 {
		return RulingNone
	}
	last, plain := lines[len(lines)-1].ruling(false)
	switch {
	case last == RulingNone, plain && testOutput(lines, len(lines)-1):
		return said
	case said == RulingNone:
		return last
	case plain && last != said:
		return RulingNone
	}
	return said
}

// rulingLine is a line of an answer without its emphasis.
type rulingLine struct {
	text   string
	bullet bool
}

var (
	rulingBullet = Pattern(`^(?:[-*+•]|\d+[.)])\s+`)
	rulingLabel  = Pattern(`(?i)^(?:(?:my|the|this|our|final|overall|general|code|review|reviewers?)\s+){0,3}(?:verdict|result|conclusion|decision|outcome|assessment|judge?ment|ruling|review|status)` +
		`(?:\s+(?:of|for|on)(?:\s+(?:the|this|item|task|review|work|whole|mission|changes?)){0,3}(?:\s+[A-Z]+-?\d[\w.-]*)?)?(?:\s*[:=|–—]|\s+-\s|\s+is\b:?)\s*(?:a\s+)?`)
	rulingWord = Pattern(`(?i)^(pass|fail)(ed|es|s)?\b(.*)$`)
	// rulingNot follows a word that is not a verdict: another choice, a condition, or a sentence about the word.
	rulingNot = Pattern(`(?i)^(?:[?/|]|[\s,(]+(?:or|and fail|and pass|if|unless|once|when|provided|pending|only|after|as soon|as long|cannot|can|is|isn.?t|would|will|requires|needs|depends|means|criteria)\b|\s*:\s*\d+\s*$)`)
	// rulingEnds may follow a verdict that is explained in the same line.
	rulingEnds = Pattern(`^(?:[.:;,!)–—]|\s+(?:[-–—(:]|=>|->))`)
	bothUpper  = Pattern(`\bPASS(?:ED|ES)?\b.*\bFAIL(?:ED|S)?\b|\bFAIL(?:ED|S)?\b.*\bPASS(?:ED|ES)?\b`)
	bothWords  = Pattern(`(?i)\bpass(?:ed|es)?\b.*\bfail(?:ed|s)?\b|\bfail(?:ed|s)?\b.*\bpass(?:ed|es)?\b`)
	// goOutput is the go command's output after its own PASS or FAIL.
	goOutput = Pattern(`^(?:ok|FAIL|coverage:|exit status|\?)\s`)
)

// ruling reads one line. plain means that it is only a verdict, or has a label; first that it begins the answer.
func (l rulingLine) ruling(first bool) (said Ruling, plain bool) {
	text := l.text
	label := rulingLabel().FindString(text)
	m := rulingWord().FindStringSubmatch(text[len(label):])
	if m == nil {
		return RulingNone, false
	}
	word, rest := m[1]+m[2], m[3]
	loud := word == strings.ToUpper(word)
	bare := strings.Trim(rest, " \t.!)") == ""
	switch {
	case rulingNot().MatchString(rest), bothUpper().MatchString(text), !loud && bothWords().MatchString(text):
		return RulingNone, false
	case bare:
	case l.bullet && label == "", !loud && m[2] != "" && label == "":
		return RulingNone, false // a finding, or a sentence
	case rulingEnds().MatchString(rest):
		if !loud && label == "" && !first {
			return RulingNone, false
		}
	case !loud || !first && label == "":
		return RulingNone, false
	case !strings.HasPrefix(rest, " "):
		return RulingNone, false
	}
	return Ruling(strings.ToUpper(m[1])), bare || label != ""
}

// rulingText lists the lines of an answer that may contain a verdict: without blank lines, code blocks, and the host's notes at its
// end.
func rulingText(answer string) []rulingLine {
	paragraphs := strings.Split(strings.TrimSpace(answer), "\n\n")
	for n := len(paragraphs); n > 1 && strings.HasPrefix(strings.TrimSpace(paragraphs[n-1]), "("); n = len(paragraphs) {
		paragraphs = paragraphs[:n-1]
	}
	var out []rulingLine
	code := false
	for raw := range strings.Lines(strings.Join(paragraphs, "\n\n")) {
		l := strings.TrimSpace(raw)
		if strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~") {
			code = !code
			continue
		}
		if code || l == "" {
			continue
		}
		bullet := rulingBullet().FindString(l)
		text := strings.Map(func(r rune) rune {
			if strings.ContainsRune("*_`\"'“”[]", r) || unicode.In(r, unicode.So, unicode.Sk, unicode.Mn, unicode.Cf) {
				return -1
			}
			return r
		}, l[len(bullet):])
		if text = strings.Trim(text, " \t#>"); text != "" {
			out = append(out, rulingLine{text, bullet != ""})
		}
	}
	return out
}

// testOutput reports whether a bare word is the output of a test command: its summary follows, or the previous line announces something
// else.
func testOutput(lines []rulingLine, i int) bool {
	if rulingLabel().MatchString(lines[i].text) {
		return false
	}
	if i+1 < len(lines) && goOutput().MatchString(lines[i+1].text) {
		return true
	}
	return i > 0 && strings.HasSuffix(lines[i-1].text, ":") && rulingLabel().FindString(lines[i-1].text) == "" ||
		slices.ContainsFunc(lines[max(i-1, 0):i], func(l rulingLine) bool { return strings.HasPrefix(l.text, "--- ") || strings.HasPrefix(l.text, "=== ") })
}
