# Runs the tests named, or all of them. A test without a check fails: an empty test proves nothing.
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- length weight temperature cli
failed=0
for name in "$@"; do
  checks=0 bad=0
  check() { # check EXPECTED COMMAND...
    want=$1; shift
    got=$("$@" 2>&1)
    checks=$((checks + 1))
    if [ "$got" != "$want" ]; then bad=$((bad + 1)); echo "$name: $*: got '$got', want '$want'"; fi
  }
  . ./lib/common.sh
  if [ -f "lib/$name.sh" ]; then . "./lib/$name.sh"; fi
  . "./tests/$name.sh"
  if [ "$checks" -eq 0 ]; then echo "$name: no checks"; bad=1; fi
  if [ "$bad" -eq 0 ]; then echo "$name: $checks checks passed"; else failed=1; fi
done
exit $failed
