package doctor

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What is said of a terminal is its kind, its size and its colours; a small one is told to be made larger.
func TestTerminal(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no terminal can be made here: ", err)
	}
	defer tty.Close()
	term := "xterm-256color"
	d := doctor{Options{Out: tty, Env: func(name string) string { return map[string]string{"TERM": term}[name] }}}
	small := "make it at least 60×15: lines are cut"
	for _, tt := range []struct {
		w, h uint16
		want Finding
	}{
		{59, 15, Finding{"terminal", Warn, "xterm-256color, 59×15, 256 colours", small}},
		{60, 14, Finding{"terminal", Warn, "xterm-256color, 60×14, 256 colours", small}},
		{60, 15, Finding{"terminal", OK, "xterm-256color, 60×15, 256 colours", ""}},
	} {
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: tt.w, Row: tt.h}); err != nil {
			t.Fatal(err)
		}
		if got := d.terminal(t.Context()); len(got) != 1 || got[0] != tt.want {
			t.Errorf("%+v, want %+v", got, tt.want)
		}
	}
	term = ""
	if got := d.terminal(t.Context())[0]; got.Detail != "unknown type, 60×15, no colours" {
		t.Errorf("%+v", got)
	}
}
