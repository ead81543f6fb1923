#!/bin/sh
# Runs the main job twice in a temporary directory: the first run creates the links,
# the second one finds them. Then a link expires.
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

# A link that expires: it is made, is answered 410, swept, and made anew.
printf 'url\nhttps://example.com/sale\n' > sale.csv
show bulk run sale.csv --workspace shop --expires-in 30d --as-of 2026-01-01 || exit 1
code=$(cut -d, -f6 sale.bulk/mapping.csv | tail -n 1)
show bulk resolve --workspace shop --as-of 2026-01-15 "$code" || exit 1
show bulk resolve --workspace shop --as-of 2026-02-15 "$code" || exit 1
show bulk sweep --as-of 2026-02-15 || exit 1
show bulk sweep --as-of 2026-02-17 || exit 1
show bulk resolve --workspace shop --as-of 2026-02-17 "$code" || exit 1
show bulk run sale.csv --workspace shop --expires-in 30d --as-of 2026-03-01 --out sale.again || exit 1
show bulk resolve --workspace shop --as-of 2026-03-15 "$code" || exit 1
