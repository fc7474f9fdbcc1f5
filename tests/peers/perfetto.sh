#!/bin/bash
# Perfetto's published descriptors read what 'rtscope convert --to perfetto' writes: counts per track
# equal the trace's. Prints "skipped: why" and succeeds where the peer cannot be installed.
#
# usage: perfetto.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root)
set -euo pipefail

rtscope=${1:?"usage: $0 RTSCOPE [TRACE…]"}
shift
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/perfetto-0.59.1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

install_peer() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    # The package carries the descriptors; nothing else is fetched.
    "$cache/bin/pip" install -q perfetto==0.59.1 protobuf==7.36.2 || return 1
}

install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    echo "skipped: Perfetto reads what is written: $(tail -n 1 "$scratch/install.log")"
    exit 0
}
if [ $# -eq 0 ]; then
    "$rtscope" record -o "$scratch/recording" --duration 1s
    set -- "$scratch/recording"
fi
"$cache/bin/python" "$here/perfetto_counts.py" "$rtscope" "$@"
