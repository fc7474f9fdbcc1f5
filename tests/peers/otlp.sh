#!/bin/bash
# A receiver with OpenTelemetry's own schema takes what rtscope monitor sends, and its counts are
# those of the store. Prints "skipped: why" and succeeds where the schema cannot be installed, or
# nothing can be counted.
#
# usage: otlp.sh RTSCOPE
set -euo pipefail

rtscope=$(realpath "${1:?"usage: $0 RTSCOPE"}")
here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/otlp-proto-1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "skipped: a receiver of OTLP takes the monitor's metrics: $*"
    exit 0
}

install_peer() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q 'opentelemetry-proto>=1.20,<2' || return 1
}

[ "$(id -u)" = 0 ] || skip "counting needs root"
install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "$(tail -n 1 "$scratch/install.log")"
}
"$cache/bin/python" "$here/otlp_counts.py" "$rtscope" "$scratch"
