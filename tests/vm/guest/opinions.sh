# The kernel's own tracers and cyclictest measure the same activations as we do: timerlat its
# threads, osnoise an interrupt, cyclictest itself; and hwlat holds interrupts off for a length that
# it says. The host compares the numbers.
. /lib/vm.sh

tracing=/sys/kernel/tracing
instance=$tracing/instances/lab
mkdir $instance
echo mono > $instance/trace_clock

# begin NAME TASK OVER: a watch that is ready.
begin() {
    mkdir -p "/out/$1"
    rtscope watch --task "$2" --min-prio 10 --over "$3" --until switch-in \
        --max-hits 8 --rate 20/s --for 30s --json \
        -o "/out/$1/snapshots" > "/out/$1/watch.json" 2> "/out/$1/watch.log" &
    watch=$!
    await_watch "/out/$1/watch.log"
    sleep 1
}

# end NAME TASK OVER: its diagnoses.
end() {
    sleep 1
    kill -INT $watch
    wait $watch
    for snapshot in "/out/$1"/snapshots/*; do
        [ -d "$snapshot" ] || continue
        to=/out/$1/$(basename "$snapshot")
        rtscope diagnose --json --task "$2" --over "$3" "$snapshot" > "$to.json"
        rtscope diagnose --task "$2" --over "$3" "$snapshot" > "$to.txt" 2>&1
    done
    cat "/out/$1"/*.log "/out/$1"/*.txt "/out/$1/truth"
    check "$1: the watch left a snapshot" ls "/out/$1/hit-0001.json"
}

# truth_of NAME COMMAND...: what the kernel module logs meanwhile.
truth_of() {
    name=$1; shift
    seen=$(wc -l < /dev/rtscope-inject)
    "$@"
    tail -n +$((seen + 1)) /dev/rtscope-inject > "/out/$name/truth"
}

# timerlat NAME FAULT FUNCTION: its samples and osnoise's events while the fault happens.
timerlat() {
    begin "$1" 'timerlat/*' 1500us
    echo > $instance/trace
    truth_of "$1" inject "$2" "$3" 3000 0
    usleep 100000
    cat $instance/trace > "/out/$1/trace"
    end "$1" 'timerlat/*' 1500us
    awk '/context thread timer_latency/ && $(NF - 1) > most { most = $(NF - 1) }
        END { print "'"$1"'_ns", most }' "/out/$1/trace" >> /out/facts
    awk -v of="$3" '/irq_noise/ && index($0, of) { print "'"$1"'_irq_ns", $(NF - 1) }' \
        "/out/$1/trace" >> /out/facts
}

say "timerlat and osnoise"
echo 1000 > $tracing/osnoise/timerlat_period_us
echo timerlat > $instance/current_tracer
echo 1 > $instance/events/osnoise/irq_noise/enable
sleep 1
timerlat timerlat irqoff lab_drain_fifo
timerlat osnoise hardirq lab_device
echo nop > $instance/current_tracer
echo 0 > $instance/events/osnoise/irq_noise/enable

say "cyclictest"
cyclictest -q -t1 -p 90 -i 20000 -l 400 -m > /out/cyclictest.txt &
cyclictest=$!
sleep 1
begin cyclictest cyclictest 15ms
truth_of cyclictest inject irqoff lab_drain_fifo 50000 0
end cyclictest cyclictest 15ms
wait $cyclictest
cat /out/cyclictest.txt
awk '/Max:/ { print "cyclictest_us", $NF }' /out/cyclictest.txt >> /out/facts

say "hwlat"
injector-user victim --name lab-victim --cpu 0 --prio 50 --period 20000 --count 100000 &
victim=$!
sleep 1
begin hwlat lab-victim 5ms
echo 1000000 > $tracing/hwlat_detector/window
echo 30000 > $tracing/hwlat_detector/width
echo > $instance/trace
: > /out/hwlat/truth
echo hwlat > $instance/current_tracer
sleep 3
cat $instance/trace > /out/hwlat/trace
echo nop > $instance/current_tracer
end hwlat lab-victim 5ms
echo "hwlat_gaps $(grep -c 'inner/outer' /out/hwlat/trace)" >> /out/facts
kill $victim
cat /out/facts
rmdir $instance
check "nothing is left in tracefs" test -z "$(ls $tracing/instances)"
