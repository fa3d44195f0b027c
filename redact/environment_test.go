package redact

import (
	"testing"
)

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
