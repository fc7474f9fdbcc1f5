# From the network card's interrupt to the request's handling: memcached behind one card, its client
# behind another on the same cable. On one CPU first nothing but requests, then a hog above the
# interrupt's thread; on two a long interrupt of another driver on memcached's CPU, while the
# network has the other one, and then a log that goes to a slow device. The host judges the
# diagnoses.
. /lib/vm.sh

network_cpu=$(($(nproc) - 1))

ulimit -n 4096
unshare -n sleep 100000 &
far=$!
sleep 1
ip link set eth1 netns $far
ip addr add 10.9.0.1/24 dev eth0
ip link set eth0 up
nsenter -t $far -n ip addr add 10.9.0.2/24 dev eth1
nsenter -t $far -n ip link set eth1 up
sleep 4
check "the cable is plugged" ping -c 1 -W 5 10.9.0.2
grep eth0 /proc/interrupts
irq=$(awk -F: '/eth0-rx/ { gsub(/ /, "", $1); print $1 }' /proc/interrupts)
echo "irq $irq" > /out/facts
for number in $(awk -F: '/eth[01]/ { gsub(/ /, "", $1); print $1 }' /proc/interrupts); do
    echo $network_cpu > "/proc/irq/$number/smp_affinity_list"
done

# serve COMMAND...: memcached, or what starts it.
serve() {
    taskset -c 0 "$@" -u root -t 1 -l 10.9.0.1 -m 16 > /out/memcached.log 2>&1 &
    server=$!
    sleep 1
    for task in /proc/$server/task/*; do echo "$(cat "$task/comm") $(basename "$task")"; done
}

# watched NAME OVER [END]: what mc-worker suffers from the interrupt to its switch-in, or to END,
# while stdin's commands run.
watched() {
    mkdir "/out/$1"
    rtscope watch --task mc-worker --irq "$irq" --over "$2" --until "${3:-switch-in}" --max-hits 1 \
        --for 20s --json -o "/out/$1/snapshots" > "/out/$1/watch.json" 2> "/out/$1/watch.log" &
    watch=$!
    await_watch "/out/$1/watch.log"
    sleep 1
    nsenter -t $far -n injector-user client --name lab-client --cpu $network_cpu --prio 80 \
        --period 20000 --count 50 --file 10.9.0.1 > "/out/$1/requests" &
    client=$!
    usleep 400000
    sh > "/out/$1/truth"
    wait $client
    wait $watch
    echo "the watch ended with $?"
    for snapshot in "/out/$1"/snapshots/*; do
        [ -d "$snapshot" ] || continue
        to=/out/$1/$(basename "$snapshot")
        rtscope diagnose --json --task mc-worker --over "$2" "$snapshot" > "$to.json"
        rtscope diagnose --task mc-worker --over "$2" "$snapshot" > "$to.txt" 2>&1
    done
    cat "/out/$1/watch.log" "/out/$1"/*.txt "/out/$1/truth"
    check "$1: requests were answered" test "$(wc -l < "/out/$1/requests")" = 50
    check "$1: the watch left a snapshot" ls "/out/$1/hit-0001.json"
}

if [ $network_cpu = 0 ]; then
    serve memcached
    say "requests alone"
    echo "sleep 1" | watched requests 20us
    say "a hog"
    echo "injector-user hog --name rt-hog --cpu 0 --prio 60 --policy rr --length 300000 \
        --period 20000 --lead 1000" |
        watched hog 50ms
    kill $server
else
    serve memcached
    say "a long interrupt"
    echo "injector-user kernel --fault 'hardirq lab_device' --cpu 0 --length 50000 \
        --period 20000 --lead 5000; cat /dev/rtscope-inject" |
        watched interrupt 20ms
    kill $server
    wait $server
    say "a log on a slow device"
    serve injector-user logged --file /dev/vdb -- memcached -vv
    echo "sleep 1" | watched logging 15ms block
    kill $server
fi
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
