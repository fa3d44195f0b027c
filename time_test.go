package centurion_test

import (
	"encoding/json"
	"testing"
	"time"

	"centurion"
)

func TestTimeJSON(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	for want, in := range map[string]centurion.Time{
		`null`:                       {},
		`"2026-03-01T11:59:58.000Z"`: {Time: time.Date(2026, 3, 1, 12, 59, 58, 0, berlin)},
		`"2026-03-01T11:59:58.007Z"`: {Time: time.Date(2026, 3, 1, 11, 59, 58, 7_999_999, time.UTC)},
		`"1970-01-01T00:00:00.001Z"`: centurion.MillisTime(1),
	} {
		b, err := json.Marshal(in)
		if err != nil || string(b) != want {
			t.Errorf("%v: %s, %v, want %s", in, b, err, want)
		}
		var back centurion.Time
		if err := json.Unmarshal(b, &back); err != nil || !back.Equal(in.Truncate(time.Millisecond)) || back.IsZero() != in.IsZero() {
			t.Errorf("%s comes back as %v, %v", b, back, err)
		}
	}
	var got struct{ T centurion.Time }
	if err := json.Unmarshal([]byte(`{"T":"2026-03-01T12:59:58+01:00"}`), &got); err != nil || got.T.Millis() != 1772366398000 {
		t.Errorf("got %v, %v", got.T, err)
	}
	if err := json.Unmarshal([]byte(`{"T":null}`), &got); err != nil || !got.T.IsZero() {
		t.Errorf("null leaves %v, %v", got.T, err)
	}
	for _, bad := range []string{`"yesterday"`, `1772366398000`, `""`, `"2026-03-01"`, `{}`} {
		if err := json.Unmarshal([]byte(bad), &got.T); err == nil {
			t.Errorf("%s was read as %v", bad, got.T)
		}
	}
	for year, ok := range map[int]bool{-1: false, 0: true, 9999: true} {
		if b, err := json.Marshal(centurion.Time{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}); (err == nil) != ok {
			t.Errorf("the year %d: %s, %v", year, b, err)
		}
	}
	if d := time.Since(centurion.Now().Time); d < 0 || d > time.Minute {
		t.Errorf("now is %v ago", d)
	}
	if b, err := json.Marshal(centurion.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Errorf("the year 10000 was written as %s, which nobody can read", b)
	}
}

// A zero instant is left out where the field says omitzero, and otherwise null: never the year 1.
func TestTimeZeroInStruct(t *testing.T) {
	b, err := json.Marshal(centurion.Task{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	if v, there := fields["created"]; v != nil || !there {
		t.Errorf("created is %v", v)
	}
	if v, there := fields["started"]; there {
		t.Errorf("started is %v", v)
	}
}

func TestMillis(t *testing.T) {
	for _, ms := range []int64{0, 1, 1772366398007} {
		if got := centurion.MillisTime(ms).Millis(); got != ms {
			t.Errorf("%d comes back as %d", ms, got)
		}
	}
	if !centurion.MillisTime(0).IsZero() {
		t.Error("0 is not the zero Time")
	}
}

func FuzzTime(f *testing.F) {
	f.Add(`"2026-03-01T12:59:58.123456789+01:00"`)
	f.Add(`null`)
	f.Add(`"9999-12-31T23:59:59-23:59"`)
	f.Add(`"0000-01-01T00:00:00+01:00"`)
	f.Fuzz(func(t *testing.T, s string) {
		var first, second centurion.Time
		if json.Unmarshal([]byte(s), &first) != nil {
			return
		}
		b, err := json.Marshal(first)
		if err != nil {
			return
		}
		if err := json.Unmarshal(b, &second); err != nil || first.Millis() != second.Millis() {
			t.Errorf("%s is written as %s and read as %v, %v", s, b, second, err)
		}
	})
}
