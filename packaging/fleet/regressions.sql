-- Machines that are slower in the last seven days of the fleet than in the seven before: p99.9 of
-- each phase from the histograms, where it rose by a quarter (four buckets) or more. A change of
-- the kernel in between stands beside it.
WITH newest AS (
    SELECT max(date) AS last_date FROM day
), sided AS (
    SELECT host, scope, phase, kernel, end_ns, samples,
        CASE WHEN date > last_date - INTERVAL '7' DAY THEN 1 ELSE 0 END AS is_after
    FROM bucket CROSS JOIN newest
    WHERE date > last_date - INTERVAL '14' DAY
), summed AS (
    SELECT host, scope, phase, is_after, end_ns, sum(samples) AS samples, min(kernel) AS kernel
    FROM sided GROUP BY host, scope, phase, is_after, end_ns
), ranked AS (
    SELECT host, scope, phase, is_after, end_ns, kernel,
        sum(samples) OVER (PARTITION BY host, scope, phase, is_after ORDER BY end_ns) AS up_to,
        sum(samples) OVER (PARTITION BY host, scope, phase, is_after) AS total
    FROM summed
), sides AS (
    SELECT host, scope, phase, is_after, max(total) AS samples, min(kernel) AS kernel,
        min(CASE WHEN up_to >= 0.999 * total THEN end_ns END) AS p99_9_ns
    FROM ranked GROUP BY host, scope, phase, is_after
)
SELECT a.host, a.scope, a.phase, b.kernel AS kernel_before, a.kernel AS kernel_after,
    b.p99_9_ns / 1e3 AS before_us, a.p99_9_ns / 1e3 AS after_us,
    round(a.p99_9_ns * 1.0 / b.p99_9_ns, 2) AS ratio, a.samples
FROM sides a JOIN sides b ON a.host = b.host AND a.scope = b.scope AND a.phase = b.phase
WHERE a.is_after = 1 AND b.is_after = 0 AND a.samples >= 1000 AND b.samples >= 1000
    AND a.p99_9_ns >= 1.25 * b.p99_9_ns
ORDER BY ratio DESC, a.host, a.scope, a.phase
LIMIT 50
