-- The machines whose tasks were the latest: the median, over intervals, of the longest, and the
-- longest of all with its victim.
WITH longest AS (
    SELECT host, max(kernel) AS kernel, count(*) AS intervals, sum(samples) AS samples,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY max_ns) AS typical_max_ns,
        max(max_ns) AS max_ns
    FROM phase
    WHERE scope = 'realtime' AND phase = 'timer_wakeup_switch'
    GROUP BY host
), victims AS (
    SELECT host, max_by(victim, value_ns) AS victim, max_by(running, value_ns) AS running
    FROM worst
    WHERE scope = 'realtime' AND phase = 'timer_wakeup_switch'
    GROUP BY host
)
SELECT longest.host, kernel, intervals, samples, round(typical_max_ns / 1e3, 1) AS typical_max_us,
    round(max_ns / 1e3, 1) AS max_us, victim, running
FROM longest LEFT JOIN victims ON longest.host = victims.host
ORDER BY typical_max_ns DESC, longest.host
LIMIT 30
