# A published experiment: somebody works in the kernel with interrupts off. The monitor names who
# was late, who had the CPU, in which function and phase.
. /lib/vm.sh

mkdir /out/monitor
store=/out/monitor/store.db
lead_us=1000
length_us=5000
injector-user victim --name lab-victim --cpu 0 --prio 50 --period 20000 --count 100000 \
    > /out/monitor/victim &
victim=$!
rtscope monitor --task lab-victim --store $store --every 1h \
    > /out/monitor/end 2> /out/monitor/log &
monitor=$!
counts_or_over() { grep -q 'an interval every' /out/monitor/log || ! kill -0 $monitor; }
await 600 counts_or_over
sleep 1
say "interrupts off"
injector-user kernel --fault "irqoff lab_drain_fifo" --cpu 0 --period 20000 \
    --lead $lead_us --length $length_us
sleep 1
kill -INT $monitor
wait $monitor
echo "ended with $?"
cat /out/monitor/log /out/monitor/end
rtscope monitor report --store $store --last 1h --scope named > /out/monitor/report
cat /out/monitor/report
rtscope monitor export --store $store --to json > /out/monitor/export.json

# Late by the section, from when the timer was due, in milliseconds: behind `timer`, of its longest.
late_ms() { sed -n 's/.* timer \([0-9]*\)\.[0-9]* ms,.*/\1/p' /out/monitor/report | sort -n | tail -n 1; }
is_late_by_the_section() { test "$(late_ms)" -ge 3; }
check "the victim is named" grep -q lab-victim /out/monitor/report
check "the phase is the timer's, late by the section" is_late_by_the_section
# The module has a worker of the kernel do it.
check "the culprit is who worked with interrupts off" grep -q 'kworker.*had the CPU' /out/monitor/report
check "the function is the one that kept interrupts off" grep -q lab_drain_fifo /out/monitor/report
check "its stack is kept" grep -q lab_drain_fifo /out/monitor/export.json

kill $victim
