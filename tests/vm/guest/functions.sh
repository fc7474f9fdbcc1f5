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
