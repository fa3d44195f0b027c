package tui

import (
	"testing"

	"centurion/event/toast"
)

func TestFormats(t *testing.T) {
	tests := []struct{ got, want string }{
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
