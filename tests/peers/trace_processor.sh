#!/bin/bash
# Perfetto's trace_processor and 'rtscope view' on the same trace, which our exporter wrote for it: time until
# the first answer, memory, side by side. Prints "skipped: why" and succeeds where the peer cannot be had.
#
# usage: trace_processor.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root);
#        TRACE_PROCESSOR names the program where it is there already
set -euo pipefail

. "$(dirname "$0")/perfetto_here.sh" "trace_processor beside rtscope view" "$@"
"$cache/bin/python" "$here/trace_processor_beside.py" "$rtscope" "${traces[@]}"
