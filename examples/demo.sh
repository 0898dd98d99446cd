#!/usr/bin/env bash
# The main job, end to end. So far: check, explain and evolve a schema and its queries; create a graph, branch it and
# look at its history.
set -euo pipefail
here="$(cd "$(dirname "$0")/aviation" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

bold='' plain=''
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
note() { printf '\n# %s\n' "$*"; }

cd "$here"
say omnigraph version
say omnigraph lint --schema schema.pg --query queries.gq
say omnigraph explain --schema schema.pg --query queries.gq colleagues
say omnigraph fmt --check .

note 'A mistake is found before any data is touched:'
say omnigraph lint --schema schema.pg --query mistakes.gq || true

note 'How would the next schema change an existing graph?'
say omnigraph schema plan --from schema.pg --to schema-next.pg

note 'A graph, a branch, and where they stand:'
cp schema.pg "$work"
cd "$work"
say omnigraph init --schema schema.pg aviation.omni --as ada
say omnigraph branch create review/1 --as bo
say omnigraph branch list
say omnigraph commit list
say omnigraph snapshot --branch review/1
