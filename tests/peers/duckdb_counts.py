#!/usr/bin/env python3
"""DuckDB reads the Parquet files of several traces as one table: rows of each event class equal
the events of `rtscope info`.

usage: duckdb_counts.py RTSCOPE TRACE…    with the `duckdb` package of PyPI; duckdb.sh installs it
"""

import collections
import json
import subprocess
import sys
import tempfile

import duckdb


def run(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # 3 says that the trace has losses, which are carried over.
    if done.returncode not in (0, 3):
        sys.exit(f"{words}: {done.stderr}")
    return done.stdout


def main(rtscope, traces):
    expected = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for place, trace in enumerate(traces):
            run([rtscope, "convert", trace, "--to", "parquet", "-o", f"{scratch}/fleet/{place}"])
            run([rtscope, "convert", trace, "--to", "json", "-o", f"{scratch}/{place}.json"])
            with open(f"{scratch}/{place}.json", encoding="utf-8") as lines:
                next(lines)
                for line in lines:
                    event = json.loads(line)
                    if "name" in event:
                        expected[event["name"]] += 1
        table = (
            f"read_parquet('{scratch}/fleet/*/host=*/date=*/event=*/*.parquet',"
            " hive_partitioning = true, union_by_name = true)"
        )
        rows = duckdb.sql(f"SELECT event, count(*) FROM {table} GROUP BY event").fetchall()
        got = collections.Counter({name: count for name, count in rows if name != "__losses"})
        assert got == expected, f"{expected - got} {got - expected}"
        hosts = duckdb.sql(f"SELECT DISTINCT host, date FROM {table} ORDER BY ALL").fetchall()
    print(f"{sum(got.values())} events of {len(got)} classes, by host and date: {hosts}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
