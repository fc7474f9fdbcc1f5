# Call stacks beside the kernel's events, and pages that are kept as they are and converted later.
. /lib/vm.sh

clean() { [ -z "$(ls /sys/kernel/tracing/instances)" ]; }
recorded() {
    rtscope record "$@" -- sh -c 'dd if=/proc/version of=/tmp/copy bs=1 count=50; sleep 0.3' \
        > /out/said.txt 2>&1
    status=$?
    cat /out/said.txt
    [ $status = 0 ]
}

check "switches are recorded with their stacks" recorded -o /out/trace --events sched_switch \
    --context callstack-kernel,callstack-user,tid
rtscope cat --debug-info /out/trace > /out/cat.txt
grep -m 3 sched_switch: /out/cat.txt
all=$(grep -c ' sched_switch:' /out/cat.txt)
with=$(grep ' sched_switch:' /out/cat.txt | grep -c '"__schedule+')
note "$with of $all switches have a stack through __schedule()"
check "nearly all of them are named" [ $((with * 100)) -ge $((all * 98)) ]
check "programs have stacks" grep -q 'callstack_user = \[ \[0\] = 0x' /out/cat.txt
rtscope report flamegraph /out/trace > /out/flame.txt
head -n 5 /out/flame.txt
counted=$(awk '{ sum += $NF } END { print sum }' /out/flame.txt)
check "the flame graph counts each switch once" [ "$counted" = "$all" ]
rm -r /out/trace

check "pages are kept as they are" recorded --raw -o /out/raw --events sched_switch,irq,timer
read=$(sed -n 's/^recorded \([0-9]*\) events.* 0 lost.*/\1/p' /out/said.txt)
refused() { ! rtscope info /out/raw > /out/refused 2>&1 && grep -q 'rtscope convert' /out/refused; }
check "they are no trace yet" refused
check "they are converted" rtscope convert /out/raw --to ctf -o /out/trace
converted=$(rtscope cat /out/trace | grep -vc ' lttng_statedump_\| rtscope_')
note "$read events were read, $converted are in the trace"
check "each event is there once" [ "$converted" = "$read" ]
check "the pages themselves have as many" [ "$(rtscope cat /out/raw/raw | wc -l)" = "$read" ]
check "nothing is left behind" clean

# What ftrace does not note, read at each event.
contexts() {
    rtscope record "$@" -o /out/trace --events sched_switch,sched_waking,timer,irq,syscall \
        --context procname,prio,nice,ppid,vpid,uid,vuid,uts_ns,pid_ns,hostname,perf:cpu:context-switches \
        -- sh -c 'echo $$ > /out/shell; sleep 0.3; true' > /out/said.txt 2>&1
    status=$?
    cat /out/said.txt
    [ $status = 0 ]
}
rm -r /out/trace
check "contexts are read at events" contexts
check "nobody's are unknown" [ "$(rtscope cat /out/trace --filter 'ppid == -1' | wc -l)" = 0 ]
named() { rtscope cat /out/trace --filter '$name == "syscall_entry_*nanosleep" && $ctx.procname == "sleep"'; }
check "system calls carry them too" [ "$(named | wc -l)" = 1 ]
spaces=$(readlink /proc/self/ns/uts | tr -dc 0-9)
of_sleep="procname == \"sleep\" && nice == 0 && prio == 20 && uid == 0 && vuid == 0"
of_sleep="$of_sleep && ppid == $(cat /out/shell) && uts_ns == $spaces"
rtscope cat /out/trace --filter "$of_sleep" > /out/sleep.txt
head -n 2 /out/sleep.txt
check "a task has its own" grep -q "sched_switch:.*hostname = \"$(hostname)\"" /out/sleep.txt
check "its CPU has counted" grep -q 'perf_cpu_context_switches = [1-9]' /out/sleep.txt
rm -r /out/trace
check "nothing is left behind of them" clean
