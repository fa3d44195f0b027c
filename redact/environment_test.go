package redact

import (
	"slices"
	"testing"
)

// Each variable counts, also behind those that hold no key.
func TestEnvironmentIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	got := Environment([]string{"PLAIN=x1x1x1x1x1", "PROXY=http://me@proxy", "A_TOKEN=./x1x1x1x1", "B_URL=pg://me:p%25p1p1p1p1@db", "C_KEY=not-set", "D_KEY=k1k1%2", "E_KEY=k2k2k2k2k2"})
	want := []Key{{"B_URL", "p%25p1p1p1p1"}, {"B_URL", "p%p1p1p1p1"}, {"D_KEY", "k1k1%2"}, {"E_KEY", "k2k2k2k2k2"}, {"E_KEY", "k2k2k2k2k2"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A variable's name and its value decide together whether it holds a key.
func TestVariables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for kv, key := range map[string]string{
		"my-token=t1t1t1t1t1":               "t1t1t1t1t1",
		"app.token=t1t1t1t1t1":              "t1t1t1t1t1",
		"TOKEN2=t1t1t1t1t1":                 "t1t1t1t1t1",
		"db-pass=t1t1t1t1t1":                "t1t1t1t1t1",
		"db.pass=t1t1t1t1t1":                "t1t1t1t1t1",
		"APIKEY=t1t1t1t1t1":                 "t1t1t1t1t1",
		"MYPASSWORD=t1t1t1t1t1":             "t1t1t1t1t1",
		"PASSWORDLESS=t1t1t1t1t1":           "",
		"MONKEY=t1t1t1t1t1":                 "",
		"COMPASS=t1t1t1t1t1":                "",
		"_=t1t1t1t1t1":                      "",
		"API_KEY_NAME=t1t1t1t1t1":           "",
		"API_KEY=t1t1t1t":                   "", // seven bytes
		"API_KEY=t1t1t1t1":                  "t1t1t1t1",
		"API_KEY=1234567890":                "",
		"API_KEY=12:34:56+02.1-7":           "",
		"API_KEY=t1t1t1\nt1t1":              "",
		"API_KEY=t1t1t1\rt1t1":              "",
		"API_KEY=t1t1t1\x00t1t1":            "",
		"API_KEY=[\"t1t1t1\"]":              "",
		"API_KEY=t1t1[t1t1]":                "t1t1[t1t1]",
		"API_KEY=Abcdefghijklmnopqrst":      "Abcdefghijklmnopqrst",
		"API_KEY=Abcdefghijklmnopqrs":       "", // letters only, nineteen
		"API_KEY=abcdefghijklmnopqrst":      "abcdefghijklmnopqrst",
		"API_KEY=abcdefghijklmnopqrst-ab":   "abcdefghijklmnopqrst-ab",
		"API_KEY=abcdefghijklmnopqrs-ab":    "",
		"API_KEY=not-set.yet by_anyone/ask": "",
		"API_KEY=CHANGE_ME_PLEASE":          "",
		"API_KEY=Change-Me-Please":          "Change-Me-Please",
		"API_KEY=passwörter":                "passwörter",
		"API_KEY=ŁŁŁŁŁŁŁŁ":                  "ŁŁŁŁŁŁŁŁ",
		"API_KEY=~/keys/k1k1":               "",
		"API_KEY=./keys/k1k1":               "",
		"API_KEY=k1~/keys/k1":               "k1~/keys/k1",
		"API_KEY=k1./keys/k1":               "k1./keys/k1",
		"API_KEY=" + dir + "/none1":         "",
		"API_KEY=" + dir + "/no1/none1":     dir + "/no1/none1",
		"API_KEY=/k1k1k1k1k1":               "/k1k1k1k1k1",
		"API_KEY=k1k1k1k1k1/":               "k1k1k1k1k1/",
		"PROXY=http://proxy:t1t1t1t1t1":     "",
		"PROXY=http://proxy/a:t1t1t1@t1":    "",
		"PROXY=http://t1t1t1t1t1@proxy/":    "",
		"PROXY=http://me:t1t1t1t1t1@proxy":  "t1t1t1t1t1",
		"PROXY=http://me:change-me-now@p/":  "",
		"PROXY=http://me:t1%zzt1t1t1@proxy": "t1%zzt1t1t1",
	} {
		known := New(Environment([]string{kv})...).known
		if got := len(known) > 0; got != (key != "") || got && known[0].Value != key {
			t.Errorf("%q: %q, want the key %q", kv, known, key)
		}
	}
}

// Every word that makes a variable one of a key, and every last word that takes that back.
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, w := range []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS", "AUTH", "APIKEY"} {
		for _, name := range []string{w, "MY_" + w, w + "_PROD", w + "2", "my-" + w + ".x"} {
			if !Named(name) {
				t.Errorf("%s holds no key", name)
			}
		}
		if long := len(w) > 4 && w != "APIKEY"; Named("MY"+w) != long {
			t.Errorf("MY%s holds a key: %v", w, !long)
		}
		for _, about := range []string{"NAME", "ID", "FILE", "PATH", "DIR", "URL", "URI", "HOST", "PORT", "TYPE", "USER", "SOCK", "TTL", "EXPIRY", "SIZE", "COUNT", "LIMIT",
			"ENDPOINT", "DOMAIN", "REGION", "HELPER", "PROVIDER", "METHOD", "MODE", "SERVICE", "ENABLED", "AGENT"} {
			if Named(w+"_"+about) || !Named(about+"_"+w) {
				t.Errorf("%s_%s holds a key, or %s_%s none", w, about, about, w)
			}
		}
	}
}
