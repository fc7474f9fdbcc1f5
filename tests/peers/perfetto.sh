#!/bin/bash
# Perfetto's published descriptors read what 'rtscope convert --to perfetto' writes: counts per track
# equal the trace's. Prints "skipped: why" and succeeds where the peer cannot be installed.
#
# usage: perfetto.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root)
set -euo pipefail

. "$(dirname "$0")/perfetto_here.sh" "Perfetto reads what is written" "$@"
"$cache/bin/python" "$here/perfetto_counts.py" "$rtscope" "${traces[@]}"
