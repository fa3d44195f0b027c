package redact

import (
	"strings"
	"testing"
)

// Each shape is found from its shortest to its longest key, with its own signs and no others.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefixes, name, signs string // the prefixes are separated by spaces
		min, max              int
	}{
		{"ghp_ gho_ ghu_ ghs_ ghr_", "github", "", 36, 255},
		{"github_pat_", "github", "_", 50, 255},
		{"glpat-", "gitlab", "_-.", 20, 255},
		{"AKIA ASIA", "aws", "", 16, 16},
		{"sk-ant-", "anthropic", "_-", 20, 255},
		{"sk-", "sk", "_-", 20, 255},
		{"sk_live_ rk_live_ sk_test_ rk_test_", "stripe", "", 20, 255},
		{"xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", "slack", "-", 20, 255},
		{"AIza", "google", "_-", 35, 35},
		{"npm_", "npm", "", 36, 36},
		{"hf_", "huggingface", "", 34, 40},
		{"SG.", "sendgrid", "_-.", 66, 66},
		{"pypi-AgEI", "pypi", "_-", 50, 255},
	} {
		run := func(n int) string { return strings.Repeat("A1B2C3D4", 40)[:n] }
		for prefix := range strings.FieldsSeq(c.prefixes) {
			mark := "[key " + c.name + "]"
			wants := map[string]string{run(c.min): mark, run(c.max): mark, run(c.max + 1): prefix + run(c.max+1), run(c.min - 1): prefix + run(c.min-1)}
			if c.name == "anthropic" { // a short one still has the other shape
				wants[run(c.min-1)] = "[key sk]"
			}
			for sign := range strings.SplitSeq("_-.+", "") {
				key := "x1" + sign + run(c.max)[3:]
				if wants[key] = mark; !strings.Contains(c.signs, sign) {
					wants[key] = prefix + key
				}
			}
			for rest, want := range wants {
				if got := new(Keys).Text(prefix + rest); got != want {
					t.Errorf("%s%s (%d): %s, want %s", prefix, rest, len(rest), got, want)
				}
			}
		}
	}
}

// A key begins behind an escape or an underscore, not in the middle of a word.
func TestShapeBegins(t *testing.T) {
	t.Parallel()
	for before, found := range map[string]bool{"": true, " ": true, "X_": true, `\n`: true, `\t`: true, `\q`: false, "n": false, "7": false, "é": true,
		`\u003c`: true, `\u123c`: false, `u003c`: false} {
		want := before + "[key github]"
		if !found {
			want = before + pat
		}
		if got := new(Keys).Text(before + pat); got != want {
			t.Errorf("%q: %s, want %s", before, got, want)
		}
	}
}

// A block of a private key ends with its last line, or, cut off, with its last long one. Other blocks and prose stay.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const begin, end = "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----"
	line := strings.Repeat("b3Bl", 16) + "\n"
	short, least := strings.Repeat("b", 39)+"\n", strings.Repeat("b", 40)+"\n"
	for text, want := range map[string]string{
		begin + least + "QAAA=\n" + end + "\nrest":                              "[key pem]\nrest",
		begin + short + end:                                                     begin + short + end,
		begin + least + "and prose!":                                            "[key pem]\nand prose!",
		begin + line + "and prose!\n" + line:                                    "[key pem]\nand prose!\n" + line,
		begin + short + "and prose!":                                            begin + short + "and prose!",
		begin + line + strings.Repeat("b", 16) + "\n" + strings.Repeat("c", 15): "[key pem]\n" + strings.Repeat("c", 15),
		begin + line + "-----BEGIN CERTIFICATE-----\n" + line:                   "[key pem]\n-----BEGIN CERTIFICATE-----\n" + line,
		begin + line + "-----END":                                               "[key pem]\n-----END",
		begin + line + end + strings.Repeat("-", 90):                            "[key pem]" + strings.Repeat("-", 90),
		begin + line + "-----" + strings.Repeat("x", 90):                        "[key pem]\n-----" + strings.Repeat("x", 90),
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + line + "=aBcD\n-----END PGP PRIVATE KEY BLOCK-----":                 "[key pem]",
		"-----BEGIN my PRIVATE KEY-----\n" + line:                                                                         "-----BEGIN my PRIVATE KEY-----\n" + line,
		"-----BEGIN PRIVATE KEY FILE-----\n" + line:                                                                       "-----BEGIN PRIVATE KEY FILE-----\n" + line,
		"-----BEGIN PRIVATE KEY BLOCKS-----\n" + line:                                                                     "-----BEGIN PRIVATE KEY BLOCKS-----\n" + line,
		"-----BEGIN " + strings.Repeat("A", 64) + "PRIVATE KEY-----\n" + line:                                             "-----BEGIN " + strings.Repeat("A", 64) + "PRIVATE KEY-----\n" + line,
		begin + "b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+\\n| b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+b3Bl/+\n" + end: "[key pem]",
	} {
		if got := new(Keys).Text(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

// A block that does not end is held back for a while only: a stream must not keep all that follows.
func TestBlockIsBounded(t *testing.T) {
	t.Parallel()
	s := new(Keys).Stream(false)
	if got := s.Next("-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("b3Bl", 16)+"\n", 300)); !strings.HasPrefix(got, "[key pem]\n") {
		t.Errorf("%d bytes have come through", len(got))
	}
}
