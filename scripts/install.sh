#!/usr/bin/env bash
# After this, $VENV holds what the lock file $1 names (default: requirements.lock, all that tests need), and holdfast
# itself, editable. requirements-run.lock names a part of that at the same versions: what `make run` needs.
# Needs a python3 >= 3.11. Uses uv for speed where its wheel installs, plain pip where it does not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
LOCK=${1:-requirements.lock}

say() { echo "install: $* ($SECONDS s so far)"; }
die() { echo "install: $*" >&2; exit 1; }

command -v "$PYTHON" >/dev/null || die "no $PYTHON found; install Python 3.11 or newer, or say make install PYTHON=/path/to/python3"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$("$PYTHON" --version) is too old; Holdfast needs 3.11 or newer (make install PYTHON=/path/to/python3)"

# Debian splits venv and ensurepip off python3.
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    package="python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "install: adding $package"
        apt-get update -qq -o DPkg::Lock::Timeout=300
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 "$package" >/dev/null
    else
        die "$PYTHON has no venv module; install $package (as root: apt-get install $package)"
    fi
fi

# An environment whose interpreter is gone (moved clone, upgraded system) is made again.
if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    say "1 of 4: making $VENV with $("$PYTHON" --version)"
    rm -rf "$VENV"
    "$PYTHON" -m venv "$VENV"
fi
python="$VENV/bin/python"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# Behind a proxy with a certificate of its own, only the system's store knows it; uv looks elsewhere by default.
export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS:-true}

bootstrap=$(mktemp)
trap 'rm -f "$bootstrap"' EXIT
awk '/^uv==/ {found = 1} found {print} found && !/\\$/ {exit}' requirements.lock >"$bootstrap"

packages=$(grep -c '==' "$LOCK")
with_uv() {
    say "2 of 4: fetching uv, which installs quickly"
    "$python" -m pip install -q --require-hashes -r "$bootstrap" || return
    say "3 of 4: fetching $packages packages; the first time this takes about a minute"
    # uv tells on standard error what it fetches; its list of all packages at the end is of no use to anybody.
    "$VENV/bin/uv" pip install --compile-bytecode --python "$python" --require-hashes -r "$LOCK" 2> >(grep -v '^ [+~-] ' >&2)
}
with_uv || {
    say "uv did not manage, going on with pip, which takes some minutes"
    "$python" -m pip install --progress-bar on --require-hashes -r "$LOCK"
}
say "4 of 4: installing holdfast itself"
# hatchling is in the lock, so that building the editable install fetches nothing.
"$python" -m pip install -q --no-deps --no-build-isolation -e .
say "$VENV is ready"
