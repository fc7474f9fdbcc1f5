# SPDX-License-Identifier: MIT OR Apache-2.0
"""Per user of a service: requests and their mean load, without an object per event.
usage: table.py TRACE (as the tests write it; needs pyarrow)"""

import sys

import pyarrow as pa

import rtscope


def main(path: str) -> None:
    trace = rtscope.open(path)
    begins = pa.table(trace.batches(["id", "user"], filter="user present"))
    ends = pa.table(trace.batches(["id", "load", "status"], filter="load present"))
    requests = begins.join(ends, "id", join_type="inner")
    by_user = requests.group_by("user").aggregate([("id", "count"), ("load", "mean")])
    for row in by_user.sort_by("user").to_pylist():
        print(f"{row['user']}: {row['id_count']} requests, mean load {row['load_mean']:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
