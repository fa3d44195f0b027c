package centurion

import "math"

// Tokens counts the tokens of one or more model answers, in OpenCode's format. Input does not include tokens read from the provider's
// cache, and Output does not include Reasoning, so the sum of all fields is the processed number.
type Tokens struct {
	Input     int64      `json:"input"`
	Output    int64      `json:"output"`
	Reasoning int64      `json:"reasoning"`
	Cache     CacheUsage `json:"cache"`
}

// CacheUsage counts tokens that a provider read from or wrote to its prompt cache.
type CacheUsage struct {
	Read  int64 `json:"read"`
	Write int64 `json:"write"`
}

// Total returns the sum of all tokens.
func (t Tokens) Total() int64 { return t.Input + t.Output + t.Reasoning + t.Cache.Read + t.Cache.Write }

// Plus returns the field-wise sum.
func (t Tokens) Plus(u Tokens) Tokens {
	t.Input += u.Input
	t.Output += u.Output
	t.Reasoning += u.Reasoning
	t.Cache.Read += u.Cache.Read
	t.Cache.Write += u.Cache.Write
	return t
}

// Usage is the cost of some work. USD is meaningless if Unpriced is true: at least one answer came from a model without a known price.
type Usage struct {
	Tokens   Tokens  `json:"tokens"`
	USD      float64 `json:"cost"`
	Unpriced bool    `json:"unpriced,omitempty"`
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{Tokens: u.Tokens.Plus(v.Tokens), USD: roundUSD(u.USD + v.USD), Unpriced: u.Unpriced || v.Unpriced}
}

// Price is the price of a model, in USD per million tokens. Nil means unknown; zero means free.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
}

// Cost returns what t costs at price p, in USD. Reasoning tokens are billed as output.
func (p *Price) Cost(t Tokens) Usage {
	if p == nil {
		return Usage{Tokens: t, Unpriced: true}
	}
	usd := (float64(t.Input)*p.Input + float64(t.Output+t.Reasoning)*p.Output +
		float64(t.Cache.Read)*p.CacheRead + float64(t.Cache.Write)*p.CacheWrite) / 1e6
	return Usage{Tokens: t, USD: roundUSD(usd)}
}

// roundUSD rounds to a tenth of a micro-dollar, far below the cost of a request, to remove binary noise such as 0.30000000000000004.
func roundUSD(usd float64) float64 { return math.Round(usd*1e7) / 1e7 }
