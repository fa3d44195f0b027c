#!/usr/bin/env bash
# Builds stripped archives of the program for every system and architecture, each with completion scripts, into dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
host=$(mktemp -d)
trap 'rm -rf "$host"' EXIT
go build -o "$host/centurion" ./cmd/centurion
version=$("$host/centurion" version | cut -d' ' -f2)
rm -rf dist
mkdir -p dist
for os in linux darwin windows; do
  for arch in amd64 arm64; do
    name=centurion-$version-$os-$arch
    dir=$host/$name
    mkdir -p "$dir/completion"
    exe=centurion
    [ "$os" = windows ] && exe=centurion.exe
    GOOS=$os GOARCH=$arch go build -trimpath -ldflags='-s -w' -o "$dir/$exe" ./cmd/centurion
    for shell in bash zsh fish powershell; do
      "$host/centurion" completion "$shell" >"$dir/completion/centurion.$shell"
    done
    cp README.md LICENSE CHANGELOG.md "$dir/"
    tar -C "$host" -czf "dist/$name.tar.gz" "$name"
    echo "dist/$name.tar.gz $(du -h "dist/$name.tar.gz" | cut -f1)"
  done
done
(cd dist && sha256sum ./*.tar.gz >SHA256SUMS)
