#!/usr/bin/env bash
# Installs published plugins of OpenCode's with npm, about 640 MB in the user's cache directory, and runs them, unchanged, as the program
# does, each also in a whole mission. Without npm or Bun this fails; so do the plugin package's other tests with Bun.
set -euo pipefail
cd "$(dirname "$0")/.."
go vet -tags published ./plugin ./cmd/centurion
CI=1 go test -tags published -count=1 ./plugin "$@"
go test -tags published -count=1 -run '^TestPublishedMissions$' ./cmd/centurion
