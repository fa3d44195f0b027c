// Package text owns how things are written for people and models: amounts of money, durations and large numbers, and what is removed
// from or marked in text of a model, a command or a repository before it is shown. It knows only the types of the root package. Counts
// with nouns, sizes and shortening are in the root, whose own messages need them: [centurion.Count], [centurion.Bytes] and
// [centurion.Clip].
package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
)

// Cost formats a cost, or "$?" if it includes a model without a known price.
func Cost(u centurion.Usage) string {
	if u.Unpriced {
		return "$?"
	}
	return USD(u.USD)
}

// USD formats an amount of dollars: in cents from one dollar up, below that with up to two more significant digits.
func USD(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	if v > 0 && v < 1 {
		s = strconv.FormatFloat(v, 'f', 4, 64)
		cents := strings.IndexByte(s, '.') + 3
		s = s[:cents] + strings.TrimRight(s[cents:], "0")
	}
	return "$" + s
}

// Tokens formats a large number in at most five characters: 950, 12.3k, 4.1M.
func Tokens(n int64) string {
	short := func(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }
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

// Limit formats a value of a mission's limit by the limit's name, such as max_cost: in USD, milliseconds or a number.
func Limit(name string, v float64) string {
	switch name {
	case "max_cost":
		return USD(v)
	case "max_duration":
		return Span(Millis(int64(v)))
	}
	return Tokens(int64(v))
}

// Millis converts the journal's milliseconds to a duration.
func Millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// Span formats a duration in whole seconds with its two largest units: 0s, 59s, 1m02s, 2h05m, 3d04h.
func Span(d time.Duration) string {
	s := max(0, int64(d/time.Second))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
}

// Took is [Span] for final durations: tenths of a second below ten seconds, milliseconds below one, and no zeros: 5m, 2h.
func Took(d time.Duration) string {
	switch {
	case 0 < d && d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case time.Second <= d && d < 10*time.Second:
		return strings.Replace(fmt.Sprintf("%.1fs", d.Seconds()), ".0", "", 1)
	}
	s := Span(d)
	if n := len(s) - len("00s"); n > 0 && s[n:n+2] == "00" {
		s = s[:n]
	}
	return s
}

// Dots joins the non-empty parts with the dot that separates facts on a line.
func Dots(parts ...string) string { return strings.Join(Filled(parts...), " · ") }

// Filled returns the parts that are not empty.
func Filled(parts ...string) []string {
	return slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" })
}

// Union returns the list with those of more at its end that it does not have yet, each once.
func Union[T comparable](list []T, more ...T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// When returns s if the condition holds, else "". Both arguments are evaluated.
func When(holds bool, s string) string { return If(holds, s, "") }

// If returns yes if the condition holds, else no. All arguments are evaluated.
func If(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

// Each returns the words for each of all, in their order.
func Each[T any](all []T, words func(T) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = words(v)
	}
	return out
}
