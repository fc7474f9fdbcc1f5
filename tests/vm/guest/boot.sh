# The ring that the kernel's command line made at boot becomes a trace. The profile's words are those
# that `record --at-boot` prints for these events.
. /lib/vm.sh

instance=/sys/kernel/tracing/instances/rtscope_boot
gone() { [ ! -e $instance ]; }
refused() {
    pattern=$1; shift
    ! rtscope record "$@" > /out/refused 2>&1 && grep -q "$pattern" /out/refused
}

memory=plain
size=2M
if grep -q '@rtscope' /proc/cmdline; then
    memory=persistent
    size=256K
fi
words=$(rtscope record --at-boot=$memory --events 'sched_switch,sched_waking,irq_handler_*' \
    --buffer $size 2> /out/remarks)
echo "$words" > /out/words
check "the words are those that this guest was booted with" grep -qF "$words" /proc/cmdline
check "functions go to the kernel's own buffer" sh -c \
    "rtscope record --at-boot --functions 'vfs_*' --events irq 2> /dev/null | grep -q 'ftrace_filter=vfs_\*'"

check "the kernel made the ring" test -d $instance
if [ $memory = persistent ]; then
    # More than the small ring holds.
    for _ in $(seq 400); do /bin/busybox true; done
fi
read -r before _ < /proc/uptime
rtscope record --import-boot -o /out/boot > /out/said
check "the boot becomes a trace" test $? = 0
cat /out/said
rtscope cat /out/boot > /out/cat.txt
check "it has events" [ "$(wc -l < /out/cat.txt)" -gt 1000 ]
if [ $memory = persistent ]; then
    check "what was written over is counted" grep -q 'were overwritten before' /out/said
else
    check "it has switches before the first program of this guest" sh -c \
        "grep -m 1 sched_switch /out/cat.txt | grep -q swapper"
    check "it begins in the first seconds" grep -q 'from [0-3]\.' /out/said
    check "nothing of it is lost" grep -q ' 0 lost' /out/said
fi
rtscope report cputop /out/boot
status=$?
# 3 says that events were lost.
check "every report reads it" [ $status = 0 -o $status = 3 ]
rtscope diagnose /out/boot > /out/diagnosis
status=$?
check "it is diagnosed" [ $status != 1 ]
if [ $memory = persistent ]; then
    check "a ring in reserved memory stays, off" [ "$(cat $instance/tracing_on)" = 0 ]
    grep -q 'goes with its words' /out/said
    check "and says so" test $? = 0
else
    check "the ring is gone" gone
    check "a second import is refused" refused "imported already" --import-boot -o /out/again
    check "the refusal leaves nothing behind" test ! -e /out/again
fi

# The times are of CLOCK_MONOTONIC: the last event is of the moment of the import.
read -r after _ < /proc/uptime
end=$(sed -n 's/.* to \([0-9]*\)\..*/\1/p' /out/said | head -n 1)
check "its end is the import, on CLOCK_MONOTONIC" \
    [ $((${before%.*} - 1)) -le "$end" -a "$end" -le "${after%.*}" ]
