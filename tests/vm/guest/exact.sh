# The same faults in every boot; the host compares the figures of two boots byte by byte.
. /lib/vm.sh

faults() {
    for length in 50 100 500 3000; do
        echo "irqoff lab_drain_fifo $length"
        echo "preemptoff lab_spin_section $length"
        echo "hardirq lab_device $length"
    done
    for repetition in 1 2 3 4 5; do
        echo "irqoff lab_poll_register 3000"
    done
}
faults | while read -r kind function length; do
    inject "$kind" "$function" "$length" 0
    usleep 20000
done
cat /dev/rtscope-inject > /out/truth.kernel
awk '{ print $1, $2, int(($5 - $4) / 1000) }' /out/truth.kernel > /out/figures
cat /out/figures
check "every fault is logged" test "$(wc -l < /out/figures)" = 17
spread=$(awk '$2 == "lab_poll_register" { print $3 }' /out/figures | sort -u | wc -l)
check "five equal sections last the same microseconds" test "$spread" = 1
within() { ! awk '$3 >= 6000' /out/figures | grep -q .; }
check "no section lasts twice as long as the longest asked for" within
