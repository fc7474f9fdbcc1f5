# Sourced by what compares us with Perfetto, with WHAT (what is not shown without it), RTSCOPE and TRACE…: sets
# $rtscope, $here, $cache (the peer's environment), $scratch and the array traces; one second is recorded where there
# are none (needs root). Where the peer cannot be installed it prints "skipped: why" and ends with success.
# shellcheck shell=bash disable=SC2034

what=$1
rtscope=${2:?"usage: $0 RTSCOPE [TRACE…]"}
traces=("${@:3}")
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/perfetto-0.59.1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

install_peer() {
    [ -x "$cache/bin/python" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    # The package carries the descriptors; nothing else is fetched.
    "$cache/bin/pip" install -q perfetto==0.59.1 protobuf==7.36.2 || return 1
}

install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    echo "skipped: $what: $(tail -n 1 "$scratch/install.log")"
    exit 0
}
if [ ${#traces[@]} -eq 0 ]; then
    "$rtscope" record -o "$scratch/recording" --duration 1s
    traces=("$scratch/recording")
fi
