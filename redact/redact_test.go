package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	own = "zq7-Own/Key+42\"<&>"
	pat = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
)

var pem = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("b3Bl", 16)+"\n", 4) + "QAAAA==\n-----END OPENSSH PRIVATE KEY-----"

func keys() *Keys { return New(Key{"OWN", own}, Key{"SHORT", "abc1"}, Key{"LONGER", own + "more"}) }

// A key becomes its placeholder wherever it stands; what only looks similar stays.
func TestText(t *testing.T) {
	block := strings.Repeat("b3Bl", 16)
	for text, want := range map[string]string{
		"":                                   "",
		"no key, monkeys and disks":          "no key, monkeys and disks",
		"a " + own + " b" + own:              "a [key OWN] b[key OWN]",
		own + "more":                         "[key LONGER]",
		own[:10]:                             own[:10],
		"abc1 is too short":                  "abc1 is too short",
		"token=" + pat + ";":                 "token=[key github];",
		"https://" + pat + "@github.com":     "https://[key github]@github.com",
		`a\n` + pat:                          `a\n[key github]`,
		`\u003c` + pat + `\u003e`:            `\u003c[key github]\u003e`,
		`{"a": "zq7-Own/Key+42\"<&>"}`:       `{"a": "[key OWN]"}`,
		"x" + pat:                            "x" + pat,
		pat[:30]:                             pat[:30],
		"AKIAIOSFODNN7EXAMPLE":               "[key aws]",
		"AKIAZOSFODNN7EXAMPLZ":               "[key aws]",
		"sk-0123456789abcdef0123456789-----": "[key sk]-----",
		"sk-ant-colony-before-the-animation": "sk-ant-colony-before-the-animation",
		"AKIAIOSFODNN7EXAMPLEX":              "AKIAIOSFODNN7EXAMPLEX",
		"AKIAiosfodnn7example":               "AKIAiosfodnn7example",
		"sk-0123456789abcdef0123456789":      "[key sk]",
		"sk-ant-api03-0123456789abcdefAA-_x": "[key anthropic]",
		"sk-chasing-dot-before-animation-2":  "sk-chasing-dot-before-animation-2",
		"xoxb-123456789012-abcdefghijkl":     "[key slack]",
		"task-0123456789abcdef0123456789":    "task-0123456789abcdef0123456789",
		"key:\n" + pem + "\nrest":            "key:\n[key pem]\nrest",
		"     1| -----BEGIN RSA PRIVATE KEY-----\n     2| " + block + "\n     3| " + block + "\nand prose": "     1| [key pem]\nand prose",
		`if strings.Contains(s, "-----BEGIN PRIVATE KEY-----") { return errors.New("no") }`:                `if strings.Contains(s, "-----BEGIN PRIVATE KEY-----") { return errors.New("no") }`,
		"-----BEGIN CERTIFICATE-----\n" + block:                                                            "-----BEGIN CERTIFICATE-----\n" + block,
		"-----BEGIN PRIVATE KEY----- is the first line of such a file and not much more than that":         "-----BEGIN PRIVATE KEY----- is the first line of such a file and not much more than that",
	} {
		if got := keys().Text(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
	if got := (*Keys)(nil).Text(pat); got != pat {
		t.Errorf("without keys: %q", got)
	}
	if got := (&Keys{}).Text(pat); got != "[key github]" {
		t.Errorf("the zero Keys: %q", got)
	}
}

// Inside JSON a key is found as it is escaped there, and the document means the same otherwise.
func TestTextInJSON(t *testing.T) {
	in := map[string]any{"text": "<" + own + ">\n" + pat + "\n" + pem, "n": 12345678, own: []string{pem + "x"}}
	doc, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(keys().Text(string(doc))), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"text": "<[key OWN]>\n[key github]\n[key pem]", "n": 12345678.0, "[key OWN]": []any{"[key pem]x"}}
	a, _ := json.Marshal(got)
	if b, _ := json.Marshal(want); !bytes.Equal(a, b) {
		t.Errorf("got %s\nwant %s", a, b)
	}
}

// However a text is cut into pieces, the outcome is that of the whole, and no piece ends within a key.
func TestPiecesAreTheWhole(t *testing.T) {
	parts := []string{own, own + "more", own[:7], pat, pat[:20], pem, pem[:200], "sk-", "gh", "\n", " ", "words ", "AKIAIOSFODNN7EXAMPLE", "-----BEGIN ", `\n`, "é", "-"}
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), "")
		k := keys()
		var out bytes.Buffer
		w, kept, same := k.Writer(&out), k.Stream(true), ""
		for rest := whole; rest != ""; {
			n := min(rapid.IntRange(1, 40).Draw(t, "length"), len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			same += kept.Next(rest[:n])
			for i := range len(own) - 1 { // the cut is behind the first i+1 bytes of a key
				if strings.HasSuffix(same, own[:i+1]) && strings.HasPrefix(whole[len(same):], own[i+1:]) {
					t.Fatalf("%q is cut within a key, after %q", whole, same)
				}
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if same += kept.End(); same != whole {
			t.Fatalf("kept %q, want %q", same, whole)
		}
		want := k.Text(whole)
		if out.String() != want {
			t.Fatalf("%q\n got %q\nwant %q", whole, out.String(), want)
		}
		if again := k.Text(want); again != want {
			t.Fatalf("done twice: %q, then %q", want, again)
		}
	})
}

