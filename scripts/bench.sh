#!/usr/bin/env bash
# Prints the figures of docs/performance.md. They come from a scripted model over loopback HTTP and from the disk of the
# temporary directory; the cost of a bare fsync there is printed beside them.
set -euo pipefail
cd "$(dirname "$0")/.."
run() { go test "$1" -run '^$' -bench "$2" -benchtime "$3" | grep -E '^Benchmark'; }
run ./store '^BenchmarkSync$' 200x
run ./store "^BenchmarkUpdate\$" 2000x
run ./store "^BenchmarkUpdate50\$" 20x
run ./cmd/centurion '^BenchmarkVersion$' 20x
run ./cmd/centurion '^BenchmarkPrompt$' 20x
run ./cmd/centurion '^BenchmarkFirstRequest$' 20x
run ./session '^BenchmarkRound$' 500x
run ./session '^BenchmarkSessions$' 5x
run ./orchestrator '^BenchmarkMission50$' 3x
run ./server '^BenchmarkToken$' 3x
run ./server/opencode/v1 '^Benchmark(Fact|List)$' 50x
run ./cmd/centurion '^BenchmarkServe' 5x
run ./tui '^Benchmark' 100x
run ./provider '^BenchmarkStream$' 500x
run ./worktree '^Benchmark(Take|Snapshot|RebaseAdvance|ShadowSave)$' 20x
run ./worktree '^BenchmarkTake50$' 1x
run ./worktree '^BenchmarkWorkspaces$' 1x
run ./sandbox '^BenchmarkConfined$' 200x
run ./plugin '^BenchmarkHook$' 3000x
run ./cmd/centurion '^BenchmarkPlugin50$' 5x
run ./verify '^BenchmarkProve$' 10x
run ./orchestrator '^BenchmarkMerge$' 10x
run ./orchestrator '^BenchmarkSideBySide$' 1x
run ./permission '^BenchmarkDecide(Script|Rule)$' 100x
