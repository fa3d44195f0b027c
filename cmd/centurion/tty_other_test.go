//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func tty(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("tty runs on Linux only; put [linux] before it")
}
