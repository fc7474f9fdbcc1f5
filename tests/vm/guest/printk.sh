# The published experiment: a message on a serial line of 115200 baud keeps interrupts off for so
# long that ticks of 4 ms come late. The host judges the diagnosis and the ticks' intervals.
. /lib/vm.sh

# As long as a line of a hundred letters takes there.
length_us=9000
mkdir /out/printk
injector-user victim --name lab-victim --cpu 0 --prio 50 --period 20000 --count 100000 \
    > /out/printk/victim &
victim=$!
sleep 1
rtscope watch --task lab-victim --over 3ms --until switch-in \
    --max-hits 8 --rate 20/s --for 30s --json \
    -o /out/printk/snapshots > /out/printk/watch.json 2> /out/printk/watch.log &
watch=$!
await_watch /out/printk/watch.log
sleep 1
seen=$(wc -l < /dev/rtscope-inject)
say "a message"
injector-user kernel --fault "console lab_console" --cpu 0 --period 20000 --lead 2000 \
    --length $length_us
tail -n +$((seen + 1)) /dev/rtscope-inject > /out/printk/truth
sleep 1
kill -INT $watch
wait $watch
kill $victim

rtscope diagnose --json --task lab-victim --over 3ms /out/printk/snapshots/hit-0001 \
    > /out/printk/hit-0001.json
rtscope diagnose --task lab-victim --over 3ms /out/printk/snapshots/hit-0001
# Instants of the tick, in seconds.
ticks=$(grep -E ' tick_(sched_timer|nohz_handler)$' /proc/kallsyms | cut -c1-16 | tr a-f A-F)
echo "ticks" $ticks
rtscope cat --clock-trace /out/printk/snapshots/hit-0001 | grep hrtimer_expire_entry |
    grep -F "$ticks" | cut -d']' -f1 | tr -d '[' > /out/printk/ticks
cat /out/printk/truth
check "there are ticks" test "$(wc -l < /out/printk/ticks)" -gt 20
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
