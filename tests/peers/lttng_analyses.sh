#!/bin/bash
# lttng-analyses 0.6.1 reads a recording of ours: cputop and schedtop run, and their rows are sane; of a
# program whose calls are known, iousagetop, iolatencytop and iolog show names and sizes, as strace does.
# Needs root. Prints "skipped: why" and succeeds where the peer cannot be installed.
#
# usage: lttng_analyses.sh RTSCOPE [RECORDING]    without RECORDING, one second is recorded
set -euo pipefail

rtscope=${1:?"usage: $0 RTSCOPE [RECORDING]"}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/lttng-analyses-0.6.1
scratch=$(mktemp -d)
load=
cleanup() {
    if [ -n "$load" ]; then kill "$load" 2>/dev/null || true; fi
    rm -rf "$scratch"
}
trap cleanup EXIT

skip() {
    echo "skipped: lttng-analyses reads a recording: $*"
    exit 0
}

# The babeltrace 1 bindings are a package of the distribution, not of PyPI.
bindings() { /usr/bin/python3 -c 'import babeltrace' 2>/dev/null; }

install_peer() {
    [ -x "$cache/bin/lttng-cputop" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv --system-site-packages "$cache" || return 1
    # 0.6.1 is older than Python 3.10's collections and pyparsing 3.
    "$cache/bin/pip" install -q 'setuptools<80' wheel pyparsing==2.4.7 || return 1
    "$cache/bin/pip" install -q --no-build-isolation lttnganalyses==0.6.1 || return 1
    local event
    event=$(find "$cache/lib" -path '*lttnganalyses/core/event.py')
    sed -i -e 's/^import collections$/import collections.abc/' \
        -e 's/(collections\.Mapping)/(collections.abc.Mapping)/' "$event"
}

if ! bindings; then
    apt-get install -y -q python3-babeltrace babeltrace python3-venv >"$scratch/apt.log" 2>&1 || true
fi
bindings || skip "no package python3-babeltrace"
install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "cannot install it: $(tail -n 1 "$scratch/install.log")"
}

recording=${2:-$scratch/recording}
if [ ! -e "$recording" ]; then
    # A known load: this process runs all the time, so cputop must name it.
    cp /bin/bash "$scratch/busyloop"
    "$scratch/busyloop" -c 'while :; do :; done' &
    load=$!
    "$rtscope" record -o "$recording" --duration 1s
    kill "$load"
    wait "$load" 2>/dev/null || true
    load=
fi

export PATH="$cache/bin:$PATH" LC_ALL=C.UTF-8
for view in cputop schedtop; do
    "lttng-$view" --no-progress "$recording/kernel" >"$scratch/$view" 2>"$scratch/$view.err" || {
        cat "$scratch/$view.err" >&2
        exit 1
    }
    echo "--- lttng-$view"
    head -n 25 "$scratch/$view"
done
# cputop: a share of a CPU per row; schedtop: a wake-up and a switch per row.
grep -Eq '[0-9]+\.[0-9]+ ?%' "$scratch/cputop"
grep -Eq '[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{9}' "$scratch/schedtop"
if [ $# -lt 2 ]; then
    # The load's share is near one CPU; other work on the machine takes some of it.
    share=$(sed -nE 's/.* ([0-9]+)\.[0-9]+ % +busyloop \([0-9]+\).*/\1/p' "$scratch/cputop" | head -n 1)
    [ "${share:-0}" -ge 10 ] || { echo "cputop does not name the load" >&2; exit 1; }
fi
if [ $# -lt 2 ]; then
    # Names and sizes of a program whose calls strace tells too: 6 times 3000 bytes, then 2100.
    known=$scratch/known
    head -c 20100 /dev/zero >"$known-in"
    copy=(dd "if=$known-in" "of=$known-out" bs=3000)
    "$rtscope" record --buffer 64M --events default,syscall -o "$scratch/calls" -- "${copy[@]}" 2>/dev/null
    for view in iousagetop iolatencytop iolog; do
        limit=(--limit 100000)
        [ "$view" = iolog ] && limit=()
        "lttng-$view" --no-progress "${limit[@]}" "$scratch/calls/kernel" \
            >"$scratch/$view" 2>"$scratch/$view.err" || {
            cat "$scratch/$view.err" >&2
            exit 1
        }
        echo "--- lttng-$view"
        grep -F "$known-" "$scratch/$view" || { echo "$view does not name $known-in" >&2; exit 1; }
    done
    for file in "$known-in" "$known-out"; do
        grep -F "$file" "$scratch/iousagetop" | grep -Fq '19.63 KiB'
        "$rtscope" report iousagetop "$scratch/calls" | grep -F "$file" | grep -Fq '19.63 KiB'
    done
    # Call by call: its name, its file, and of reads and writes how much.
    sed -nE "s|^\[.*\] +([a-z0-9]+) .* ([0-9.]+) +([KMG]i)?B .*($known-[a-z]+).*|\1 \4 \2 \3B|p;
             s|^\[.*\] +([a-z0-9]+) .* N/A .*($known-[a-z]+).*|\1 \2|p" "$scratch/iolog" >"$scratch/ours"
    [ -s "$scratch/ours" ]
    if command -v strace >/dev/null; then
        strace -f -y -e trace=openat,dup2,read,write,close -o "$scratch/strace" "${copy[@]}" 2>/dev/null
        sed -nE "s|^[0-9 ]*(openat)\(.*= [0-9]+<($known-[a-z]+)>$|\1 \2|p;
                 s|^[0-9 ]*(dup2\|close)\([0-9]+<($known-[a-z]+)>.*|\1 \2|p;
                 s|^[0-9 ]*(read\|write)\([0-9]+<($known-[a-z]+)>.*= ([0-9]+)$|\1 \2 \3|p" "$scratch/strace" |
            awk '$3 >= 1024 { $3 = sprintf("%.2f KiB", $3 / 1024) } $3 == "0" { $3 = "0 B" } 1' >"$scratch/theirs"
        diff "$scratch/theirs" "$scratch/ours"
        echo "strace names the same $(wc -l <"$scratch/ours") calls"
    else
        echo "skipped: calls equal to strace's: strace is not installed"
    fi
fi
echo "lttng-analyses read $recording"
