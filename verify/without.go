package verify

import (
	"slices"
	"strings"

	"centurion"
)

// WithoutWork is what a check printed when it was run last without the work, or on the work where it was never run without it: its head and its
// tail, of at most limit bytes together.
func WithoutWork(r centurion.Receipt, limit int) string {
	out := r.Output
	for _, run := range slices.Backward(r.Runs) {
		if run.Kind == centurion.RunRed {
			out = run.Output
			break
		}
	}
	if out = strings.TrimSpace(out); len(out) <= limit {
		return out
	}
	return strings.ToValidUTF8(out[:limit/2], "") + "\n[…]\n" + strings.ToValidUTF8(out[len(out)-limit/2:], "")
}
