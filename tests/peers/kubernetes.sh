#!/bin/bash
# The example for Kubernetes is what its own schema allows, and its container counts when it is run as
# it says: its words, its rights, its mounts. Prints "skipped: why" and succeeds where these cannot be
# had.
#
# usage: kubernetes.sh RTSCOPE
set -euo pipefail

rtscope=$(realpath "${1:?"usage: $0 RTSCOPE"}")
here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rtscope/kubernetes-validate-1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

skip() {
    echo "skipped: the example for Kubernetes: $*"
    exit 0
}

install_peer() {
    [ -x "$cache/bin/kubernetes-validate" ] && return
    rm -rf "$cache"
    /usr/bin/python3 -m venv "$cache" || return 1
    "$cache/bin/pip" install -q 'kubernetes-validate>=1.30,<2' || return 1
}

install_peer >"$scratch/install.log" 2>&1 || {
    rm -rf "$cache"
    skip "$(tail -n 1 "$scratch/install.log")"
}
example=$here/../../packaging/kubernetes/rtscope-monitor.yaml
"$cache/bin/kubernetes-validate" --strict "$example"
[ "$(id -u)" = 0 ] || skip "its schema allows it; to run it needs root"

# The program and its libraries, as an image has them.
root=$scratch/root
mkdir -p "$root/usr/bin" "$root"/{etc/rtscope,etc/rtscope-token,var/lib/rtscope,proc,sys}
cp "$rtscope" "$root/usr/bin/rtscope"
# It gives up what the container may not have, and is no part of an image.
cp "$(command -v setpriv)" "$root/usr/bin/setpriv"
for library in $(ldd "$root"/usr/bin/* | grep -o '/[^ :]*$\|/[^ ]* (' | tr -d ' ('); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
"$cache/bin/python" "$here/kubernetes_run.py" "$example" "$root" "$scratch" "$rtscope"
