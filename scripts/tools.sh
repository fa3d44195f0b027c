#!/usr/bin/env bash
# Installs what the tests and trials need beside Go, from Debian's packages, where it is missing: strace lets disks fail and
# shows which files are synced, e2fsprogs makes the image whose power is cut, systemd reads the unit that we write.
set -euo pipefail
missing=()
command -v strace >/dev/null || missing+=(strace)
command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
command -v systemd-analyze >/dev/null || missing+=(systemd)
if ((${#missing[@]})); then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq "${missing[@]}"
fi
