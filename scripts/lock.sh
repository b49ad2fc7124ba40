#!/usr/bin/env bash
# After this, requirements.lock pins runtime, all extras and the dev group by hash, for Python 3.11 and newer, and
# requirements-run.lock pins, at the same versions, what `make run` needs: the extras server and celery, and what builds the
# editable install.
# What is already locked stays as it is unless --upgrade or --upgrade-package NAME is given.
# `uv pip compile` and not `uv export`: it keeps the pins of the file it rewrites, and needs no uv.lock, which names hosts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
drafts=$(mktemp -d)
trap 'rm -rf "$drafts"' EXIT
all=$drafts/requirements.lock
run=$drafts/requirements-run.lock
compile=(.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate)

cat requirements.lock >"$all" 2>/dev/null || true
"${compile[@]}" --all-extras --group dev "$@" -o "$all" pyproject.toml
printf 'hatchling\neditables\n' | "${compile[@]}" --extra server --extra celery -c "$all" -o "$run" pyproject.toml -
for draft in "$all" "$run"; do
    if grep -nE '://|^-|^holdfast' "$draft"; then
        echo "lock: the lines above name a host, an option or holdfast itself; nothing is changed" >&2
        exit 1
    fi
done
for draft in "$all" "$run"; do
    cat "$draft" >"$(basename "$draft")"
    echo "lock: $(grep -c '==' "$draft") packages in $(basename "$draft")"
done
