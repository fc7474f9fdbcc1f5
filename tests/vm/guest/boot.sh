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
grep -q '@rtscope' /proc/cmdline && memory=persistent
words=$(rtscope record --at-boot=$memory --events 'sched_switch,sched_waking,irq_handler_*' \
    --buffer 256K 2> /out/remarks)
echo "$words" > /out/words
check "the words are those that this guest was booted with" grep -qF "$words" /proc/cmdline
check "functions go to the kernel's own buffer" sh -c \
    "rtscope record --at-boot --functions 'vfs_*' --events irq 2> /dev/null | grep -q 'ftrace_filter=vfs_\*'"

check "the kernel made the ring" test -d $instance
touch /out/before
rtscope record --import-boot -o /out/boot > /out/said
check "the boot becomes a trace" test $? = 0
cat /out/said
rtscope cat /out/boot > /out/cat.txt
check "it has events" [ "$(wc -l < /out/cat.txt)" -gt 1000 ]
check "it begins before the first program of this guest" sh -c \
    "rtscope cat /out/boot --filter 'next_comm == \"init\" || prev_comm == \"init\"' | grep -q sched_switch"
check "it begins in the first seconds" sh -c "grep -q 'from [0-3]\.' /out/said"
# A ring of 256 KiB is too small for a boot.
check "what was overwritten is counted" sh -c "grep -q 'were overwritten before' /out/said"
check "every report reads it" rtscope report cputop /out/boot
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

# The times are of CLOCK_MONOTONIC: beside a recording of now, the boot ended shortly before.
read -r uptime _ < /proc/uptime
end=$(sed -n 's/.* to \([0-9]*\)\..*/\1/p' /out/said | head -n 1)
check "its end is now, on CLOCK_MONOTONIC" [ $((${uptime%.*} - end)) -lt 20 ]
