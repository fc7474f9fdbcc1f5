# Functions that the kernel called while it started: the kernel's own buffer has them, trace-cmd takes
# them out, and every reading verb opens that file. The profile's words are what --at-boot prints.
. /lib/vm.sh

words=$(rtscope record --at-boot --events sched_switch --functions 'vfs_open,vfs_read' --buffer 2M \
    2> /out/remarks)
echo "$words" > /out/words
check "the words are those that this guest was booted with" grep -qF "$words" /proc/cmdline
check "the remarks name the next step" grep -q 'trace-cmd extract' /out/remarks

echo 0 > /sys/kernel/tracing/tracing_on
cd /out || exit 1
trace-cmd extract -o /out/functions.dat > /out/extracted 2>&1
check "trace-cmd takes them out" test $? = 0
tail -n 3 /out/extracted
rtscope cat /out/functions.dat > /out/cat.txt
check "they begin and return" [ "$(grep -c funcgraph_entry /out/cat.txt)" -gt 100 -a \
    "$(grep -c funcgraph_exit /out/cat.txt)" -gt 100 ]
rtscope report flamegraph /out/functions.dat > /out/flame.txt
head -n 5 /out/flame.txt
check "the flame graph has them" grep -q ';vfs_read [0-9]' /out/flame.txt
# The instance beside it is imported as ever.
rtscope record --import-boot -o /out/boot > /out/said
check "the ring beside it becomes a trace" test $? = 0
cat /out/said
echo nop > /sys/kernel/tracing/current_tracer
