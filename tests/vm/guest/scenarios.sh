# Runs the rows of /root/scenarios: a victim, a watch, a fault; leaves truth and snapshots of each.
. /lib/vm.sh

export HOME=/root
period_us=20000

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
            injector-user $1 --cpu 0 --period $period_us --fault "$2" || break
            usleep 300000
        done
        ;;
    esac
}

# begin N OVER_us WATCH VICTIM: a victim and a watch of it, in the folder /out/watch-N.
begin() {
    dir=/out/watch-$1
    mkdir "$dir"
    # shellcheck disable=SC2086 # a word for each option
    injector-user ${4%% *} --name lab-victim --cpu 0 --period $period_us --count 1000000 \
        ${4#* } > "$dir/victim" &
    victim=$!
    # Its first activations fault pages in.
    sleep 0.2
    options=$3
    [ "$options" != - ] || options=
    # shellcheck disable=SC2086
    rtscope watch --task lab-victim --over "$2us" --rate 20/s --max-hits 100 --json $options \
        -o "$dir/snapshots" > "$dir/watch.json" 2> "$dir/watch.log" &
    watch=$!
    tries=0
    until grep -q watching "$dir/watch.log" || [ $tries = 100 ] || ! kill -0 $watch; do
        usleep 100000
        tries=$((tries + 1))
    done
    usleep 200000
}

# end: of the watch and its victim, if there is one.
end() {
    [ -n "$watch" ] || return
    kill -INT $watch
    wait $watch
    echo $? > "$dir/watch.status"
    kill $victim
    wait $victim
    cat "$dir/watch.log"
}

now() { cut -d' ' -f1 /proc/uptime; }

# Rows that follow each other with the same victim and watch share them: what is told apart by its
# time needs no watch of its own.
watch=
number=0
before=
while IFS='	' read -r name over_us options victim_kind fault kernel_fault; do
    say "scenario $name"
    if [ "$over_us $options $victim_kind" != "$before" ]; then
        end
        before="$over_us $options $victim_kind"
        number=$((number + 1))
        begin $number "$over_us" "$options" "$victim_kind" < /dev/null
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
end
check "nothing is left in tracefs" test -z "$(ls /sys/kernel/tracing/instances)"
