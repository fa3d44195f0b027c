package redact

import "strings"

// shape describes keys that anyone recognizes: one of the prefixes, then a run of letters, digits and other characters.
type shape struct {
	name     string
	prefixes []string
	other    string // characters of the run beside letters and digits
	min, max int    // length of the run in bytes
	upper    bool   // without small letters
	mixed    bool   // it needs 16 letters and digits in a row, both kinds: the prefix also begins ordinary words
	block    bool   // a PEM block instead of a run
}

// shapes are formats that their issuers publish, with prefixes that nothing else has. JSON Web Tokens are not among them: they are
// common in tests, and most of them are worthless after minutes.
var shapes = []shape{
	{name: "github", prefixes: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, min: 36, max: 255},
	{name: "github", prefixes: []string{"github_pat_"}, other: "_", min: 50, max: 255},
	{name: "gitlab", prefixes: []string{"glpat-"}, other: "_-.", min: 20, max: 255},
	{name: "aws", prefixes: []string{"AKIA", "ASIA"}, min: 16, max: 16, upper: true},
	{name: "anthropic", prefixes: []string{"sk-ant-"}, other: "_-", min: 20, max: 255, mixed: true},
	{name: "sk", prefixes: []string{"sk-"}, other: "_-", min: 20, max: 255, mixed: true},
	{name: "stripe", prefixes: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"}, min: 20, max: 255},
	{name: "slack", prefixes: []string{"xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"}, other: "-", min: 20, max: 255},
	{name: "google", prefixes: []string{"AIza"}, other: "_-", min: 35, max: 35},
	{name: "npm", prefixes: []string{"npm_"}, min: 36, max: 36},
	{name: "huggingface", prefixes: []string{"hf_"}, min: 34, max: 40},
	{name: "sendgrid", prefixes: []string{"SG."}, other: "_-.", min: 66, max: 66},
	{name: "pypi", prefixes: []string{"pypi-AgEI"}, other: "_-", min: 50, max: 255},
	{name: "pem", prefixes: []string{"-----BEGIN "}, block: true},
}

// starts reports whether a key of a shape may begin at i: behind no letter or digit, unless that ends an escape such as \n or \u003c. A
// known key, which has no shape, and a block begin anywhere.
func starts(s string, i int, of *shape) bool {
	switch {
	case of == nil || of.block || i == 0 || !word(s[i-1]) || s[i-1] == '_':
		return true
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("nrtbf", s[i-1]) >= 0
	}
	return i >= 6 && s[i-6:i-2] == `\u00`
}

// context is how many bytes before a key decide whether it begins there.
const context = 6

func word(c byte) bool { return c == '_' || letter(c) || digit(c) }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// match returns the length of the key's rest at the beginning of s, 0 if it is none. open means that more text could change that.
func (h *shape) match(s string) (n int, open bool) {
	if h.block {
		return block(s)
	}
	for n < len(s) && n <= h.max && (letter(s[n]) || digit(s[n]) || strings.IndexByte(h.other, s[n]) >= 0) && !strings.HasPrefix(s[n:], "-----") {
		n++
	}
	if n > h.max {
		return 0, false
	}
	open = n == len(s)
	if n < h.min || h.mixed && !mixed(s[:n]) || h.upper && s[:n] != strings.ToUpper(s[:n]) {
		return 0, open
	}
	return n, open
}

// mixed reports whether 16 letters and digits stand in a row, some of each.
func mixed(s string) bool {
	letters, digits := 0, 0
	for i := range len(s) {
		switch {
		case letter(s[i]):
			letters++
		case digit(s[i]):
			digits++
		default:
			letters, digits = 0, 0
		}
		if letters > 0 && digits > 0 && letters+digits >= 16 {
			return true
		}
	}
	return false
}

// The parts of a PEM block of a private key.
const (
	maxLabel = 64       // bytes of "RSA PRIVATE KEY"
	maxBlock = 16 << 10 // bytes; a key of 8192 bits has 6,500
	minLine  = 40       // of the longest line: prose has none
	maxTail  = 16       // of further lines of a block without an end
)

// block matches the rest of a PEM block of a private key. One that is cut off ends with its last long line.
func block(s string) (n int, open bool) {
	label, _, ok := strings.Cut(s[:min(len(s), maxLabel)], "-----")
	if !ok {
		return 0, len(s) < maxLabel
	}
	if !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") || strings.Trim(label, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ") != "" {
		return 0, false
	}
	head := len(label) + len("-----")
	line, longest, last, i := 0, 0, 0, head
	for ; i < len(s) && i-head < maxBlock; i++ {
		switch c := s[i]; {
		case letter(c) || digit(c) || strings.IndexByte("+/=", c) >= 0:
			line++
			if longest = max(longest, line); line >= maxTail {
				last = i + 1
			}
			continue
		case strings.HasPrefix(s[i:], "-----"):
			if end := strings.Index(s[i+5:min(len(s), i+5+maxLabel)], "-----"); longest >= minLine && strings.HasPrefix(s[i+5:], "END ") && end >= 0 {
				return i + 5 + end + 5, false
			} else if len(s) < i+5+maxLabel {
				return cutOff(longest, last), true
			}
			return cutOff(longest, last), false
		case strings.IndexByte(" \t\r\n\\|:,._-", c) < 0:
			return cutOff(longest, last), false
		}
		line = 0
	}
	return cutOff(longest, last), i == len(s)
}

func cutOff(longest, last int) int {
	if longest < minLine {
		return 0
	}
	return last
}
