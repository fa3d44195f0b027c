#!/usr/bin/env bash
# Shows the mission report and the server's page to a real browser and looks at what it makes of them: complaints, overflow, contrast,
# keyboard, paper, what is live. A browser is installed from Debian's packages where none is there; without one this fails. It writes nothing into the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
found=
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null; then
		found=$name
		break
	fi
done
if [[ -z $found ]]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core ||
		apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core # releases that have no package of the shell alone
fi
go vet -tags browser ./internal/browser ./report ./server/page
before=$(git status --porcelain --ignored)
go test -tags browser -count=1 -run '^TestBrowser$' ./report ./server/page "$@"
if [[ $(git status --porcelain --ignored) != "$before" ]]; then
	echo "the browser test has written into the repository:" >&2
	git status --porcelain --ignored >&2
	exit 1
fi
