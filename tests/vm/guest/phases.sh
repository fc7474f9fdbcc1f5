# Faults of known length lie in the phase that they belong to: what keeps interrupts away in the
# timer, what keeps the scheduler away in the switch.
. /lib/vm.sh

# A phase may be off by this: what the kernel itself does differs from one wake-up to the next.
off_ns_max=2000
interval_us=3000
# Where system calls are not preempted, a section that begins so long after the wake-up, within the
# same call, keeps the thread waiting for its whole length: with interrupts off as well, in the switch.
# And calls of our own shell last for up to 150 us there: a shorter section is not in the longest sample.
case $(uname -v) in
    *PREEMPT_RT*) later_ns_max=0; lengths="50 200 1000" ;;
    *) later_ns_max=5000; lengths="200 1000" ;;
esac

# figure PHASE KEY FILE: a figure of a phase's distribution.
figure() { grep -o "\"$1\":{[^}]*" "$3" | sed "s/.*\"$2\":\([0-9]*\).*/\1/" | head -n 1; }
# longest KEY FILE: a part of the longest sample.
longest() { grep -o "\"longest\":{[^}]*" "$2" | sed "s/.*\"$1\":\([0-9]*\).*/\1/"; }

# trial KIND FUNCTION LENGTH_us PHASE
trial() {
    file=/out/$1-$3.json
    rtscope measure cyclic --cpu 0 --phases --interval ${interval_us}us --json > "$file" &
    measuring=$!
    sleep 1
    # The shorter the sections, the more it takes until some lie over an instant.
    for repetition in $(seq $((50 + 25000 / $3))); do
        inject "$1" "$2" "$3" 0
        # At every place in the interval: equal pauses could be in step with it.
        usleep $((500 + repetition * 997 % interval_us))
    done
    kill -INT $measuring
    wait $measuring
    cat /dev/rtscope-inject > /out/truth
    at=$(grep -o '"longest_at_ns":[0-9]*' "$file" | cut -d: -f2)
    timer=$(longest timer_ns "$file")
    wakeup=$(longest wakeup_ns "$file")
    # The section over the instant from which the phase counts, and what the phase takes without one.
    phase=$4
    [ $later_ns_max = 0 ] || [ "$(longest switch_ns "$file")" -lt "$timer" ] || phase=switch
    case $phase in
        timer) from=$at; found=$timer ;;
        switch) from=$((at + timer + wakeup)); found=$(longest switch_ns "$file") ;;
    esac
    awk -v from="$from" -v found="$found" -v usual="$(figure "$phase" min_ns "$file")" \
        -v off_max=$off_ns_max -v later="$later_ns_max" -v name="$1 $3 us in $phase" '
        $4 <= from + later && $5 >= from { expect = $5 - from; seen = 1 }
        END {
            off = found - usual - expect
            printf "%s: section until %d ns after, phase %d ns, usually %d ns, off %d ns\n",
                name, expect, found, usual, off
            exit !(seen && off <= off_max && off >= -off_max)
        }' /out/truth > /out/trial
    status=$?
    cat /out/trial
    cat /out/trial >> /out/figures
    check "$1 of $3 us is in the phase $phase, within 2 us" test $status = 0
}

for length in $lengths; do
    trial irqoff lab_drain_fifo $length timer
    trial preemptoff lab_spin_section $length switch
done

rtscope measure cyclic --clock realtime --for 3s --json > /out/clock.json &
measuring=$!
sleep 1
date -s "@$(($(date +%s) + 100))"
wait $measuring
check "a clock that was set meanwhile is said" grep -q "the clock realtime was set by" /out/clock.json
