#!/bin/sh
# Makes the picture of README: the first screen of the page of a run over testdata/links.csv. It needs bulk
# and Chromium. (Make readme-picture calls it.)
set -eu
unset BULK_DB # it may name a store that is in use
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/../links.csv" "$dir"
cd "$dir"
code=0
bulk run links.csv --workspace demo --base-url https://sho.rt --as-of 2026-07-01T09:30:00Z --html --quiet || code=$?
[ $code -eq 3 ] # done, but rows were rejected
for browser in chromium chromium-browser google-chrome; do
	command -v $browser >/dev/null && break
done
HOME=$dir $browser --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$dir/profile" \
	--window-size=1200,760 --screenshot="$here/report.png" "file://$dir/links.bulk/report.html"
