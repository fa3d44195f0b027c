package verify

import (
	"slices"
	"strings"

	"centurion"
)

// WithoutWork is the output of the last run of a check without the work, or with it if there was no such run: its head and its tail, at most limit
// bytes in total.
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
