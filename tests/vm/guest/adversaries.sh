# Plays the scenarios of /root/scenarios under one watch, whose threshold is in /root/over. The host
# judges what both wrote.
. /lib/vm.sh

export HOME=/root

over=$(cat /root/over)
rtscope watch --task lab-victim --over "$over" --rate 1000/s --keep 100000 --buffer 512K --json \
    -o /out/snapshots > /out/watch.json 2> /out/watch.log &
watch=$!
await_watch /out/watch.log
say "plays $(grep -c ^scenario /root/scenarios) scenarios"
actor /root/scenarios > /out/actor
played=$?
say "played"
kill -INT $watch
wait $watch
cat /out/watch.log
check "every scenario was played" test $played = 0
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
