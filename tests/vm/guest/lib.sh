# What the guests' scripts share. stdout and stderr go to /out/log, progress to the console.

# say TEXT: progress; a guest without any for two minutes counts as hung.
say() { echo "rtscope-vm: $(cut -d' ' -f1 /proc/uptime) $*" > /dev/console; echo "== $*"; }

# check CLAIM COMMAND...: the claim holds when the command succeeds.
check() {
    claim=$1; shift
    if "$@"; then verdict=ok; else verdict="not ok"; fi
    echo "$verdict $claim" >> /out/checks
    say "$verdict $claim"
}

# note TEXT: what whoever runs the case is to see although no check failed.
note() { echo "$*" >> /out/notes; say "note: $*"; }

# inject KIND FUNCTION LENGTH_us CPU: one fault of the kernel module; returns when it is over.
inject() { echo "$*" > /dev/rtscope-inject; }

# stall AFTER_ms LENGTH_ms: has the emulator stopped, so long after it reads this.
stall() { say "stall $1 $2"; }

# await TENTHS COMMAND...: until the command succeeds, so many tenths of a second at most.
await() {
    tenths=$1; shift
    until "$@"; do
        [ "$tenths" -gt 0 ] || return 1
        usleep 100000
        tenths=$((tenths - 1))
    done
}

# await_watch LOG: until $watch, which writes this log, looks, or is over.
await_watch() { await 600 looks_or_over "$1"; }
looks_or_over() { grep -q watching "$1" || ! kill -0 $watch; }

# begin_watch FOLDER OVER_us WATCH VICTIM: a victim on CPU 0, every 20 ms unless it says otherwise,
# and a watch of it with further options, or with `-`; both write into the folder.
begin_watch() {
    folder=$1
    mkdir "$folder"
    # shellcheck disable=SC2086 # a word for each option
    injector-user ${4%% *} --name lab-victim --cpu 0 --period 20000 --count 1000000 \
        ${4#* } > "$folder/victim" &
    victim=$!
    await 300 has_its_name
    # Its first activations fault pages in.
    sleep 0.2
    options=$3
    [ "$options" != - ] || options=
    # What the injectors know is how late the victim began.
    case $options in *--until*) ;; *) options="$options --until switch-in" ;; esac
    # shellcheck disable=SC2086
    rtscope watch --task lab-victim --over "$2us" --rate 20/s --max-hits 100 --keep 100 --json $options \
        -o "$folder/snapshots" > "$folder/watch.json" 2> "$folder/watch.log" &
    watch=$!
    await_watch "$folder/watch.log"
    usleep 200000
}
has_its_name() { grep -qs lab-victim /proc/$victim/task/*/comm; }

# end_watch: of what begin_watch began.
end_watch() {
    kill -INT $watch
    wait $watch
    echo $? > "$folder/watch.status"
    kill $victim
    wait $victim
    cat "$folder/watch.log"
}
