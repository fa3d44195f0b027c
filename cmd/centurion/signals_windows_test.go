package main

import "os"

var jobSignals map[string]os.Signal
