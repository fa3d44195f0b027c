#!/usr/bin/env bash
# Runs the quick trials, as CI does. What they need beside Go is installed from Debian's packages where it is missing:
# strace lets disks fail, e2fsprogs makes the image whose power is cut. They need root, or a user who may mount.
set -euo pipefail
cd "$(dirname "$0")/.."
missing=()
command -v strace >/dev/null || missing+=(strace)
command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
if ((${#missing[@]})); then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq "${missing[@]}"
fi
exec go run ./cmd/trial -quick "$@"
