package centurion

import (
	"bytes"
	"fmt"
	"time"
)

// timeLayout is RFC 3339 with milliseconds, always in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Time is an instant that marshals as RFC 3339 with milliseconds in UTC, like all times in the program's own JSON. OpenCode's formats
// use Unix milliseconds instead; see [Time.Millis].
type Time struct{ time.Time }

// Now returns the current instant.
func Now() Time { return Time{time.Now()} }

// MillisTime returns the instant that is ms milliseconds after the Unix epoch, and the zero Time for 0.
func MillisTime(ms int64) Time {
	if ms == 0 {
		return Time{}
	}
	return Time{time.UnixMilli(ms)}
}

// Millis returns the Unix time in milliseconds, and 0 for the zero Time.
func (t Time) Millis() int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// MarshalJSON writes the instant in UTC, or null for the zero Time. A year beyond 9999 is an error.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	u := t.UTC()
	if y := u.Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("time in the year %d cannot be written as RFC 3339", y)
	}
	return u.AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// UnmarshalJSON reads an RFC 3339 instant or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = Time{}
		return nil
	}
	v, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	if err != nil {
		return fmt.Errorf("time %s is not RFC 3339: %w", b, err)
	}
	t.Time = v
	return nil
}
