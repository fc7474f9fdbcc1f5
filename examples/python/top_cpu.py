# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which threads ran longest, from the scheduler's switches. usage: top_cpu.py TRACE [COUNT]"""

import sys
from collections import Counter

import rtscope


def main(path: str, count: str = "10") -> None:
    trace = rtscope.open(path)
    events = trace.events('$name == "sched_switch"')
    ran_ns: Counter[tuple[int, str]] = Counter()
    since_ns: dict[object, int] = {}
    for event in events:
        thread = event.get("prev_tid", event.get("prev_pid"))
        if event.cpu in since_ns and thread != 0:
            ran_ns[thread, event["prev_comm"]] += event.time_ns - since_ns[event.cpu]
        since_ns[event.cpu] = event.time_ns
    for (thread, name), ns in ran_ns.most_common(int(count)):
        print(f"{ns / 1e6:12.3f} ms  {name} ({thread})")


if __name__ == "__main__":
    main(*sys.argv[1:])
