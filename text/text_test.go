package text

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

func TestFormats(t *testing.T) {
	tests := []struct{ got, want string }{
		{Cost(centurion.Usage{USD: 0.0123}), "$0.0123"},
		{Cost(centurion.Usage{}), "$0.00"},
		{Cost(centurion.Usage{USD: 12.3456}), "$12.35"},
		{Cost(centurion.Usage{USD: 1, Unpriced: true}), "$?"},
		{USD(0.5), "$0.50"},
		{USD(0.25), "$0.25"},
		{USD(0.125), "$0.125"},
		{USD(0.00001), "$0.00"},
		{USD(0.99999), "$1.00"},
		{USD(5), "$5.00"},
		{USD(-1.5), "$-1.50"},
		{Tokens(999), "999"},
		{Tokens(1000), "1k"},
		{Tokens(12_345), "12.3k"},
		{Tokens(99_949), "99.9k"},
		{Tokens(99_950), "100k"},
		{Tokens(999_499), "999k"},
		{Tokens(999_500), "1M"},
		{Tokens(5_000_000), "5M"},
		{Tokens(123_456_789), "123M"},
		{Tokens(99_949_999), "99.9M"},
		{Tokens(99_950_000), "100M"},
		{Tokens(12_345_678), "12.3M"},
		{Tokens(100_499), "100k"},
		{Tokens(100_500), "101k"},
		{Tokens(123_500_000), "124M"},
		{Tokens(123_499_999), "123M"},
		{Tokens(9_999_499_999), "9999M"},
		{Span(-time.Second), "0s"},
		{Span(time.Minute), "1m00s"},
		{Span(time.Hour), "1h00m"},
		{Span(24 * time.Hour), "1d00h"},
		{Span(59 * time.Second), "59s"},
		{Span(62 * time.Second), "1m02s"},
		{Span(125 * time.Minute), "2h05m"},
		{Span(76 * time.Hour), "3d04h"},
		{Took(0), "0s"},
		{Took(340 * time.Millisecond), "340ms"},
		{Took(1240 * time.Millisecond), "1.2s"},
		{Took(9940 * time.Millisecond), "9.9s"},
		{Took(9960 * time.Millisecond), "10s"},
		{Took(4 * time.Second), "4s"},
		{Took(time.Millisecond), "1ms"},
		{Took(time.Second - time.Millisecond), "999ms"},
		{Took(time.Second), "1s"},
		{Took(-time.Second), "0s"},
		{Took(10*time.Second - 100*time.Millisecond), "9.9s"},
		{Took(10_400 * time.Millisecond), "10s"},
		{Took(12 * time.Second), "12s"},
		{Took(100 * time.Second), "1m40s"},
		{Took(5 * time.Minute), "5m"},
		{Took(2 * time.Hour), "2h"},
		{Took(48 * time.Hour), "2d"},
		{Limit("max_cost", 0.5), "$0.50"},
		{Limit("max_duration", 90_000), "1m30s"},
		{Limit("max_tokens", 12_345), "12.3k"},
		{Dots("a", "", "b"), "a · b"},
		{strings.Join(Union([]string{"a", "b"}, "b", "c", "c"), ""), "abc"},
		{When(true, "a") + When(false, "b"), "a"},
		{If(true, "a", "b") + If(false, "c", "d"), "ad"},
		{strings.Join(Each([]string{"a", "b"}, strings.ToUpper), ""), "AB"},
		{Cut("größer", 3), "gr…"},
		{Cut("größer", 6), "größer"},
		{Fit("größer", 6), "größer"},
		{Fit("größer", 5), "größ…"},
		{Fit("größer", 1), "…"},
		{Fit("größer", 0), ""},
		{Fit("größer", -1), ""},
		{Fit("世界", 3), "世…"},
		{Pad("ab", 4), "ab  "},
		{Pad("abc", 2), "a…"},
		{PadLeft("ab", 4), "  ab"},
		{PadLeft("abc", 2), "a…"},
		{strings.Join(Wrap("one two", 7), "|"), "one two"},
		{strings.Join(Wrap("one two", 6), "|"), "one|two"},
		{strings.Join(Wrap("abc", 0), "|"), "a|b|c"},
		{strings.Join(WrapLines("one two\nthree", 5), "|"), "one|two|three"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
