# A host that stops the emulator for 60 ms again and again, while this guest is busy with work that
# is rich in short sections with interrupts off; then real sections among the stalls. The host
# judges all snapshots.
. /lib/vm.sh

# churn: processes, pipes, files and pages, on the victim's CPU and on the other one.
churn() {
    while :; do
        find /proc/self /sys/kernel -maxdepth 3 2> /dev/null | head -n 200 | wc -l
        dd if=/dev/zero of=/tmp/churn bs=4096 count=200 2> /dev/null
        cat /proc/*/stat | wc -c
        rm -f /tmp/churn
    done > /dev/null 2>&1
}

# watched NAME COMMAND...: what the victim suffers while the command runs.
watched() {
    begin_watch /out/$1 20000 - "victim --prio 50"
    shift
    "$@"
    end_watch
}

# sections: real ones, on the victim's CPU.
sections() {
    seen=$(wc -l < /dev/rtscope-inject)
    for _ in 1 2 3 4 5 6 7 8; do
        injector-user kernel --length 100000 --lead 10000 --cpu 0 --period 20000 \
            --fault "irqoff lab_drain_fifo" > /dev/null
        usleep 400000
    done
    tail -n +$((seen + 1)) /dev/rtscope-inject > /out/section/truth
}

for cpu in 0 1; do
    churn &
    churners="$churners $!"
    taskset -pc $cpu $!
done
say "stalls and no fault"
watched nothing sleep 12
say "sections among stalls"
watched section sections
# shellcheck disable=SC2086 # a word for each
kill $churners
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