// Variables with keys are told from those that only sound so.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent1.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := New(Environment([]string{
		"OPENAI_API_KEY=proj-0123456789", "PGPASSWORD=hunter2hunter2", "GITHUB_TOKEN_2=Abcdefghijklmnopqrstuvwxyz", "SECRET_KEY_BASE=k4k4k4k4k4", "npm_config__authToken=x1x1x1x1x1",
		"DATABASE_URL=postgres://me:pa%24%24w0rd@db/x", "MAX_OUTPUT_TOKENS=32000000", "API_KEY=your-api-key", "GIT_AUTHOR_NAME=John Smith 3", "SSH_AUTH_SOCK=/nowhere/x1",
		"SIGNING_KEY=" + file, "TOKEN_FILE=my-token-1", "KEYBOARD_LAYOUT=us-intl-1", "DEPLOY_TOKEN=short1", "MONKEY=chimp-2000", "HOME_URL=http://localhost:8080/keys/k1k1k1k1",
		"PASSWORD=changeme", "CREDENTIALS={\"type\": \"x1\"}",
	})...)
	for text, want := range map[string]string{
		"proj-0123456789": "[key OPENAI_API_KEY]", "hunter2hunter2": "[key PGPASSWORD]", "Abcdefghijklmnopqrstuvwxyz": "[key GITHUB_TOKEN_2]", "k4k4k4k4k4": "[key SECRET_KEY_BASE]",
		"x1x1x1x1x1": "[key npm_config__authToken]", "pa%24%24w0rd": "[key DATABASE_URL]", "pa$$w0rd": "[key DATABASE_URL]",
	} {
		if got := k.Text(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"32000000", "your-api-key", "John Smith 3", "/nowhere/x1", file, "my-token-1", "us-intl-1", "short1", "8080/keys/k1k1k1k1", "changeme", "{\"type\": \"x1\"}"} {
		if got := k.Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	if got := k.Text("chimp-2000"); got == "" {
		t.Error(got)
	}
}

// A new version of a file that has a placeholder where the key was is recognized.
func TestLost(t *testing.T) {
	k := keys()
	for _, c := range []struct{ before, after, want string }{
		{"key=" + pat, "key=[key github]", "[key github]"},
		{"key=" + pat, "key=" + pat + "\n# shown as [key github]", ""},
		{"key=" + pat + "\nnew=[key github]", "key=[key github]\nnew=[key github]", "[key github]"},
		{"key=" + pat, "key=", ""},
		{"key=" + pat, "key=[key OWN]", ""},
		{"", "key=[key github]", ""},
		{own + pat, own + "[key github]", "[key github]"},
		{"[key github] " + pat, "[key github] [key github] " + pat, ""},
	} {
		if got := k.Lost(c.before, c.after); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.before, c.after, got, c.want)
		}
	}
	if got := k.Mark("a [key OWN] b"); got != "[key OWN]" {
		t.Errorf("mark %q", got)
	}
	if got := k.Mark("a [key value]"); got != "" {
		t.Errorf("mark %q", got)
	}
}

// The text of a long command, with the number of keys of a real environment, costs far less than a millisecond.
func BenchmarkText(b *testing.B) {
	k := New()
	for i := range 40 {
		k.Add(Key{"K", strings.Repeat(string(rune('a'+i%26)), 4) + "0123456789abcdef" + string(rune('A'+i%26))})
	}
	source, err := os.ReadFile("redact.go")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(source), 30_000/len(source)+1)[:30_000]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if k.Text(text) != text {
			b.Fatal("a key in it")
		}
	}
}

// Sixteen letters and digits in a row, some of each, look like a key; one less, one kind only, or a sign between them do not.
func TestMixed(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"abcdefgh12345678": true, "abcdefgh1234567": false, "abcdefghijklmnop": false, "1234567812345678": false,
		"abcdefgh-12345678": false, "a-bcdefgh12345678-": false, "--1bcdefghijklmnop": true} {
		if got := mixed(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

// Keys may be added at any time. A value has one name, the first, and a name has nothing that would break a text.
func TestAdd(t *testing.T) {
	t.Parallel()
	k := New(Key{"A", " k1k1k1k1k1\n"}, Key{"B", "k1k1k1k1k1"})
	k.Add(Key{"a\"b\\c<d>\u0150.x/y-z w_0", "k2k2k2k2k2"}, Key{"C", "short1"})
	if got, want := k.Text("k1k1k1k1k1 k2k2k2k2k2 short1"), "[key A] [key a_b_c_d__.x/y-z w_0] short1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := k.Mark("[key A] [key B]") + k.Mark("[key B]") + (*Keys)(nil).Mark("[key A]"); got != "[key A]" {
		t.Errorf("mark %q", got)
	}
}

// failing refuses to be written to, and counts how often that was tried.
type failing struct{ tries int }

func (f *failing) Write([]byte) (int, error) { f.tries++; return 0, io.ErrClosedPipe }

// What a writer cannot pass on is an error of the call that tried; nothing certain yet is not passed on at all.
func TestWriterFails(t *testing.T) {
	t.Parallel()
	to := &failing{}
	w := keys().Writer(to)
	if _, err := w.Write([]byte(own[:4])); err != nil || to.tries != 0 {
		t.Errorf("held back: %v, %d tries", err, to.tries)
	}
	if err := w.Close(); err != io.ErrClosedPipe {
		t.Errorf("close: %v", err)
	}
	if _, err := w.Write([]byte("words ")); err != io.ErrClosedPipe || to.tries != 2 {
		t.Errorf("write: %v, %d tries", err, to.tries)
	}
}

// A stream that is used again knows nothing of its earlier text.
func TestStreamAgain(t *testing.T) {
	t.Parallel()
	s := keys().Stream(false)
	if got := s.Next("word") + s.End() + "|" + s.Next(pat+" ") + s.End(); got != "word|[key github] " {
		t.Errorf("got %q", got)
	}
	if s = (*Keys)(nil).Stream(false); s.Next(pat)+s.End() != pat {
		t.Error("without keys something is replaced")
	}
}
