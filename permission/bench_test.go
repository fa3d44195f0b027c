package permission

import (
	"slices"
	"testing"
	"time"
)

// percentiles reports the 50th and the 99th percentile of what the cases take, each the median of its runs: the worst case counts, not
// the busiest moment of the machine.
func percentiles(b *testing.B, cases []func()) {
	runs := make([][]time.Duration, len(cases))
	for b.Loop() {
		for i, run := range cases {
			start := time.Now()
			run()
			runs[i] = append(runs[i], time.Since(start))
		}
	}
	var took []time.Duration
	for _, r := range runs {
		slices.Sort(r)
		took = append(took, r[len(r)/2])
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-us")
}

// BenchmarkDecideScript takes the scripts of the table of disguises.
func BenchmarkDecideScript(b *testing.B) {
	levels := allowAllBut(forbidden...)
	var cases []func()
	for _, d := range disguises(b) {
		cases = append(cases, func() { DecideShell(levels, d.script, testDir, testHome, false) })
	}
	percentiles(b, cases)
}

// BenchmarkDecideRule takes accesses of files, with the default rules and twenty of a person's.
func BenchmarkDecideRule(b *testing.B) {
	var mine []Rule
	for _, p := range []string{"*.lock", "dist/*", "vendor/*", "*.min.js", "docs/*.md", "secret/*", "a/b/*", "*_test.go", "x?y", "build/*"} {
		mine = append(mine, Rule{"edit", p, Deny}, Rule{"read", p, Ask})
	}
	levels := person(mine...)
	var cases []func()
	for _, p := range []string{"a.go", "internal/server/handlers/users_test.go", ".env", "node_modules/react/cjs/react.development.js", "dist/x", "secret/key.pem", "/etc/passwd"} {
		for _, permission := range []string{"read", "edit", "external_directory", "webfetch"} {
			cases = append(cases, func() { Decide(levels, permission, []string{p}) })
		}
	}
	percentiles(b, cases)
}
