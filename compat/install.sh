#!/usr/bin/env bash
# Installs OpenCode's client, server and SDK, as the lock file names them, into compat/node_modules. No script of a package runs:
# the program is called by its path. A registry may be slow or away for a moment, so that it is asked several times; then this fails.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v npm >/dev/null; then
	echo "npm is missing: install Node 20 or later" >&2
	exit 1
fi
whole() {
	[[ -x node_modules/opencode-linux-x64/bin/opencode && -f node_modules/@opencode-ai/sdk/dist/v2/index.js ]] &&
		cmp -s package-lock.json node_modules/.installed
}
if whole; then
	exit 0
fi
for try in 1 2 3 4 5; do
	if npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then
		cp package-lock.json node_modules/.installed
		whole && exit 0
		echo "npm has installed something else than the lock file names" >&2
		exit 1
	fi
	echo "npm ci failed (try $try of 5)" >&2
	((try == 5)) || sleep $((try * 10))
done
exit 1
