#!/usr/bin/env bash
# The main job, end to end: check and explain a schema and its queries; create a graph, load it, change it, branch it,
# query it, merge the branch, look at its history, change its schema; load and export it on Spark.
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

note 'A graph, filled and changed; each step is one commit:'
cp schema.pg schema-next.pg queries.gq people.jsonl "$work"
cd "$work"
export OMNIGRAPH_EMBED_PROVIDER=mock
say omnigraph init --schema schema.pg aviation.omni --as ada
say omnigraph load --data people.jsonl --mode append --as ada
say omnigraph mutate hire --query queries.gq --params '{"call": "eve", "base": "alpha", "trusted_by": "ace"}' --as bo

note 'A change that breaks a rule leaves nothing behind:'
say omnigraph mutate hire --query queries.gq --params '{"call": "Fay", "base": "nowhere", "trusted_by": "ace"}' || true

note 'A branch of its own for review, and where everything stands:'
say omnigraph ingest --branch review/1 --data people.jsonl --as cy
say omnigraph branch list
say omnigraph commit list --branch review/1
say omnigraph snapshot --branch review/1

note 'Questions, on the branch and in the past:'
say omnigraph query colleagues --query queries.gq --params '{"call": "ace"}' --branch review/1
say omnigraph index
say omnigraph explain colleagues --query queries.gq --params '{"call": "ace"}' --analyze
say omnigraph query related_reports --query queries.gq --params '{"text": "engine failure", "k": 3}'
say omnigraph query -e 'query all() { match { $p: Pilot } return { $p.call, $p.hours } order { $p.call } limit 3 }' --snapshot 2 --format jsonl

note 'What the branch has changed, reviewed, merged and looked back at:'
say omnigraph mutate hire --query queries.gq --params '{"call": "fay", "base": "alpha", "trusted_by": "eve"}' --branch review/1 --as cy
say omnigraph diff main review/1 --type Pilot
say omnigraph branch merge review/1 --preview
say omnigraph branch merge review/1 --delete-branch --as ada
say omnigraph blame Pilot fay
say omnigraph log --limit 3 --stat

note 'The next schema, with the rows that are there:'
say omnigraph schema apply --schema schema-next.pg --as ada
say omnigraph schema history

note 'In bulk, on Spark: a directory out, and into another graph, as one commit:'
say omnigraph export --out all/ --format parquet --ordered
say omnigraph init --schema schema-next.pg again.omni
say omnigraph load again.omni --data all/ --mode append --engine spark --message 'all at once'
say omnigraph query -e 'query all() { match { $p: Pilot } return { $p.call, $p.flight_hours } order { $p.call } limit 3 }' --store again.omni
