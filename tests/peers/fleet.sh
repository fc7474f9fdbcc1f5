#!/bin/bash
# DuckDB and Spark read a fleet that was made up, through the monitor's own writer, and both give
# the planted answers. Prints "skipped: why" and succeeds where they cannot be installed.
#
# usage: fleet.sh GENERATE [HOSTS DAYS]
set -euo pipefail

generate=${1:?"usage: $0 GENERATE [HOSTS DAYS]"}
hosts=${2:-10} days=${3:-14}
here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/fleet-duckdb-2.0.0-pyspark-4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "skipped: DuckDB and Spark read a fleet: $*"
    exit 0
}

install_peers() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q duckdb==2.0.0 'pyspark>=4,<5' || return 1
}

install_peers >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "$(tail -n 1 "$scratch/install.log")"
}
mkdir "$scratch/fleet"
"$generate" "$scratch/fleet" "$hosts" "$days"
"$cache/bin/python" "$here/fleet_answers.py" "$here/../../packaging/fleet" "$scratch/fleet"
