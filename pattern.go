package centurion

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first used. Compiled at the start, all of them would take a tenth of it, in
// each process of a confined workspace, too. It panics at the first use if the expression is invalid.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
