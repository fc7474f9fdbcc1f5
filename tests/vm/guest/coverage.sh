# How many sections are seen: interrupts or preemption off, of several lengths and at no instant in
# particular, while a probe timer of several periods runs. The host counts.
. /lib/vm.sh

repetitions=10

# sections FUNCTION...: repetitions of each length, at phases that differ.
sections() {
    for length in 200 500 1000 2000 5000; do
        i=0
        while [ $i -lt $repetitions ]; do
            inject "$@" $length 0
            i=$((i + 1))
            usleep $((40000 + (i * 613 + length * 7) % 5000))
        done
    done
}

for period in 1000 4000 16000; do
    say "a probe timer every $period us"
    dir=/out/$period
    mkdir "$dir"
    injector-user victim --name lab-probe --cpu 0 --prio 90 --period $period --count 1000000 &
    probe=$!
    sleep 1
    rtscope watch --task lab-probe --over 120us --until switch-in --keep 100000 \
        --max-hits 1000 --rate 1000/s --for 200s --json \
        --buffer 256K -o "$dir/snapshots" > "$dir/watch.json" 2> "$dir/watch.log" &
    watch=$!
    await_watch "$dir/watch.log"
    sleep 1
    seen=$(wc -l < /dev/rtscope-inject)
    sections irqoff lab_drain_fifo
    say "preemption off"
    sections preemptoff lab_spin_section
    tail -n +$((seen + 1)) /dev/rtscope-inject > "$dir/truth"
    kill -INT $watch
    wait $watch
    echo "the watch ended with $?"
    tail -n 1 "$dir/watch.json"
    kill $probe
    wait $probe
    check "$period: every section is logged" \
        test "$(wc -l < "$dir/truth")" = $((repetitions * 10))
    du -s "$dir"
done
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
