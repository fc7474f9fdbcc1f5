# Functions of the kernel, traced where they begin and return, by what this kernel has for it.
. /lib/vm.sh

instances=/sys/kernel/tracing/instances
clean() { [ -z "$(ls $instances)" ] && ! grep -q rtscope_ /sys/kernel/tracing/dynamic_events; }
count() { grep -c " $1:" /out/cat.txt; }
recorded() {
    rtscope record "$@" -o /out/trace -- dd if=/proc/version of=/tmp/copy bs=1 count=50 \
        > /out/said.txt 2>&1
    status=$?
    cat /out/said.txt
    [ $status = 0 ] && rtscope cat /out/trace > /out/cat.txt
}
refused() {
    pattern=$1; shift
    ! rtscope record "$@" -o /out/none -- true > /out/refused 2>&1 && grep -q "$pattern" /out/refused
}

check "functions are recorded" recorded --functions 'vfs_read,vfs_write'
check "vfs_read begins at least 50 times" [ "$(count funcgraph_entry)" -ge 100 ]
check "what begins returns" [ "$(count funcgraph_exit)" -ge 100 ]
check "nothing is left behind" clean
rtscope report flamegraph /out/trace > /out/flame.txt
cat /out/flame.txt
check "the flame graph has them under dd" grep -q '^dd ([0-9]*);vfs_read [0-9]' /out/flame.txt
# Probes stand where the graph tracer does not work in instances, and call it `ip`.
field=func
grep -q ' funcgraph_entry:.* func = ' /out/cat.txt || field=ip
check "a filter knows them by name" sh -c \
    "rtscope cat /out/trace --filter '$field == \"vfs_write\"' | grep -q funcgraph_entry"
rm -r /out/trace

# A pattern of many: where the graph tracer does not work in instances, entries alone, and said so.
check "many functions are recorded" recorded --functions '*_read*'
if rtscope cat /out/trace | grep -q funcgraph_exit; then
    check "each return says how long it took" sh -c \
        "rtscope cat /out/trace | grep funcgraph_exit | grep -q 'duration = [0-9]'"
else
    check "entries alone are said to be so" grep -q 'only the entries' /out/said.txt
    check "entries are recorded" [ "$(count function)" -ge 100 ]
fi
check "nothing is left behind by many" clean
rm -r /out/trace

check "a name that is not there is refused with a near one" refused "'vfs_read' is meant" --functions vfs_raed
check "a pattern without a match is refused" refused "no such function" --functions 'zz_*'
check "a function without a place for a tracer is refused with the reason" refused notrace \
    --functions trace_clock_local
check "refusals leave nothing behind" clean

rtscope record --functions 'vfs_*' -o /out/killed --duration 60s &
recorder=$!
# `await` takes tenths of a second.
is_there() { [ -n "$(ls $instances)" ]; }
await 300 is_there
sleep 1
kill -KILL $recorder
wait $recorder
check "a recorder that was killed leaves its instance" is_there
rtscope doctor --clean
check "doctor --clean removes it" clean

# Probes of our own at functions of the kernel, with fields; where this kernel has kprobes.
if [ ! -e /sys/kernel/tracing/kprobe_events ]; then
    note "skipped: probes in the kernel: no kprobe_events"
    exit 0
fi
check "probes at both ends are recorded" recorded \
    --probe 'opened=do_sys_openat2 dfd=arg1:int path=arg2:ustring' --retprobe 'open_end=do_sys_openat2 fd=ret:int'
check "a probe has its text" sh -c \
    "rtscope cat /out/trace --filter '\$name == \"opened\" && path == \"/proc/version\"' | grep -q 'dfd = -100'"
check "a return has its value" sh -c "rtscope cat /out/trace | grep 'open_end:' | grep -q 'fd = [0-9]'"
check "each return has its begin" sh -c \
    "b=\$(rtscope cat /out/trace | grep -c ' opened:'); e=\$(rtscope cat /out/trace | grep -c ' open_end:'); [ \$b -gt 3 -a \$e -gt 3 ]"
check "probes are gone" clean
rm -r /out/trace
check "a filter on a probe's field is the kernel's" recorded \
    --probe 'asked=do_sys_openat2 path=arg2:ustring flags=*(arg3+0):u64' --filter 'asked: flags & 0x40 != 0'
check "what the filter keeps out is not there" sh -c \
    "rtscope cat /out/trace | grep ' asked:' | grep -q /tmp/copy && ! rtscope cat /out/trace | grep -q 'asked:.*/proc/version'"
check "probes with a filter are gone" clean
rm -r /out/trace
address=0x$(awk '$3 == "do_sys_openat2" { print $1; exit }' /proc/kallsyms)
check "a probe is put at an address" recorded --probe "at=$address path=arg2:ustring"
check "and is the function's" sh -c "rtscope cat /out/trace | grep -q ' at: .*path = '"
check "a function that is not there is refused" refused "no_such_function" --probe 'x=no_such_function'
check "one that may not be probed is refused" refused "." --probe 'x=notify_die'
rtscope record --probe 'p=vfs_read' --retprobe 'r=vfs_read' -o /out/killed-probes --duration 60s &
recorder=$!
has_probes() { grep -q rtscope_ /sys/kernel/tracing/dynamic_events && is_there; }
await 300 has_probes
sleep 1
kill -KILL $recorder
wait $recorder
check "a recorder that was killed leaves its probes" has_probes
rtscope doctor --clean
check "doctor --clean removes them" clean
