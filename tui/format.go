package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"centurion"
	"centurion/event/toast"
)

// money formats USD with the digits that matter: hundredths of a cent below a dollar, cents from there on.
func money(u centurion.Usage) string {
	if u.Unpriced {
		return "$?"
	}
	return usd(u.USD)
}

func usd(v float64) string {
	if v == 0 || v >= 1 {
		return fmt.Sprintf("$%.2f", v)
	}
	return fmt.Sprintf("$%.4f", v)
}

// count formats a number in at most five characters: 950, 12.3k, 4.1M.
func count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 99_950:
		return short(float64(n)/1e3) + "k"
	case n < 999_500:
		return strconv.FormatInt((n+500)/1000, 10) + "k"
	case n < 99_950_000:
		return short(float64(n)/1e6) + "M"
	}
	return strconv.FormatInt((n+500_000)/1_000_000, 10) + "M"
}

func short(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }

// span formats a duration in whole seconds with its two largest units: 0s, 59s, 1m02s, 2h05m, 3d04h.
func span(d time.Duration) string { return toast.Span(d) }

// precise is span for how long something took: tenths below ten seconds.
func precise(d time.Duration) string {
	if d >= 0 && d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}

// bar draws done of total in w cells. Anything short of all leaves at least one cell empty.
func bar(done, total, w int) (full, empty string) {
	if total <= 0 || w <= 0 {
		return "", ""
	}
	n := min(w, done*w/total)
	return strings.Repeat("█", n), strings.Repeat("░", w-n)
}

// words spells an error's kind for people: rate_limit is "rate limit".
func words(kind string) string {
	if kind == "gate" {
		return "a rate limit that another session met"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// dots joins what is not empty with the dot that separates facts on a line.
func dots(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}
