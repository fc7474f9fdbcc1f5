# What is in a measurement's way before it begins is refused in three parts; what comes in its way
# meanwhile leaves what was measured until then, and is said: a CPU that goes away, a clock that is
# set, the kernel's limit on real-time tasks.
. /lib/vm.sh

cpu1=/sys/devices/system/cpu/cpu1/online

# refused NAME PART WORDS...: exit 1; the error names the part, the value found and the way out.
refused() {
    name=$1 part=$2; shift 2
    rtscope "$@" > /dev/null 2> "/out/$name.err"
    check "$name: refused" test $? = 1
    check "$name: what" grep -q "^error:.*$part" "/out/$name.err"
    check "$name: found" grep -q "^ *found: ." "/out/$name.err"
    check "$name: fix" grep -q "^ *fix: ." "/out/$name.err"
}

# measuring NAME WORDS...: a measurement that has gone on for two seconds, and writes an object.
measuring() {
    name=$1; shift
    say "measure $*"
    rtscope measure "$@" --json > "/out/$name.json" 2> "/out/$name.err" &
    measured=$!
    await 300 measures
    sleep 2
}
measures() { grep -qsE 'rtscope-(cyc|gap|loop)' /proc/$measured/task/*/comm; }

# has_slept: its threads sleep and wake already; under a watch they wait until that is armed, which
# takes long on a busy host.
has_slept() {
    for task in /proc/$measured/task/*; do
        case $(cat "$task/comm" 2>/dev/null) in
            rtscope-cyc*) [ "$(awk '/^voluntary_ctxt/ { print $2 }' "$task/status")" -gt 50 ] || return 1 ;;
        esac
    done
}

# ends STATUS: what measuring began ends in time, with this status.
ends() {
    await 600 is_gone
    check "$name: it ends in time" is_gone
    is_gone || kill -KILL $measured
    wait $measured
    check "$name: exit code $1" test $? = "$1"
    cat "/out/$name.err"
}
is_gone() { [ ! -e /proc/$measured ] || grep -q '^State:.Z' /proc/$measured/status; }

# has CLAIM PATTERN: in the object.
has() { check "$name: $1" grep -Eq "$2" "/out/$name.json"; }
# cpu_has CPU CLAIM PATTERN: in what the object says of this CPU.
cpu_has() { check "$name: CPU $1 $2" of_cpu "$1" "$3"; }
of_cpu() { tr '{' '\n' < "/out/$name.json" | grep "\"cpu\":$1," | grep -Eq "$2"; }
# samples CPU: of a thread, where each of the CPUs from 0 has one.
samples() { grep -o '"samples":[0-9]*' "/out/$name.json" | sed -n "$(($1 + 1))s/.*://p"; }

# loses_cpu1 WORDS...: while it measures on both CPUs, or on this one.
loses_cpu1() {
    measuring "$@"
    await 300 has_slept
    echo 0 > $cpu1
    ends 3
    echo 1 > $cpu1
    has "it is incomplete" '"complete": ?false'
    has "why is said" 'CPU 1 was taken from its thread'
}

say "a CPU that is off before"
echo 0 > $cpu1
refused off-cyclic "CPU 1" measure cyclic --cpu 1 --for 1s
refused off-hw "CPU 1" measure hw --cpu 1 --for 1s
refused off-loop "CPU 1" measure loop --cpu 1 --loops 1000
refused off-preempt "CPU 1" measure preempt --cpu 1
measuring off cyclic --for 4s
ends 0
cpu_has 0 "is measured" '"max_ns":[0-9]'
check "off: no other is" sh -c "! grep -q '\"cpu\":1' /out/off.json"
echo 1 > $cpu1

say "a CPU that goes off meanwhile"
for part in plain phases over; do
    case $part in
        plain) more= ;;
        phases) more=--phases ;;
        over) more="--over 5s -o /out/away-snapshots" ;;
    esac
    # shellcheck disable=SC2086 # a word for each option
    loses_cpu1 away-$part cyclic --cpu 0,1 --interval 10ms --for 6s $more
    cpu_has 1 "has what was measured" '"lost_cpu":true,"max_ns":[0-9]'
    cpu_has 0 "is measured until the end" '"lost_cpu":false,"max_ns":[0-9]'
    [ $part != plain ] || check "away-plain: $(samples 0) samples on CPU 0, $(samples 1) on CPU 1" \
        test "$(samples 0)" -gt "$(samples 1)"
done
loses_cpu1 away-hw hw --cpu 0,1 --for 6s --window 1s --width 500ms --over 5ms
cpu_has 1 "has what was measured" '"iterations":[1-9].*"lost_cpu":true'
cpu_has 0 "is measured until the end" '"iterations":[1-9].*"lost_cpu":false'
loses_cpu1 away-loop loop --cpu 1 --loops 1000000 --events-per-second 10000
has "it has what was measured" '"loops": [1-9]'
loses_cpu1 away-fast loop --cpu 1 --loops 100000000000
has "it has what was measured" '"loops": [1-9]'

say "a clock that is set"
for step in 100 -100; do
    measuring "clock$step" cyclic --cpu 0 --clock realtime --interval 10ms --for 8s
    date -s "@$(($(date +%s) + step))"
    ends 0
    has "it is said" "the clock realtime was set by"
    has "the sleep over it is no sample" '"max_ns":[0-9]{1,10},'
    has "and is counted" '"unmeasured":1'
    check "clock$step: it goes on: $(samples 0) samples" test "$(samples 0)" -gt 400
done

say "the kernel's limit on real-time tasks"
taskset 2 sh -c 'while :; do :; done' &
waiting=$!
measuring throttled hw --cpu 1 --prio 80 --window 1s --width 1s --over 10ms --for 6s
ends 0
kill $waiting
has "it is said" "RT throttling may stop a real-time task"
has "an ordinary task that waited ran by it" "throttled: sh ran"
case $(uname -r) in
    # Later kernels have the fair server instead.
    6.1.*) cpu_has 1 "is taken for 50 ms" '"longest_ns":[45][0-9]{7},' ;;
esac
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
