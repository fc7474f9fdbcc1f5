# npt's loop under each tracer, with a real-time priority, with and without the iterations that an
# interrupt or a switch hit. On one CPU nobody reads meanwhile, so that the buffers hold all events.
. /lib/vm.sh

cpu=$(($(nproc) - 1))
case $cpu in
0) loops=50000 ;;
*) loops=200000 ;;
esac
export RTSCOPE_RING_SIZE=16M

# looped NAME WORDS...: the loop; its words may stand behind a recorder's.
looped() {
    name=$1; shift
    say "$name"
    "$@" --json --loops $loops --drop 1000 --cpu $cpu --prio 80 --net-of-irqs \
        --lttng-loop /root/npt_lttng.so > "/out/$name.said" 2> "/out/$name.log"
    check "$name: the loop ended well" test $? = 0
    # What a recorder says comes behind.
    awk '/^[{]/ { inside = 1 } inside { print } /^[}]/ { inside = 0 }' "/out/$name.said" \
        > "/out/$name.json"
    grep -v '^[ {}]' "/out/$name.said"
    cat "/out/$name.log"
}

looped none rtscope measure loop --tracer none
looped rtscope rtscope record --user npt -o /tmp/npt -- rtscope measure loop --tracer rtscope
check "rtscope: nothing was lost" grep -q ' 0 lost' /out/rtscope.said
looped lttng rtscope measure loop --tracer lttng
looped lttng-timer rtscope measure loop --tracer lttng-timer
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
