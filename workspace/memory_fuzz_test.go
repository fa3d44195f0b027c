package workspace

import (
	"bytes"
	"testing"
)

// FuzzRecords reads the file of a plan's versions: what is told to be whole can be read again and is all that stands there.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"", "1 own - 0\n\n", "1 own - 0\n\n2 other - 3\nabc\n", "1 own deadbeef 1\nx\n", "x", "1 own - -1\n\n", "1 own - 99999999999\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, good := parseRecords(b)
		if good < 0 || good > int64(len(b)) || len(all) == 0 && good > 0 {
			t.Fatalf("%d records in %d bytes of %d", len(all), good, len(b))
		}
		again, same := parseRecords(b[:good])
		if same != good || len(again) != len(all) {
			t.Fatalf("%d records in %d bytes, and %d in %d the second time", len(all), good, len(again), same)
		}
		for i := range all {
			if all[i].n != again[i].n || !bytes.Equal(all[i].text, again[i].text) {
				t.Fatalf("record %d differs", i)
			}
		}
	})
}
