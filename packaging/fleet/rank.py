"""Ranks causes, kernels, hosts and regressions over a fleet, by Spark; docs/fleet.md.

usage: spark-submit rank.py FLEET QUESTION...    FLEET: a folder, or s3a://BUCKET/PREFIX
"""

import os
import sys
import time

from pyspark.sql import SparkSession, functions as f

TABLES = ("interval", "phase", "day", "worst")


def tables(spark, fleet):
    """The views of duckdb.sql."""
    for name in TABLES:
        root = f"{fleet}/v1/{name}"
        # What an older rtscope wrote has fewer columns.
        reader = spark.read.option("basePath", root).option("mergeSchema", "true")
        rows = reader.parquet(root)
        rows = rows.withColumn("date", f.to_date("date"))
        rows.createOrReplaceTempView(name)
    pairs = f.explode(f.arrays_zip("bucket_end_ns", "bucket_samples")).alias("pair")
    kept = ["date", "host", "kernel", "scope", "phase"]
    buckets = spark.table("day").select(*kept, pairs).select(
        *kept,
        f.col("pair.bucket_end_ns").alias("end_ns"),
        f.col("pair.bucket_samples").alias("samples"),
    )
    buckets.createOrReplaceTempView("bucket")


def configured(builder):
    """What the questions take for granted."""
    # A host whose name is a number stays a text.
    builder = builder.config("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    return builder.config("spark.sql.session.timeZone", "UTC")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    fleet, questions = sys.argv[1].rstrip("/"), sys.argv[2:]
    spark = configured(SparkSession.builder.appName("rtscope fleet")).getOrCreate()
    tables(spark, fleet)
    here = os.path.dirname(os.path.abspath(__file__))
    for question in questions:
        with open(os.path.join(here, f"{question}.sql"), encoding="utf-8") as text:
            query = text.read()
        begun = time.monotonic()
        rows = spark.sql(query)
        print(f"== {question} ==")
        rows.show(50, truncate=False)
        print(f"-- {time.monotonic() - begun:.1f} s", file=sys.stderr)
    spark.stop()


if __name__ == "__main__":
    main()
