#!/usr/bin/env bash
# Installs MCP's conformance suite, as the lock file names it. It needs Node 22, which the lock file has for Linux.
set -euo pipefail
cd "$(dirname "$0")"
cmp -s package-lock.json node_modules/.installed ||
	{ npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.installed; }
