package centurion_test

import (
	"testing"

	"centurion"
)

func TestTokens(t *testing.T) {
	a := centurion.Tokens{Input: 1, Output: 2, Reasoning: 4, Cache: centurion.CacheUsage{Read: 8, Write: 16}}
	if got := a.Total(); got != 31 {
		t.Errorf("total %d", got)
	}
	want := centurion.Tokens{Input: 2, Output: 4, Reasoning: 8, Cache: centurion.CacheUsage{Read: 16, Write: 32}}
	if got := a.Plus(a); got != want {
		t.Errorf("sum %+v", got)
	}
}

func TestCost(t *testing.T) {
	price := &centurion.Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 2}
	for name, tt := range map[string]struct {
		price  *centurion.Price
		tokens centurion.Tokens
		usd    float64
	}{
		"nothing":             {price, centurion.Tokens{}, 0},
		"input":               {price, centurion.Tokens{Input: 1_000_000}, 1.25},
		"output":              {price, centurion.Tokens{Output: 1_000_000}, 10},
		"reasoning is output": {price, centurion.Tokens{Reasoning: 1_000_000}, 10},
		"cache read":          {price, centurion.Tokens{Cache: centurion.CacheUsage{Read: 1_000_000}}, 0.125},
		"cache write":         {price, centurion.Tokens{Cache: centurion.CacheUsage{Write: 1_000_000}}, 2},
		"all": {price, centurion.Tokens{Input: 1000, Output: 100, Reasoning: 10, Cache: centurion.CacheUsage{Read: 8000, Write: 500}},
			0.00125 + 0.0011 + 0.001 + 0.001},
		"free": {&centurion.Price{}, centurion.Tokens{Input: 5, Output: 5}, 0},
	} {
		got := tt.price.Cost(tt.tokens)
		if got != (centurion.Usage{Tokens: tt.tokens, USD: tt.usd}) {
			t.Errorf("%s: %+v, want %v", name, got, tt.usd)
		}
	}
	var unknown *centurion.Price
	tokens := centurion.Tokens{Input: 5}
	if got := unknown.Cost(tokens); got != (centurion.Usage{Tokens: tokens, Unpriced: true}) {
		t.Errorf("without a price: %+v", got)
	}
}

func TestUsagePlus(t *testing.T) {
	var sum centurion.Usage
	for range 3 {
		sum = sum.Plus(centurion.Usage{Tokens: centurion.Tokens{Input: 1}, USD: 0.1})
	}
	if want := (centurion.Usage{Tokens: centurion.Tokens{Input: 3}, USD: 0.3}); sum != want {
		t.Errorf("got %v, want %v", sum, want)
	}
	if one, other := sum.Plus(centurion.Usage{Unpriced: true}), (centurion.Usage{Unpriced: true}).Plus(sum); !one.Unpriced || one != other {
		t.Errorf("one unpriced part leaves %+v and %+v", one, other)
	}
}
