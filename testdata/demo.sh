#!/bin/sh
# Runs the main job twice in a temporary directory: the first run creates the links,
# the second one finds them.
set -u
unset BULK_DB # it may name a store that is in use
links=$(pwd)/testdata/links.csv
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$links" "$dir"
cd "$dir" || exit 1
show() { printf '\n$ %s\n' "$*"; "$@"; }
show bulk run links.csv --workspace demo --base-url https://sho.rt
[ $? -eq 3 ] || exit 1 # done, but rows were rejected
show cut -d, -s -f1-3,5-9 links.bulk/mapping.csv || exit 1
show cut -d, -f1-5 links.bulk/rejects.csv || exit 1
show bulk run links.csv --workspace demo --base-url https://sho.rt --out again
[ $? -eq 3 ] || exit 1
show bulk explain --workspace 42 'HTTP://Example.com:80/api/users?name=john&id=123'
