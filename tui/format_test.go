package tui

import (
	"testing"
	"time"

	"centurion"
	"centurion/event/toast"
)

func TestFormats(t *testing.T) {
	tests := []struct{ got, want string }{
		{money(centurion.Usage{USD: 0.0123}), "$0.0123"},
		{money(centurion.Usage{}), "$0.00"},
		{money(centurion.Usage{USD: 12.3456}), "$12.35"},
		{money(centurion.Usage{USD: 1, Unpriced: true}), "$?"},
		{count(999), "999"},
		{count(1000), "1k"},
		{count(12_345), "12.3k"},
		{count(99_949), "99.9k"},
		{count(99_950), "100k"},
		{count(999_499), "999k"},
		{count(999_500), "1M"},
		{count(5_000_000), "5M"},
		{count(123_456_789), "123M"},
		{span(-time.Second), "0s"},
		{span(59 * time.Second), "59s"},
		{span(62 * time.Second), "1m02s"},
		{span(125 * time.Minute), "2h05m"},
		{span(76 * time.Hour), "3d04h"},
		{precise(1240 * time.Millisecond), "1.2s"},
		{precise(12 * time.Second), "12s"},
		{costRange(0.1, 0.4), "about $0.10–$0.40"},
		{costRange(0, 0.4), "about $0.40"},
		{costRange(0, 0), ""},
		{slots(toast.List{}), ""},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// A bar is full only when all is done.
func TestBar(t *testing.T) {
	for _, tt := range []struct {
		done, total, w int
		full, empty    string
	}{
		{4, 7, 7, "████", "░░░"}, {0, 3, 3, "", "░░░"}, {3, 3, 3, "███", ""}, {99, 100, 10, "█████████", "░"}, {1, 0, 5, "", ""}, {9, 3, 3, "███", ""},
	} {
		if full, empty := bar(tt.done, tt.total, tt.w); full != tt.full || empty != tt.empty {
			t.Errorf("bar(%d, %d, %d) = %q %q", tt.done, tt.total, tt.w, full, empty)
		}
	}
}
