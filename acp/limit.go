package acp

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patterns find a usage limit in what an agent says, and when it is over.
var patterns = sync.OnceValue(func() (p struct{ limit, lone, stamp, in, unit, clock, seconds *regexp.Regexp }) {
	p.limit = regexp.MustCompile(`(?i)\b(usage|rate|session|weekly|5-hour|message|request|quota)[ _-]?limits?\b|\b(hit|reached|exceeded) your ([\w-]+ )?(limit|quota)|too many requests|quota (is )?exhausted|resource_exhausted|rateLimit`)
	p.lone = regexp.MustCompile(`(?i)^\W*(claude( ai| code)? )?(you've|you have|your|usage|session|weekly|5-hour|rate)\b.{0,40}\blimit\b`)
	p.stamp = regexp.MustCompile(`(?i)(?:\||resets?_?at"?[:= ]+"?|reset_?time"?[:= ]+"?)(\d{10})(\d{3})?\b`)
	p.in = regexp.MustCompile(`(?i)\b(?:in|after)\s+((?:\d+\s*(?:d|h|m|s|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?)\b[ ,and]*)+)`)
	p.unit = regexp.MustCompile(`(?i)(\d+)\s*([dhms])`)
	p.clock = regexp.MustCompile(`(?i)\bresets?\b[^\d|]{0,12}(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\b(?:\s*\(([\w/+-]+)\))?`)
	p.seconds = regexp.MustCompile(`(?i)(?:retry[_-]?after(?:_?seconds)?|resets?_in(?:_?seconds)?)"?[:= ]+"?(\d+)\b`)
	return p
})

// Limit reports whether a text says that a usage limit is reached, and how long it lasts at now; 0 if it does not say.
func Limit(text string, now time.Time) (wait time.Duration, limited bool) {
	p := patterns()
	if !p.limit.MatchString(text) {
		return 0, false
	}
	until := func(at time.Time) time.Duration { return max(at.Sub(now), time.Second) }
	if m := p.stamp.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		return until(time.Unix(seconds, 0)), true
	}
	if m := p.seconds.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 32)
		return time.Duration(seconds) * time.Second, true
	}
	if m := p.in.FindStringSubmatch(text); m != nil {
		for _, part := range p.unit.FindAllStringSubmatch(m[1], -1) {
			n, _ := strconv.ParseInt(part[1], 10, 32)
			unit := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}[strings.ToLower(part[2])]
			wait += time.Duration(n) * unit
		}
		return wait, true
	}
	if m := p.clock.FindStringSubmatch(text); m != nil {
		return until(next(now, m)), true
	}
	return 0, true
}

// next is the next time at which a clock shows what m says: hour, minute, am or pm, zone.
func next(now time.Time, m []string) time.Time {
	hour, _ := strconv.Atoi(m[1])
	minute, _ := strconv.Atoi(m[2]) // "" is 0
	switch strings.ToLower(m[3]) {
	case "am":
		hour %= 12
	case "pm":
		hour = hour%12 + 12
	}
	if zone, err := time.LoadLocation(m[4]); err == nil && m[4] != "" {
		now = now.In(zone)
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// maxNotice is the longest answer that may be nothing but the notice of a limit, in bytes: some agents end their turn with it.
const maxNotice = 250

// IsLimit reports whether a whole answer is nothing but the notice of a usage limit.
func IsLimit(answer string) bool {
	answer = strings.TrimSpace(answer)
	return len(answer) <= maxNotice && patterns().lone.MatchString(answer)
}
