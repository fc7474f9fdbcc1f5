#!/bin/bash
# A store's intervals go to a server with S3's interface (moto), and what lies there is what a push
# to a folder writes, byte by byte. Prints "skipped: why" and succeeds where the server cannot be
# installed.
#
# usage: s3.sh RTSCOPE      (as root)
set -euo pipefail

rtscope=$(realpath "${1:?"usage: $0 RTSCOPE"}")
here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/moto-5
scratch=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server"
    rm -rf "$scratch"
}
trap cleanup EXIT

skip() {
    echo "skipped: a fleet in a bucket: $*"
    exit 0
}

install_peer() {
    [ -x "$cache/bin/moto_server" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q 'moto[s3,server]>=5,<6' || return 1
}

command -v curl >/dev/null || skip "there is no curl"
install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "$(tail -n 1 "$scratch/install.log")"
}

"$rtscope" monitor --store "$scratch/store.db" --every 1s --for 4s >"$scratch/monitor.log" 2>&1

port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$cache/bin/moto_server" -H 127.0.0.1 -p "$port" >"$scratch/server.log" 2>&1 &
server=$!
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_ENDPOINT_URL=http://127.0.0.1:$port
"$cache/bin/python" "$here/s3_bucket.py" make fleet

mkdir "$scratch/folder"
"$rtscope" monitor push --store "$scratch/store.db" --to s3://fleet/lab
cp "$scratch/store.db-pushed" "$scratch/there"
rm "$scratch/store.db-pushed"
"$rtscope" monitor push --store "$scratch/store.db" --to "$scratch/folder"
cp "$scratch/there" "$scratch/store.db-pushed"
"$cache/bin/python" "$here/s3_bucket.py" compare fleet lab "$scratch/folder"

# Twice is once; a bucket that is not there, and one that was emptied, are said.
"$rtscope" monitor push --store "$scratch/store.db" --to s3://fleet/lab | grep -q '^0 '
refused() {
    if "$rtscope" monitor push --store "$scratch/store.db" --to "$1" 2>"$scratch/refused"; then
        echo "$1 was not refused" >&2
        exit 1
    fi
    grep -q "$2" "$scratch/refused"
}
refused s3://nowhere/lab NoSuchBucket
"$cache/bin/python" "$here/s3_bucket.py" empty fleet
refused s3://fleet/lab 'it has no mark'
echo "a fleet in a bucket: the same bytes as in a folder"
