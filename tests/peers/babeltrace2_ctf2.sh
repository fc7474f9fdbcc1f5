#!/bin/bash
# babeltrace2 reads the CTF 2 that 'rtscope convert --to ctf2' writes: without a warning but of losses,
# and its text is that of 'rtscope cat'. Version 2.1 is the first that knows CTF 2; where the system's
# is older, that of a later Debian is unpacked into a cache, with the libraries that it needs, and
# nothing is installed. Prints "skipped: why" and succeeds where it cannot be had.
#
# usage: babeltrace2_ctf2.sh RTSCOPE [TRACE…]    without TRACE, one second is recorded (needs root)
set -euo pipefail

rtscope=${1:?"usage: $0 RTSCOPE [TRACE…]"}
shift
# The first Debian with a babeltrace2 that knows CTF 2.
suite=trixie
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/babeltrace2-$suite
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "skipped: babeltrace2 reads our CTF 2: $*"
    exit 0
}

# Whether a version, such as 2.0.4, knows CTF 2.
is_new() { [ "$(printf '2.1\n%s\n' "$1" | sort -V | head -n 1)" = 2.1 ]; }

# Package lists of the other suite, away from the system's own, from the mirror that the system uses.
set_up_apt() {
    local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' \
        'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || { echo "no mirror of Debian in apt's sources"; return 1; }
    [ -e "$keyring" ] || { echo "no $keyring"; return 1; }
    mkdir -p "$scratch"/apt/{lists,cache/archives}/partial
    : >"$scratch/apt/status"
    echo "deb [signed-by=$keyring] $mirror $suite main" >"$scratch/apt/sources"
    cat >"$scratch/apt/config" <<CONFIG
Dir::Etc::sourcelist "$scratch/apt/sources";
Dir::Etc::sourceparts "-";
Dir::State::lists "$scratch/apt/lists";
Dir::State::status "$scratch/apt/status";
Dir::Cache "$scratch/apt/cache";
APT::Sandbox::User "root";
CONFIG
    export APT_CONFIG=$scratch/apt/config
    apt-get update -qq
}

fetch_peer() {
    set_up_apt || return 1
    local packages package
    # All that it would need on a system without anything.
    packages=$(apt-get install --simulate --no-install-recommends -qq babeltrace2 |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p') || return 1
    [ -n "$packages" ] || return 1
    mkdir -p "$scratch/debs" "$(dirname "$cache")"
    # shellcheck disable=SC2086 # one word for each package
    (cd "$scratch/debs" && apt-get download -qq $packages) || return 1
    rm -rf "$cache" "$cache.new"
    for package in "$scratch"/debs/*.deb; do
        dpkg -x "$package" "$cache.new" || return 1
    done
    mv "$cache.new" "$cache"
}

# Runs the fetched one with its own loader, libraries and plugins.
fetched() {
    local lib
    lib=$(dirname "$(find "$cache/usr/lib" -name 'ld-linux*' -path '*-linux-gnu*' | head -n 1)")
    LIBBABELTRACE2_DISABLE_PYTHON_PLUGINS=1 "$lib"/ld-linux* --library-path "$lib" \
        "$cache/usr/bin/babeltrace2" --omit-system-plugin-path --omit-home-plugin-path \
        --plugin-path="$lib/babeltrace2/plugins" "$@"
}

peer=babeltrace2
version_of() { "$1" --version 2>/dev/null | sed -n '1s/^Babeltrace \([0-9.]*\).*/\1/p'; }
if ! command -v babeltrace2 >/dev/null || ! is_new "$(version_of babeltrace2)"; then
    peer=fetched
    if ! [ -x "$cache/usr/bin/babeltrace2" ]; then
        command -v apt-get >/dev/null || skip "version 2.1 is not installed, and this is no Debian"
        fetch_peer >"$scratch/fetch.log" 2>&1 ||
            skip "version 2.1 cannot be fetched: $(tail -n 1 "$scratch/fetch.log")"
    fi
fi
version=$(version_of "$peer")
[ -n "$version" ] && is_new "$version" || skip "found version '$version', which is before 2.1"

# 3 says that the trace has losses, which are carried over.
ours() {
    local status=0
    "$rtscope" "$@" 2>"$scratch/ours.err" || status=$?
    [ "$status" = 0 ] || [ "$status" = 3 ] || { cat "$scratch/ours.err" >&2; return 1; }
}

check() { # trace
    rm -rf "$scratch/trace"
    ours convert "$1" --to ctf2 -o "$scratch/trace"
    ours cat "$scratch/trace" >"$scratch/ours"
    "$peer" "$scratch/trace" >"$scratch/theirs" 2>"$scratch/theirs.err" || {
        cat "$scratch/theirs.err" >&2
        return 1
    }
    if grep -v -e '^$' -e 'Tracer discarded' "$scratch/theirs.err" >&2; then
        echo "$1: babeltrace2 warns" >&2
        return 1
    fi
    cmp "$scratch/ours" "$scratch/theirs" >&2 || return 1
    echo "$1: $(wc -l <"$scratch/ours") events as babeltrace2 $version prints them"
}

if [ $# -eq 0 ]; then
    "$rtscope" record -o "$scratch/recording" --duration 1s
    set -- "$scratch/recording"
fi
for trace in "$@"; do
    check "$trace"
done
