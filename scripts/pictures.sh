#!/usr/bin/env bash
# Makes the pictures of the README from a real run of `centurion demo`: the live view in a terminal, and the report in a browser.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/docs/pictures
missing=()
for tool in tmux aha chromium-headless-shell; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" fonts-dejavu-core
fi
work=$(mktemp -d)
trap 'tmux -L pictures kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$out" "$work/home" "$work/tmp"
CGO_ENABLED=0 go build -o "$work/centurion" ./cmd/centurion

tmux -L pictures -f /dev/null new-session -d -x 118 -y 34 \
  "env -u NO_COLOR HOME=$work/home TMPDIR=$work/tmp TERM=xterm-256color $work/centurion demo; sleep 60"
found=
for _ in $(seq 300); do # until three workers are shown as working
  tmux -L pictures capture-pane -p -e >"$work/live.ansi"
  if grep -q 'T4' "$work/live.ansi" && grep -q 'integrated' "$work/live.ansi"; then
    found=yes
    break
  fi
  sleep 0.1
done
[ -n "$found" ] || { echo "the live view never showed three workers:"; cat "$work/live.ansi"; exit 1; }

shot() { # FILE WIDTH HEIGHT PAGE
  chromium-headless-shell --no-sandbox --hide-scrollbars --force-device-scale-factor=1.5 --window-size="$2,$3" --screenshot="$1" "file://$4" 2>/dev/null
}
{
  echo '<meta charset="utf-8"><style>body{margin:0;background:#16181d}pre{margin:0;padding:14px;color:#d8dee9;font:14px/18px "DejaVu Sans Mono",monospace}</style>'
  echo '<pre>'
  aha --no-header --black <"$work/live.ansi"
  echo '</pre>'
} >"$work/live.html"
shot "$out/live.png" 1022 642 "$work/live.html"

report=
for _ in $(seq 300); do # the demonstration writes its report at the end
  report=$(find "$work/tmp" -name report.html -size +1k | head -1)
  [ -z "$report" ] || break
  sleep 0.1
done
[ -n "$report" ] || { echo "the demonstration wrote no report"; exit 1; }
sleep 1
sed -i "s#$work/tmp/centurion-demo-[0-9]*#~#g" "$report" # where it was made says nothing
shot "$out/report.png" 1100 900 "$report"
ls -l "$out"
