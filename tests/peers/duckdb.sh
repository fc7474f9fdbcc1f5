#!/bin/bash
# DuckDB reads what 'rtscope convert --to parquet' writes, the traces of several hosts as one table:
# rows of each event class equal the trace's. Prints "skipped: why" and succeeds where the peer
# cannot be installed, or rtscope was built without the feature 'arrow'.
#
# usage: duckdb.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root)
set -euo pipefail

rtscope=${1:?"usage: $0 RTSCOPE [TRACE…]"}
shift
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/duckdb-2.0.0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "skipped: DuckDB reads what is written: $*"
    exit 0
}

install_peer() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q duckdb==2.0.0 || return 1
}

"$rtscope" convert -h | grep -q parquet || skip "build with --features arrow"
install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "$(tail -n 1 "$scratch/install.log")"
}
if [ $# -eq 0 ]; then
    "$rtscope" record -o "$scratch/recording" --duration 1s
    set -- "$scratch/recording"
fi
"$cache/bin/python" "$here/duckdb_counts.py" "$rtscope" "$@"
