#!/usr/bin/env bash
# After this, requirements.lock pins runtime, all extras and the dev group by hash, for Python 3.11 and newer.
# What is already locked stays as it is unless --upgrade or --upgrade-package NAME is given.
# `uv pip compile` and not `uv export`: it keeps the pins of the file it rewrites, and needs no uv.lock, which names hosts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
draft=$(mktemp)
trap 'rm -f "$draft"' EXIT
cat requirements.lock >"$draft" 2>/dev/null || true
.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --all-extras --group dev "$@" -o "$draft" pyproject.toml
if grep -nE '://|^-|^holdfast' "$draft"; then
    echo "lock: the lines above name a host, an option or holdfast itself; requirements.lock is unchanged" >&2
    exit 1
fi
cat "$draft" >requirements.lock
echo "lock: $(grep -c '==' requirements.lock) packages"
