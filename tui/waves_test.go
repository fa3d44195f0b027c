package tui

import (
	"slices"
	"strings"
	"testing"
)

func TestWaves(t *testing.T) {
	tests := []struct{ name, items, waves, stuck string }{
		{"none", "", "", ""},
		{"free", "a b c", "a b c", ""},
		{"chain", "a b<a c<b", "a|b|c", ""},
		{"diamond in any order", "d<b,c b<a c<a a", "a|b c|d", ""},
		{"the longest way counts", "a b<a c<a,b", "a|b|c", ""},
		{"circle", "a b<c c<b d<a", "a|d", "b c"},
		{"itself", "a<a b", "b", "a"},
		{"unknown", "a<x b<a c", "c", "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var items []Item
			for f := range strings.FieldsSeq(tt.items) {
				id, after, ok := strings.Cut(f, "<")
				it := Item{ID: id}
				if ok {
					it.After = strings.Split(after, ",")
				}
				items = append(items, it)
			}
			waves, stuck := Waves(items)
			var got []string
			for _, w := range waves {
				got = append(got, ids(w))
			}
			if s := strings.Join(got, "|"); s != tt.waves || ids(stuck) != tt.stuck {
				t.Errorf("got %q and stuck %q, want %q and %q", s, ids(stuck), tt.waves, tt.stuck)
			}
		})
	}
}

func ids(items []Item) string {
	var out []string
	for _, it := range items {
		out = append(out, it.ID)
	}
	return strings.Join(out, " ")
}

// Every item stands in exactly one place, and after everything it waits for.
func FuzzWaves(f *testing.F) {
	f.Add([]byte{0x10, 0x21, 0x32})
	f.Add([]byte{0x11, 0x12, 0x21})
	f.Fuzz(func(t *testing.T, edges []byte) {
		items := make([]Item, 16)
		for i := range items {
			items[i].ID = string(rune('a' + i))
		}
		for _, e := range edges {
			to, from := e>>4, e&15
			items[to].After = append(items[to].After, items[from].ID)
		}
		waves, stuck := Waves(items)
		var seen []string
		for _, w := range waves {
			for _, it := range w {
				for _, a := range it.After {
					if !slices.Contains(seen, a) {
						t.Fatalf("%s stands before %s, which it waits for", it.ID, a)
					}
				}
			}
			for _, it := range w {
				seen = append(seen, it.ID)
			}
		}
		if len(seen)+len(stuck) != len(items) {
			t.Fatalf("%d items became %d and %d stuck", len(items), len(seen), len(stuck))
		}
	})
}
