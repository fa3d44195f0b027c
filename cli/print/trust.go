package print

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"centurion/text"
	"centurion/trust"
)

// Trust shows what the files of a project run, allow or send once they are trusted: each item with + if it is new, - if it is gone
// and = if it was trusted before.
func Trust(w io.Writer, states []trust.State) error {
	var b strings.Builder
	for _, s := range states {
		fmt.Fprintf(&b, "%s %s\n", text.Clean(s.Name), text.If(s.Trusted, "is trusted", s.Why()))
		for _, i := range s.Items {
			fmt.Fprintf(&b, "  %s %s:%d  %-10s  %s\n", i.Op, text.Clean(s.Name), i.Line, i.Kind, faithful(i.Text))
		}
	}
	if b.Len() == 0 {
		b.WriteString("no file of this project needs your trust\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// faithful returns a text as it stands, or quoted if a terminal would show it otherwise: a line break can hide a command behind a #.
func faithful(s string) string {
	return text.If(text.Clean(s) == s, s, strconv.Quote(s))
}
