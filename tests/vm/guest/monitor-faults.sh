# What happens to a machine in months: its wall clock is set, it sleeps, a CPU goes and comes. The
# monitor goes on, says so, and calls nobody late for it.
. /lib/vm.sh

cpu1=/sys/devices/system/cpu/cpu1/online
store=/out/store.db
lives() { kill -0 $monitor 2> /dev/null; }
counts_or_over() { grep -q 'an interval every' /out/log.monitor || ! lives; }
# A timer of CLOCK_REALTIME, which the setting of that clock lets expire.
cyclictest -q -c 1 -t 1 -a 0 -p 80 -i 300000 -m > /out/cyclictest &
sleeper=$!
injector-user victim --name lab-victim --cpu 1 --prio 50 --period 20000 --count 1000000 \
    > /out/victim &
victim=$!
rtscope monitor --store $store --every 3s > /out/end 2> /out/log.monitor &
monitor=$!
await 600 counts_or_over
sleep 4

rtscope watch --task cyclictest --over 5s --until switch-in -o /out/snapshots \
    > /out/watched 2>&1 &
watch=$!
await_watch /out/watched
sleep 1
set_by() { date -s "@$(($(date +%s) + $1))" > /dev/null; }
say "the clock is set"
# Longer than a busy host stands still, and not further than the machine is up: an expiry before
# its start would be none.
set_by 20
sleep 3
set_by -3600
sleep 4
check "it outlives a wall clock that is set" lives
kill -INT $watch
wait $watch
cat /out/watched
check "a watch reports nobody" grep -q ' hits 0 ' /out/watched

say "CPU 1 goes and comes"
echo 0 > $cpu1
sleep 4
echo 1 > $cpu1
taskset -pc 1 $victim
sleep 4
check "it outlives a CPU that goes and comes" lives

say "the machine sleeps"
# All but the last step of it, for five seconds, in which its clocks stand still: nobody has to wake it.
slept=no
cat /sys/power/state /sys/power/mem_sleep /sys/power/pm_test
if grep -q deep /sys/power/mem_sleep && grep -q core /sys/power/pm_test; then
    echo core > /sys/power/pm_test
    echo deep > /sys/power/mem_sleep
    echo mem > /sys/power/state && slept=yes
fi
say "slept: $slept"
[ $slept = yes ] || note "this machine cannot be put to sleep"
sleep 4
check "it outlives a machine that sleeps" lives

kill -INT $monitor
wait $monitor
check "it ends well" test $? = 0
cat /out/log.monitor /out/end
rtscope monitor report --store $store > /out/report
cat /out/report
rtscope monitor export --store $store --to csv > /out/export.csv
# longest_us PHASE NAME: the longest of the task, in microseconds.
longest_us() {
    awk -F, -v phase="$1" -v name="$2" '$7 == phase && $17 == name && $12 > max { max = $12 }
        END { print int(max / 1000) }' /out/export.csv
}
steps() { sed -n 's/^ *\([0-9]*\) intervals in which somebody set.*/\1/p' /out/report; }
check "what was set is said" [ "$(steps)" -ge 2 ]
check "nobody is late because the clock was set" [ "$(longest_us timer cyclictest)" -lt 5000000 ]
check "nor is anybody else" [ "$(longest_us timer_wakeup_switch lab-victim)" -lt 5000000 ]
samples_of() { awk -F, -v cpu="$1" '$7 == "switch" && $8 == cpu { sum += $9 } END { print sum + 0 }' /out/export.csv; }
check "both CPUs have samples" [ "$(samples_of 0)" -gt 0 -a "$(samples_of 1)" -gt 0 ]

kill $victim $sleeper
