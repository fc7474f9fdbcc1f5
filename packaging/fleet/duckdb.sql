-- The tables of a fleet for DuckDB, which is started in the fleet's folder; docs/fleet.md. What an
-- older rtscope wrote has fewer columns.
CREATE OR REPLACE VIEW phase AS SELECT * FROM read_parquet('v1/phase/*/*/*.parquet',
    union_by_name = true, hive_partitioning = true, hive_types = {'date': DATE, 'host': VARCHAR});
CREATE OR REPLACE VIEW worst AS SELECT * FROM read_parquet('v1/worst/*/*/*.parquet',
    union_by_name = true, hive_partitioning = true, hive_types = {'date': DATE, 'host': VARCHAR});
CREATE OR REPLACE VIEW "interval" AS SELECT * FROM read_parquet('v1/interval/*/*/*.parquet',
    union_by_name = true, hive_partitioning = true, hive_types = {'date': DATE, 'host': VARCHAR});
CREATE OR REPLACE VIEW day AS SELECT * FROM read_parquet('v1/day/*/*/*.parquet',
    union_by_name = true, hive_partitioning = true, hive_types = {'date': DATE, 'host': VARCHAR});
-- A row for each bucket of a day.
CREATE OR REPLACE VIEW bucket AS SELECT date, host, kernel, scope, phase,
    unnest(bucket_end_ns) AS end_ns, unnest(bucket_samples) AS samples FROM day;
