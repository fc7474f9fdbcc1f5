-- Percentiles of each kernel over all its machines, from the sums of their histograms.
WITH summed AS (
    SELECT kernel, end_ns, sum(samples) AS samples FROM bucket
    WHERE scope = 'realtime' AND phase = 'timer_wakeup_switch'
    GROUP BY kernel, end_ns
), ranked AS (
    SELECT kernel, end_ns,
        sum(samples) OVER (PARTITION BY kernel ORDER BY end_ns) AS up_to,
        sum(samples) OVER (PARTITION BY kernel) AS total
    FROM summed
), percentiles AS (
    SELECT kernel, max(total) AS samples,
        min(CASE WHEN up_to >= 0.5 * total THEN end_ns END) AS p50_ns,
        min(CASE WHEN up_to >= 0.99 * total THEN end_ns END) AS p99_ns,
        min(CASE WHEN up_to >= 0.999 * total THEN end_ns END) AS p99_9_ns
    FROM ranked GROUP BY kernel
), machines AS (
    SELECT kernel, count(DISTINCT host) AS hosts, max(max_ns) AS max_ns FROM day
    WHERE scope = 'realtime' AND phase = 'timer_wakeup_switch'
    GROUP BY kernel
)
SELECT machines.kernel, hosts, samples, p50_ns / 1e3 AS p50_us, p99_ns / 1e3 AS p99_us,
    p99_9_ns / 1e3 AS p99_9_us, max_ns / 1e3 AS max_us
FROM machines JOIN percentiles ON machines.kernel = percentiles.kernel
ORDER BY p99_9_ns DESC, machines.kernel
