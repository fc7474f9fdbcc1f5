#!/bin/bash
# Perfetto's trace_processor and 'rtscope view' on the same trace, which our exporter wrote for it: time until
# the first answer, memory, side by side. Prints "skipped: why" and succeeds where the peer cannot be had.
#
# usage: trace_processor.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root);
#        TRACE_PROCESSOR names the program where it is there already
set -euo pipefail

rtscope=${1:?"usage: $0 RTSCOPE TRACE…"}
shift
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/perfetto-0.59.1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

install_peer() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q perfetto==0.59.1 protobuf==7.36.2 || return 1
}

install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    echo "skipped: trace_processor beside rtscope view: $(tail -n 1 "$scratch/install.log")"
    exit 0
}
if [ $# -eq 0 ]; then
    "$rtscope" record -o "$scratch/recording" --duration 1s
    set -- "$scratch/recording"
fi
"$cache/bin/python" "$here/trace_processor_beside.py" "$rtscope" "$@"
