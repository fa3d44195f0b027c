#!/usr/bin/env bash
# Drives OpenCode's terminal client in tmux, against OpenCode's own server or ours, and judges by the words on its screen. The arguments
# are those of run.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${1:-}
shift || true
if ! command -v tmux >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends tmux
fi
source "$here/start.sh"
cd "$here"
clean TARGET="$target" BASE_URL="$url" OTHER_DIRECTORY="$other" SERVE="${serve[*]}" LOGS="$work" CLIENT="$here/node_modules/opencode-linux-x64/bin/opencode" node tui.mjs "$@" & pids+=($!)
wait "$!"
