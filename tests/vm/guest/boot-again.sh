# A ring in reserved memory is written by one boot, and imported by the next.
. /lib/vm.sh

instance=/sys/kernel/tracing/instances/rtscope_boot
# The results' disk keeps its first bytes over the restart; results are written over them at the end.
if [ "$(head -c 6 /dev/vda)" != booted ]; then
    say "the first boot"
    echo 1 > $instance/tracing_on
    for _ in $(seq 50); do /bin/busybox true; done
    echo 0 > $instance/tracing_on
    read -r seconds _ < /proc/uptime
    grep -c sched_switch $instance/trace
    echo "booted $seconds" > /dev/vda
    sync
    say "restarts"
    reboot -f
fi
read -r _ before < /dev/vda
say "the second boot, the first ended at $before s"

rtscope record --import-boot -o /out/boot > /out/said 2>&1
check "the ring of the boot before becomes a trace" test $? = 0
cat /out/said
check "it is said to be an earlier boot's" grep -q 'events of an earlier boot' /out/said
rtscope cat /out/boot > /out/cat.txt
check "it has the programs of that boot" [ "$(grep -c 'sched_switch.*prev_comm = "busybox"' /out/cat.txt)" -ge 50 ]
# Its times stay that boot's, to a second.
end=$(sed -n 's/.* to \([0-9]*\)\..*/\1/p' /out/said | head -n 1)
check "its times are those of that boot" [ "$end" -ge $((${before%.*} - 1)) -a "$end" -le $((${before%.*} + 1)) ]
rtscope info /out/boot > /out/info
check "the trace says so itself" grep -q 'an earlier one' /out/info
rtscope report cputop /out/boot
status=$?
# 3 says that events were lost.
check "every report reads it" [ $status = 0 -o $status = 3 ]
check "the ring stays, off" [ "$(cat $instance/tracing_on)" = 0 ]
rtscope record --import-boot -o /out/again > /out/said-again 2>&1
cat /out/said-again
check "what was imported is not imported again" sh -c "! rtscope cat /out/again | grep -q busybox"
