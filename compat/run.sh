#!/usr/bin/env bash
# Runs the suite against a server: `run.sh opencode` against OpenCode's own, which shows that the suite is right, and `run.sh centurion`
# against ours ($CENTURION, or the one in the path). Further arguments are patterns; only tests whose names match one of them run.
# OpenCode's own server fetches ripgrep unless there is one; without, the test that searches texts is left out.
# KEEP=1 keeps the directory with the logs, which is also kept when a test fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-}
shift || true
source "$here/start.sh"
mkdir "$work/bin"
case $target in
opencode) ln -s "${serve[0]}" "$work/bin/opencode" ;;
centurion) "${serve[0]}" serve --install-launcher "$work/bin" >&2 ;;
esac
cd "$here"
(PATH="$work/bin:$PATH" clean TARGET="$target" BASE_URL="$url" OTHER_DIRECTORY="$other" RIPGREP="$(command -v rg || true)" node suite.mjs "$@")
