# SPDX-License-Identifier: MIT OR Apache-2.0
"""Events by name, as a report of rtscope. usage: rtscope report examples/python/lami_report.py TRACE"""

import argparse
import json
from collections import Counter
from typing import Any, Optional

import rtscope

COLUMNS = [
    {"title": "Event", "class": "string"},
    {"title": "Count", "class": "number", "unit": "events"},
]
METADATA = {
    "mi-version": {"major": 1, "minor": 0},
    "title": "Events by name",
    "table-classes": {"events": {"title": "Events by name", "column-descriptions": COLUMNS}},
}


def results(
    paths: list[str], begin_wall_ns: Optional[int], end_wall_ns: Optional[int]
) -> dict[str, Any]:
    trace = rtscope.open(paths)
    offset_ns = trace.wall_ns(0)
    events = trace.events(
        begin_ns=None if begin_wall_ns is None else begin_wall_ns - offset_ns,
        end_ns=None if end_wall_ns is None else end_wall_ns - offset_ns,
    )
    counts = Counter(event.name for event in events)
    rows = [[name, {"class": "number", "value": count}] for name, count in counts.most_common()]
    return {"results": [{"class": "events", "data": rows}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", action="store_true")
    parser.add_argument("--begin", type=int)
    parser.add_argument("--end", type=int)
    parser.add_argument("traces", nargs="*")
    words = parser.parse_args()
    said = METADATA if words.metadata else results(words.traces, words.begin, words.end)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
