# SPDX-License-Identifier: MIT OR Apache-2.0
"""The time between two events that share a field.
usage: latency.py TRACE BEGIN-EVENT END-EVENT FIELD"""

import statistics
import sys

import rtscope


def main(path: str, begin: str, end: str, field: str) -> None:
    trace = rtscope.open(path)
    key = trace.bind(field)
    began_ns: dict[object, int] = {}
    durations_ns: list[int] = []
    lost = 0
    for item in trace.items(f'$name == "{begin}" || $name == "{end}"'):
        if isinstance(item, rtscope.Lost):
            # A pair across a hole is no pair.
            began_ns.clear()
            lost += item.count or 0
        elif isinstance(item, rtscope.Event):
            if item.name == begin:
                began_ns[item[key]] = item.time_ns
            elif item[key] in began_ns:
                durations_ns.append(item.time_ns - began_ns.pop(item[key]))
    if not durations_ns:
        print("no pair")
        return
    print(
        f"pairs {len(durations_ns)}, least {min(durations_ns)} ns,"
        f" middle {statistics.median_high(durations_ns)} ns,"
        f" greatest {max(durations_ns)} ns, {lost} events lost"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
