#!/usr/bin/env bash
# The main job, end to end. So far: check, explain and evolve a schema and its queries.
set -euo pipefail
cd "$(dirname "$0")/aviation"

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }

say omnigraph version
say omnigraph lint --schema schema.pg --query queries.gq
say omnigraph explain --schema schema.pg --query queries.gq colleagues
say omnigraph fmt --check .

printf '\n# A mistake is found before any data is touched:\n'
say omnigraph lint --schema schema.pg --query mistakes.gq || true

printf '\n# How would the next schema change an existing graph?\n'
say omnigraph schema plan --from schema.pg --to schema-next.pg
