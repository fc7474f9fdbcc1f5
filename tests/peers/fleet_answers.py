"""Asks DuckDB and Spark the questions of packaging/fleet over a fleet of generate.rs, and compares
both with each other and with what was planted.

usage: fleet_answers.py PACKAGING FLEET
"""

import os
import pathlib
import shutil
import sys
import time

QUESTIONS = ("causes", "kernels", "hosts", "regressions")


def make_one_older(fleet):
    """The last files of some tables as an rtscope wrote them that had fewer columns."""
    import duckdb

    newest = {"interval": ("lost_tracked", "begin_time end_time"), "worst": ("key", "time")}
    for table, (column, times) in newest.items():
        for name in sorted(pathlib.Path(fleet, "v1", table).rglob("*.parquet"))[-2:]:
            rows = f"read_parquet('{name}', hive_partitioning = false)"
            # Instants stay instants of UTC.
            casts = ", ".join(f"{name}::TIMESTAMPTZ AS {name}" for name in times.split())
            kept = f"SELECT * EXCLUDE ({column}) REPLACE ({casts}) FROM {rows}"
            duckdb.sql(f"COPY ({kept}) TO '{name}.new' (FORMAT parquet)")
            os.replace(f"{name}.new", name)


def by_duckdb(packaging, fleet):
    """The answers, and the seconds that each took."""
    import duckdb

    os.chdir(fleet)
    connection = duckdb.connect()
    connection.execute(open(f"{packaging}/duckdb.sql", encoding="utf-8").read())
    for table in ("interval", "worst"):
        connection.execute(f'SELECT count(COLUMNS(*)) FROM "{table}"').fetchall()
    answers = {}
    for name in QUESTIONS:
        begun = time.monotonic()
        rows = connection.execute(open(f"{packaging}/{name}.sql", encoding="utf-8").read())
        answers[name] = [tuple(row) for row in rows.fetchall()]
        print(f"DuckDB {name}: {time.monotonic() - begun:.2f} s")
    return answers


def by_spark(packaging, fleet):
    """The same by Spark, on this machine alone."""
    sys.path.insert(0, packaging)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    import rank
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4")
    spark = rank.configured(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rank.tables(spark, fleet)
    for table, column in (("interval", "lost_tracked"), ("worst", "key")):
        spark.table(table).select(column).collect()
    answers = {}
    for name in QUESTIONS:
        begun = time.monotonic()
        rows = spark.sql(open(f"{packaging}/{name}.sql", encoding="utf-8").read()).collect()
        answers[name] = [tuple(row) for row in rows]
        print(f"Spark {name}: {time.monotonic() - begun:.2f} s")
    spark.stop()
    return answers


def plain(rows):
    """Numbers alike; which of several equal ones is named is nobody's promise."""
    number = (int, float)
    text = lambda cell: isinstance(cell, str)
    kept = lambda cell: float(cell) if isinstance(cell, number) or not text(cell) and cell else cell
    return [tuple(kept(cell) for cell in row) for row in rows]


def main():
    packaging, fleet = (os.path.abspath(word) for word in sys.argv[1:3])
    make_one_older(fleet)
    answers = by_duckdb(packaging, fleet)
    assert answers["causes"][0][0] == "cat: console_flush_all, interrupts off", answers["causes"]
    assert answers["hosts"][0][0] == "host-0003", answers["hosts"][0]
    slower = {row[0] for row in answers["regressions"]}
    hosts = {name.removeprefix("host=") for day in os.scandir(f"{fleet}/v1/day")
             for name in os.listdir(day.path)}
    planted = {host for host in hosts if int(host.removeprefix("host-")) % 10 == 0}
    # Fifty rows are shown, five phases of a host.
    assert slower <= planted and len(slower) == min(len(planted), 10), slower
    assert [len(row) for row in answers["kernels"]] == [7] * 3, answers["kernels"]
    if shutil.which("java") is None:
        print("skipped: Spark reads a fleet: no java")
        return
    other = by_spark(packaging, fleet)
    for name, columns in (("causes", 6), ("kernels", 7), ("hosts", 6), ("regressions", 9)):
        ours, theirs = plain(answers[name]), plain(other[name])
        ours, theirs = ([row[:columns] for row in rows] for rows in (ours, theirs))
        assert ours == theirs, f"{name}:\n{ours}\n{theirs}"
    print("ok: DuckDB and Spark say the same, and what was planted")


if __name__ == "__main__":
    main()
