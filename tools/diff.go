package tools

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"centurion"
)

const (
	diffMaxInput = 1 << 20 // bytes; comparing more takes too long
	diffMaxLines = 80      // of one answer
	diffMaxBytes = 8 << 10
)

// diff returns a unified diff of two texts, shortened for reading.
func diff(name, before, after string) string {
	if len(before)+len(after) > diffMaxInput {
		return fmt.Sprintf("(%s before, %s now; too long to compare)", centurion.Count(lineCount(before), "line"),
			centurion.Count(lineCount(after), "line"))
	}
	plain := strings.NewReplacer("\r\n", "\n", "\r", "␍", string(bom), "")
	before, after = valid(plain.Replace(before)), valid(plain.Replace(after))
	full := udiff.Unified("a/"+name, "b/"+name, before, after)
	var b strings.Builder
	n, left := 0, 0
	for line := range strings.Lines(full) {
		if n == diffMaxLines || b.Len()+len(line) > diffMaxBytes {
			left++
			continue
		}
		n++
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "… %s more\n", centurion.Count(left, "line"))
	}
	return b.String()
}
