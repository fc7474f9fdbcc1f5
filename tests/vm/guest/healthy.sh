# A busy guest without a fault: hackbench, stress-ng and churn, four periodic tasks that are in time by
# themselves, and a watch of all real-time tasks, for /root/minutes turns of a minute. The host judges
# what the watches accuse.
. /lib/vm.sh

export HOME=/root

# churn: processes, pipes, files and pages.
churn() {
    while :; do
        find /proc/self /sys/kernel -maxdepth 3 2> /dev/null | head -n 200 | wc -l
        dd if=/dev/zero of=/tmp/churn bs=4096 count=200 2> /dev/null
        cat /proc/*/stat | wc -c
        rm -f /tmp/churn
        sleep 0.3
    done > /dev/null 2>&1
}

# Each load in a session of its own, which ends with all that it has started; below this script,
# which has to say that it lives.
load() { setsid nice -n 10 "$@" > /dev/null 2>&1 & loads="$loads $!"; }

turn() {
    folder=/out/healthy-$1
    mkdir "$folder"
    loads=
    rtscope watch --over "$(cat /root/over)" --rate 1/s --keep 100000 --buffer 2M --json \
        -o "$folder/snapshots" > "$folder/watch.json" 2> "$folder/watch.log" &
    watch=$!
    await_watch "$folder/watch.log"
    # As much as leaves an emulator time for its real-time tasks.
    load sh -c 'while :; do hackbench -g 1 -f 3 -l 300; sleep 1; done'
    load stress-ng --cpu 1 --cpu-load 20 --vm 1 --vm-bytes 8M --vm-hang 1 --timer 1 --timer-freq 500
    churn & churner=$!
    renice -n 10 -p $churner
    actor /root/scenarios > "$folder/actor" &
    actor=$!
    while kill -0 $actor; do
        say "turn $1: $(grep -c '"hit"' "$folder/watch.json") hits"
        sleep 5
    done
    wait $actor
    played=$?
    kill -INT $watch
    # It has all snapshots to explain still.
    while kill -0 $watch 2> /dev/null; do
        say "turn $1: the watch ends"
        sleep 5
    done
    wait $watch
    for load in $loads; do kill -TERM -"$load"; done
    kill $churner
    cat "$folder/watch.log"
    check "the tasks of turn $1 were played" test $played = 0
}

turns=$(cat /root/minutes)
number=0
while [ $number -lt "$turns" ]; do
    turn $number
    number=$((number + 1))
done
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
