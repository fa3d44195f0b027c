package main

import (
	"net"
	"testing"

	"centurion"
)

// Contract "Server": the server listens on this machine only; a port that was not asked for gives way to the next free one.
func TestServeListens(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", "192.0.2.1", "example.com", ""} {
		if l, err := (&serving{hostname: host}).listen(true); centurion.KindOf(err) != centurion.KindUsage {
			if l != nil {
				l.Close()
			}
			t.Errorf("it listens on %q: %v", host, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	if l, err := (&serving{hostname: "127.0.0.1", port: port}).listen(true); centurion.KindOf(err) != centurion.KindConflict {
		if l != nil {
			l.Close()
		}
		t.Errorf("a port that is taken: %v", err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		l, err := (&serving{hostname: host, port: port}).listen(false)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().(*net.TCPAddr).Port; got <= port {
			t.Errorf("on %s it listens on port %d, not on one after %d", host, got, port)
		}
		l.Close()
	}
}
