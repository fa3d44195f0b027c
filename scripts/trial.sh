#!/usr/bin/env bash
# Runs the quick trials, as CI does. They need root, or a user who may mount.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/tools.sh
exec go run ./cmd/trial -quick "$@"
