# A shield goes up and comes down again, also when whoever put it up was killed half-way.
. /lib/vm.sh

mkdir -p /run
group=/sys/fs/cgroup

# settings: every setting that a shield may touch, and where every task may run.
settings() {
    for file in /proc/irq/*/smp_affinity_list /proc/irq/default_smp_affinity \
        /sys/devices/virtual/workqueue/cpumask /sys/devices/virtual/workqueue/writeback/cpumask \
        /proc/sys/kernel/watchdog_cpumask /proc/sys/kernel/timer_migration \
        /proc/sys/vm/stat_interval /sys/kernel/rcu_normal $group/cgroup.subtree_control; do
        [ -e "$file" ] && echo "$file $(cat "$file")"
    done
    ls -d $group/rtscope* 2>/dev/null
    grep -H Cpus_allowed_list /proc/1/status /proc/2/status
}
same() { settings > /out/after; cmp -s /out/before /out/after; }

settings > /out/before
rtscope shield --cpu 1 > /out/plan
check "the dry run shows changes" grep -q "^echo" /out/plan
check "the dry run changes nothing" same

rtscope shield --cpu 1 --apply
check "a shield goes up" test $? = 0
check "doctor says so" sh -c "rtscope doctor | grep -q 'a shield is up: CPU 1'"
check "new interrupts leave the shielded CPU" test "$(cat /proc/irq/default_smp_affinity)" = 1
check "tasks outside cannot run inside" test "$(awk '/Cpus_allowed_list/ { print $2 }' /proc/1/status)" = 0
check "kthreadd leaves" test "$(awk '/Cpus_allowed_list/ { print $2 }' /proc/2/status)" = 0
check "a second shield is refused" sh -c "! rtscope shield --cpu 1 --apply 2> /out/second"
rtscope shield --undo
check "the undo restores every byte" same

rtscope shield --cpu 1 --apply -- cat /proc/self/status > /out/inside
check "a command runs inside" grep -q "^Cpus_allowed_list:	1$" /out/inside
check "it is down when the command has ended" same
rtscope shield --cpu 1 --apply -- sh -c 'exit 7'
check "a command's exit code is handed on" test $? = 7

for delay in 1000 3000 6000 10000 20000 40000; do
    rtscope shield --cpu 1 --apply &
    usleep $delay
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    if [ -e /run/rtscope-shield.json ]; then
        rtscope shield --undo
        check "killed after $delay us: the undo succeeds" test $? = 0
    fi
    check "killed after $delay us: every byte is restored" same
done
diff /out/before /out/after
