# The same gaps for `measure hw`, the kernel's hwlat and its osnoise: the emulator is stopped eight
# times while each of them looks, and a device that nobody asked for interrupts. The host judges.
. /lib/vm.sh

tracing=/sys/kernel/tracing
instance=$tracing/instances/lab
mkdir $instance
# Longer than what the emulator's own work takes at a time, in us; shorter than a stall.
echo 20000 > $instance/tracing_thresh 2>/dev/null || echo 20000 > $tracing/tracing_thresh

# Whoever looks has the CPU again when the stall begins: we are heard in its pauses alone.
stalls() {
    for length in 60 120 180 240 60 120 180 240; do
        sleep 1
        stall 300 $length
    done
    sleep 2
}
storm() {
    for repetition in $(seq 20); do
        inject hardirq lab_device 1000 0
        usleep 20000
    done
}

# hw NAME OPTIONS...: what `measure hw` sees of the disturbance of this name.
hw() {
    name=$1; shift
    say "measure hw, $name"
    rtscope measure hw "$@" --for 60s --json > "/out/$name.json" 2> "/out/$name.log" &
    looking=$!
    sleep 3
    $name
    kill -INT $looking
    wait $looking
    check "measure hw, $name: it ended well" test $? = 0
}
# Before all others: a stall while another task has the CPU is a gap that this task took.
hw stalls --prio 80 --window 1s --width 900ms --over 20ms
# As an ordinary task, beside the one that asks for the interrupts.
hw storm --prio 0 --window 60s --width 60s --over 200us
cat /dev/rtscope-inject > /out/truth

say "hwlat"
echo 1000000 > $tracing/hwlat_detector/window
echo 800000 > $tracing/hwlat_detector/width
echo hwlat > $instance/current_tracer
sleep 2
stalls
cat $instance/trace > /out/hwlat
echo nop > $instance/current_tracer

say "osnoise"
echo > $instance/trace
echo 1 > $instance/events/osnoise/irq_noise/enable
echo 1 > $instance/events/osnoise/sample_threshold/enable
echo osnoise > $instance/current_tracer
sleep 2
stalls
logged=$(wc -l < /dev/rtscope-inject)
storm
tail -n +$((logged + 1)) /dev/rtscope-inject > /out/truth-osnoise
cat $instance/trace > /out/osnoise
echo nop > $instance/current_tracer
rmdir $instance
check "nothing is left in tracefs" test -z "$(ls $tracing/instances)"
