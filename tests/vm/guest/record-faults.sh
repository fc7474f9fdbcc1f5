# CPUs that are off, go away and come back while events are recorded, and many that never come.
. /lib/vm.sh

cpu1=/sys/devices/system/cpu/cpu1/online
clean() { [ -z "$(ls /sys/kernel/tracing/instances)" ]; }
lives() { kill -0 "$recorder" 2>/dev/null; }
records() { grep -q '^recording' /out/said || ! lives; }
# told FOLDER CPU: how many events of that CPU the trace has.
told() { rtscope cat "$1" | grep -c "{ cpu_id = $2 }"; }
if grep -q possible_cpus /proc/cmdline; then
    check "240 CPUs are possible" grep -qx 0-239 /sys/devices/system/cpu/possible
fi

echo 0 > $cpu1
check "a recording without CPU 1 ends well" \
    rtscope record --events sched --duration 500ms -o /out/off
check "it has events of CPU 0 alone" [ "$(told /out/off 1)" = 0 -a "$(told /out/off 0)" -gt 0 ]
echo 1 > $cpu1

rtscope record --events sched --duration 60s -o /out/gone 2> /out/said &
recorder=$!
await 300 records
sleep 1
echo 0 > $cpu1
sleep 1
echo 1 > $cpu1
for _ in 1 2 3 4 5; do taskset -c 1 true; done
check "a recorder outlives a CPU that goes and comes" lives
kill -INT $recorder
wait $recorder
check "its recording is kept" test $? = 0
cat /out/said
check "it has events of both CPUs" [ "$(told /out/gone 0)" -gt 0 -a "$(told /out/gone 1)" -gt 0 ]
check "CPU 1's events go on behind its return" sh -c \
    "rtscope cat /out/gone --filter 'next_comm == \"true\" || comm == \"true\"' | grep -q 'cpu_id = 1 }'"
check "every verb reads it" rtscope report cputop /out/gone

rtscope record --events sched_switch,syscall --duration 500ms -o /out/calls > /out/calls.said
check "system calls are recorded" test $? = 0
cat /out/calls.said
check "and have their contents" sh -c "! grep -q 'without their contents' /out/calls.said"

rtscope record start faults --events sched -o /out/session
check "a session begins" test $? = 0
echo 0 > $cpu1
check "a session turns without CPU 1" rtscope record rotate faults
echo 1 > $cpu1
check "and with it again" rtscope record rotate faults
check "and ends" rtscope record stop faults
check "three archives are whole" [ "$(ls /out/session | grep -c '^00000')" = 3 ]
check "nothing is left behind" clean
