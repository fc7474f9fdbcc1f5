# Is this kernel fit for the laboratory, and does every injector do what it logs?
. /lib/vm.sh

cat /sys/kernel/tracing/available_events > /out/available_events
cat /sys/kernel/tracing/available_tracers > /out/available_tracers
cp /proc/config.gz /out/ 2>/dev/null

check "the kernel has BTF" test -s /sys/kernel/btf/vmlinux
check "tracefs has instances" mkdir /sys/kernel/tracing/instances/lab
rmdir /sys/kernel/tracing/instances/lab
check "the injector is loaded" test -c /dev/rtscope-inject

kinds=$(cut -d' ' -f1,2 /dev/rtscope-inject | head -n 1)
check "nothing was injected yet" test -z "$kinds"

# logged KIND FUNCTION LENGTH_us: the last line of the log is this fault, and no shorter.
logged() {
    tail -n 1 /dev/rtscope-inject | (
        read -r kind function cpu begin_ns end_ns
        # On PREEMPT_RT a thread prints, wherever it is.
        [ "$kind $function" = "$1 $2" ] && [ "$cpu" = 0 -o "$kind" = console ] &&
            [ $((end_ns - begin_ns)) -ge $(($3 * 1000)) ]
    )
}
kernel_faults() {
    cat <<FAULTS
irqoff lab_drain_fifo
irqoff lab_poll_register
irqoff lab_raw_lock
preemptoff lab_spin_section
preemptoff lab_walk_list
console lab_console
hardirq lab_device
threadirq lab_threaded
softirq lab_tasklet
FAULTS
}
kernel_faults | while read -r kind function; do
    if inject "$kind" "$function" 2000 0; then
        check "$kind in $function is logged with its length" logged "$kind" "$function" 2000
    else
        check "$kind in $function can be injected" false
    fi
done
inject storm lab_tasklet 300000 0
# A storm is many short handlers, logged one by one; a busy host leaves time for few of them.
stormy() { [ "$(grep -c '^storm ' /dev/rtscope-inject)" -gt 2 ]; }
check "a storm is a row of handlers" stormy
refused() { ! inject "$@" 2>/dev/null; }
check "an unknown function is refused" refused irqoff no_such_function 100 0
check "a length without bound is refused" refused irqoff lab_drain_fifo 99999999 0
check "a CPU that is not there is refused" refused irqoff lab_drain_fifo 100 64
cat /dev/rtscope-inject > /out/truth.kernel

# user KIND OPTIONS...: the fault of the user-space injector ends well and logs itself.
user() {
    kind=$1
    injector-user "$@" > /out/truth.now && grep -q "^$kind " /out/truth.now &&
        cat /out/truth.now >> /out/truth.user
}
while read -r line; do
    # shellcheck disable=SC2086 # a word for each option
    check "user fault: $line" user $line
done <<FAULTS
hog --cpu 0 --prio 60 --length 5000 --count 2 --gap 10000
neighbour --cpu 0 --prio 50 --length 5000
inversion --cpu 0 --prio 50 --mutex plain --period 20000 --length 5000 --count 10
inversion --cpu 0 --prio 50 --mutex pi --period 20000 --length 5000 --count 10
pages --cpu 0 --prio 50 --period 20000 --count 5 --bytes 262144
write --cpu 0 --prio 50 --period 20000 --count 3 --bytes 65536 --file /tmp/slow
victim --cpu 0 --prio 50 --period 10000 --count 10
victim --cpu 0 --prio 80 --period 10000 --count 10 --source device
victim --cpu 0 --prio 50 --period 10000 --count 10 --source cpu1
bandwidth --cpu 0 --prio 40 --length 1500000
FAULTS
