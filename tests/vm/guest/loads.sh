# Every mode of a watch loads on this kernel: older verifiers take more steps, and refuse more.
. /lib/vm.sh

is_over() { ! kill -0 $watch; }

# loads OPTIONS...: the watch begins, and ends when asked; whether it judged anything in its moment
# is not asked.
loads() {
    # The one before said that it watches: a signal that comes too early is ignored, as a shell
    # starts what it does not wait for.
    : > /out/watch.log
    rtscope watch "$@" --no-snapshot > /dev/null 2> /out/watch.log &
    watch=$!
    await_watch /out/watch.log
    kill -INT $watch
    if ! await 600 is_over; then
        cat /proc/$watch/task/*/stack /proc/$watch/task/*/status
        kill -KILL $watch
        wait $watch
        return 1
    fi
    wait $watch
    grep -q watching /out/watch.log && return
    cat /out/watch.log
    return 1
}
group=lab-loads
mkdir -p /sys/fs/cgroup
grep -q ' /sys/fs/cgroup cgroup2 ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/$group
check "the guest has a control group" test -f /sys/fs/cgroup/$group/cgroup.procs

# The largest programs are those that ask for groups.
ends() {
    cat <<MODES
--cgroup $group --over 1ms
--over 1ms
--all
--task ini* --over 1ms --timeout 100ms
MODES
}
ends | while read -r mode; do
    for until in block switch-in user-return; do
        # shellcheck disable=SC2086 # a word for each option
        check "watch $mode --until $until" loads $mode --until $until
    done
done
others() {
    cat <<MODES
--process ini* --over 1ms
--pid 1 --over 1ms
--task ini* --over 1ms --cpu 0
--task ini* --over 1ms --irq timer
--task ini* --over 1ms --softirq timer
--task ini* --trigger signal
MODES
}
others | while read -r mode; do
    # shellcheck disable=SC2086
    check "watch $mode" loads $mode
done
