# Runs the rows of /root/scenarios: a victim, a watch, a fault; leaves truth and snapshots of each.
. /lib/vm.sh

export HOME=/root
period_us=20000

# The group of the rows with a quota: a tenth of one CPU.
mkdir /sys/fs/cgroup/lab
echo "10000 100000" > /sys/fs/cgroup/lab/cpu.max

# faults FAULT KERNEL_FAULT: two of them, or time for what the victim does to itself.
faults() {
    case $1 in
    - | self) sleep 1 ;;
    *)
        for _ in 1 2; do
            # shellcheck disable=SC2086 # a word for each option
            injector-user $1 --cpu 0 --period $period_us --fault "$2" || break
            usleep 300000
        done
        ;;
    esac
}

# scenario NAME OVER_us WATCH VICTIM FAULT KERNEL_FAULT
scenario() {
    dir=/out/$1
    mkdir "$dir"
    seen=$(wc -l < /dev/rtscope-inject)
    # shellcheck disable=SC2086 # a word for each option
    injector-user $4 --name lab-victim --cpu 0 --period $period_us --count 100000 \
        > "$dir/victim" &
    victim=$!
    # Its first activations fault pages in.
    sleep 0.2
    options=$3
    [ "$options" != - ] || options=
    # More than one hit: on one CPU the watch's own start may be the first.
    # shellcheck disable=SC2086
    rtscope watch --task lab-victim --over "$2us" --max-hits 8 --rate 20/s --for 20s --json \
        $options -o "$dir/snapshots" > "$dir/watch.json" 2> "$dir/watch.log" &
    watch=$!
    tries=0
    until grep -q watching "$dir/watch.log" || [ $tries = 100 ] || ! kill -0 $watch; do
        usleep 100000
        tries=$((tries + 1))
    done
    usleep 200000
    faults "$5" "$6" > "$dir/truth"
    kill -INT $watch
    wait $watch
    echo $? > "$dir/watch.status"
    kill $victim
    wait $victim
    [ "$5" != self ] || cp "$dir/victim" "$dir/truth"
    tail -n +$((seen + 1)) /dev/rtscope-inject >> "$dir/truth"
    cat "$dir/watch.log" "$dir/truth"
}

while IFS='	' read -r name over_us watch victim fault kernel_fault; do
    say "scenario $name"
    scenario "$name" "$over_us" "$watch" "$victim" "$fault" "$kernel_fault" < /dev/null
done < /root/scenarios
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
