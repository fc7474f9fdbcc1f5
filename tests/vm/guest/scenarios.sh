# Runs the rows of /root/scenarios: a victim, a watch, a fault; leaves truth and diagnosis of each.
. /lib/vm.sh

export HOME=/root
period_us=20000

# scenario NAME OVER_us VICTIM FAULT KERNEL_FAULT
scenario() {
    dir=/out/$1
    mkdir "$dir"
    seen=$(wc -l < /dev/rtscope-inject)
    # shellcheck disable=SC2086 # a word for each option
    injector-user victim --name lab-victim --cpu 0 --period $period_us --count 100000 $3 &
    victim=$!
    # Its first activations fault pages in.
    sleep 0.2
    # More than one hit: on one CPU the watch's own start may be the first.
    rtscope watch --task lab-victim --over "$2us" --max-hits 8 --rate 20/s --for 20s --json \
        -o "$dir/snapshots" > "$dir/watch.json" 2> "$dir/watch.log" &
    watch=$!
    tries=0
    until grep -q watching "$dir/watch.log" || [ $tries = 100 ] || ! kill -0 $watch; do
        usleep 100000
        tries=$((tries + 1))
    done
    usleep 200000
    if [ "$4" != - ]; then
        for _ in 1 2; do
            # shellcheck disable=SC2086
            injector-user $4 --cpu 0 --period $period_us --fault "$5" >> "$dir/truth" || break
            usleep 300000
        done
    else
        sleep 1
    fi
    kill -INT $watch
    wait $watch
    echo $? > "$dir/watch.status"
    kill $victim
    wait $victim
    tail -n +$((seen + 1)) /dev/rtscope-inject >> "$dir/truth"
    for snapshot in "$dir"/snapshots/*; do
        [ -d "$snapshot" ] || continue
        to=$dir/$(basename "$snapshot")
        rtscope diagnose --json --task lab-victim --over "$2us" "$snapshot" \
            > "$to.json" 2>> "$dir/diagnosis.log"
        rtscope diagnose --task lab-victim --over "$2us" "$snapshot" > "$to.txt" 2>&1
    done
    cat "$dir"/*.log "$dir"/*.txt "$dir/truth" 2>/dev/null
}

while IFS='	' read -r name over_us victim fault kernel_fault; do
    say "scenario $name"
    scenario "$name" "$over_us" "$victim" "$fault" "$kernel_fault" < /dev/null
done < /root/scenarios
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
