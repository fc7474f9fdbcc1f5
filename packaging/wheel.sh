#!/bin/sh
# Builds the wheel of the trace engine for Python: one for all versions, for every distribution whose
# libc is as new as its tag says. usage: packaging/wheel.sh TARGET_DIR [PROFILE [MATURIN'S FLAG…]]
set -eu

here=$(realpath "$(dirname "$0")")
mkdir -p "$1"
target=$(realpath "$1") profile=${2:-release}
shift
[ $# = 0 ] || shift
tools=$target/wheel-environment

python3 -m venv "$tools"
"$tools/bin/pip" install --quiet "$(grep '^maturin==' "$here/../python/tests/requirements.txt")"
CARGO_TARGET_DIR=$target "$tools/bin/maturin" build --profile "$profile" \
    --manifest-path "$here/../python/Cargo.toml" --out "$target/wheels" "$@"
