# Recordings of this kernel, each beside what its recorder said: the host asks every verb about them.
. /lib/vm.sh

cpu1=/sys/devices/system/cpu/cpu1/online
# Programs that sleep, wake each other and end.
while :; do sleep 0.01; done &
while :; do ls / | cat > /dev/null; sleep 0.02; done &
while :; do dd if=/dev/zero of=/tmp/load bs=64k count=20 2> /dev/null; sleep 0.05; done &

# recorded NAME OPTIONS: a recording that ends well.
recorded() {
    name=$1; shift
    rtscope record --task '*' "$@" -o "/out/$name" > "/out/$name.said" 2>&1
    status=$?
    cat "/out/$name.said"
    # With 3 it says that losses forbid a statement.
    [ $status = 0 ] || [ $status = 3 ]
}

check "a busy machine is recorded" recorded plain --duration 2s
check "system calls, interrupts and timers beside that" \
    recorded calls --events sched,irq,timer,syscall --duration 1s
check "a recording loses events" recorded lossy --buffer 16K --events sched,irq,syscall --duration 2s

rtscope record --task '*' --duration 3s -o /out/hotplug > /out/hotplug.said 2>&1 &
recorder=$!
sleep 1
echo 0 > $cpu1
sleep 0.5
echo 1 > $cpu1
wait $recorder
check "CPU 1 goes off and comes" test $? = 0
