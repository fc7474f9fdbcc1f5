# SPDX-License-Identifier: MIT OR Apache-2.0
"""Chosen fields of matching events as CSV. usage: to_csv.py TRACE FILTER FIELD..."""

import csv
import sys

import rtscope


def main(path: str, filter: str, *names: str) -> None:
    trace = rtscope.open(path)
    fields = [trace.bind(name) for name in names]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["time_ns", "cpu", "event", *names])
    for event in trace.filter(filter):
        out.writerow([event.time_ns, event.cpu, event.name, *map(event.get, fields)])


if __name__ == "__main__":
    main(*sys.argv[1:])
