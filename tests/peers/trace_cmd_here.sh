#!/bin/bash
# Runs a command where trace-cmd works though this machine refuses the files of the function tracer
# (ftrace_enabled, set_ftrace_*): it writes them whatever is recorded, and ends when it cannot. In a
# mount namespace of its own it finds plain files there; events are the kernel's as ever. Needs root.
#
# usage: trace_cmd_here.sh COMMAND...    as in trace_cmd_here.sh target/release/bench record
set -euo pipefail

[ $# -gt 0 ] || { sed -n '/^# usage/s/^# //p' "$0" >&2; exit 1; }
if [ -z "${RTSCOPE_PLAIN_FILES:-}" ]; then
    RTSCOPE_PLAIN_FILES=$(mktemp -d)
    export RTSCOPE_PLAIN_FILES
    trap 'rm -rf "$RTSCOPE_PLAIN_FILES"' EXIT
    unshare --mount --propagation private "$0" "$@"
    exit
fi

tracing=/sys/kernel/tracing
for path in /proc/sys/kernel/ftrace_enabled "$tracing"/set_ftrace_{filter,notrace,pid,notrace_pid}; do
    plain=$RTSCOPE_PLAIN_FILES/${path##*/}
    echo 1 >"$plain"
    if [ -e "$path" ]; then
        mount --bind "$plain" "$path"
    fi
done
exec "$@"
