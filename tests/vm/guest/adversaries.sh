# Plays the scenarios of /root/scenarios under one watch, whose threshold is in /root/over; /root/actor
# has the actor's options. The host judges what both wrote.
. /lib/vm.sh

export HOME=/root

over=$(cat /root/over)
rtscope watch --task lab-victim --over "$over" --rate 1000/s --keep 100000 --buffer 512K --json \
    -o /out/snapshots > /out/watch.json 2> /out/watch.log &
watch=$!
await_watch /out/watch.log
# shellcheck disable=SC2046 # a word for each
actor /root/scenarios $(cat /root/actor) > /out/actor &
actor=$!
# On a busy host a scenario takes its time, and who says nothing counts as hung.
while kill -0 $actor; do
    say "$(grep -c ^scenario /out/actor) of $(grep -c ^scenario /root/scenarios) scenarios played"
    sleep 2
done
wait $actor
played=$?
kill -INT $watch
wait $watch
cat /out/watch.log
check "every scenario was played" test $played = 0
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
