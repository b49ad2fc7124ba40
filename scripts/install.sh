#!/usr/bin/env bash
# After this, $VENV holds exactly what requirements.lock names, and holdfast itself, editable.
# Needs a python3 >= 3.11. Uses uv for speed where its wheel installs, plain pip where it does not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}

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

with_uv() {
    "$python" -m pip install -q --require-hashes -r "$bootstrap" &&
        "$VENV/bin/uv" pip install -q --compile-bytecode --python "$python" --require-hashes -r requirements.lock
}
with_uv || {
    echo "install: uv did not manage, going on with pip"
    "$python" -m pip install -q --require-hashes -r requirements.lock
}
# hatchling is in the lock, so that building the editable install fetches nothing.
"$python" -m pip install -q --no-deps --no-build-isolation -e .
echo "install: $VENV is ready ($("$python" --version))"
