# SPDX-License-Identifier: MIT OR Apache-2.0
"""How many events of each name a trace has. usage: event_counts.py TRACE [FILTER]"""

import sys
from collections import Counter

import rtscope


def main(path: str, filter: str = "") -> None:
    trace = rtscope.open(path)
    events = trace.events(filter or None)
    counts = Counter(event.name for event in events)
    for name, count in counts.most_common():
        print(f"{count:8}  {name}")
    print(f"{events.lost_events:8}  lost")


if __name__ == "__main__":
    main(*sys.argv[1:])
