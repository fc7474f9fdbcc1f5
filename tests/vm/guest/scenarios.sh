# Runs the rows of /root/scenarios: a victim, a watch, a fault; leaves truth and snapshots of each.
. /lib/vm.sh

export HOME=/root

# The group of the rows with a quota: a tenth of one CPU.
mkdir /sys/fs/cgroup/lab
echo "10000 100000" > /sys/fs/cgroup/lab/cpu.max

# faults FAULT KERNEL_FAULT: two of them, or time for what the victim does to itself.
faults() {
    case $1 in
    - | self) sleep 1 ;;
    *)
        for _ in 1 2; do
            # shellcheck disable=SC2086 # a word for each option
            injector-user $1 --cpu 0 --period 20000 --fault "$2" || break
            usleep 300000
        done
        ;;
    esac
}

now() { cut -d' ' -f1 /proc/uptime; }

# Rows that follow each other with the same victim and watch share them: what is told apart by its
# time needs no watch of its own.
number=0
before=
while IFS='	' read -r name over_us options victim_kind fault kernel_fault; do
    say "scenario $name"
    if [ "$over_us $options $victim_kind" != "$before" ]; then
        [ -z "$before" ] || end_watch
        before="$over_us $options $victim_kind"
        number=$((number + 1))
        begin_watch /out/watch-$number "$over_us" "$options" "$victim_kind" < /dev/null
    fi
    row=/out/$name
    mkdir "$row"
    echo watch-$number > "$row/watch"
    seen=$(wc -l < /dev/rtscope-inject)
    now > "$row/window"
    faults "$fault" "$kernel_fault" < /dev/null > "$row/truth"
    now >> "$row/window"
    tail -n +$((seen + 1)) /dev/rtscope-inject >> "$row/truth"
    cat "$row/truth"
done < /root/scenarios
end_watch
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
