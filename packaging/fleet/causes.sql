-- What had the CPU when real-time tasks were late, the most late time first. It proves nothing by
-- itself: who is often there, on many machines, is worth a watch.
SELECT running, count(*) AS intervals, count(DISTINCT host) AS hosts,
    count(DISTINCT kernel) AS kernels, round(sum(value_ns) / 1e6, 3) AS late_ms,
    round(max(value_ns) / 1e3, 1) AS worst_us, max_by(host, value_ns) AS worst_host,
    max_by(victim, value_ns) AS worst_victim
FROM worst
WHERE scope = 'realtime' AND phase = 'timer_wakeup_switch'
GROUP BY running
ORDER BY late_ms DESC, running
LIMIT 30
