#!/bin/sh
# Tries the packages as their users do: a fresh Debian root, the first commands, an upgrade,
# removal without a trace, lintian. usage: packaging/check.sh FOLDER [SUITE]
set -eu

folder=$(realpath "$1") suite=${2:-bookworm}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
root=$(mktemp -d /var/tmp/rtscope-root-XXXXXX)

leave() {
    for place in sys/kernel/tracing sys proc dev; do
        mountpoint -q "$root/$place" && umount "$root/$place"
    done
    rm -rf --one-file-system "$root"
}
trap leave EXIT

step() { printf '%-44s ' "$1"; }
fine() { printf '%s\n' "${1:-ok}"; }
wrong() { # what
    printf 'FAILED\n%s\n' "$1" >&2
    exit 1
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

step "a fresh root of $suite"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 ||
    wrong "see $folder/debootstrap.log"
mount --bind /proc "$root/proc"
mount --bind /sys "$root/sys"
mount --bind /dev "$root/dev"
mount --bind /sys/kernel/tracing "$root/sys/kernel/tracing" 2>/dev/null || true
fine
files() { (cd "$root" && find . -xdev -path ./proc -prune -o -path ./sys -prune -o -path ./dev -prune \
    -o -path './var/*' -prune -o -path './tmp/*' -prune -o -path ./etc/ld.so.cache -prune -o -print | sort); }

step "apt install"
cp "$folder"/*.deb "$root/tmp"
began=$(date +%s%N)
# What these packages need comes first, so that their own removal can be told from it.
names=$(for deb in "$folder"/*.deb; do dpkg-deb -f "$deb" Package; done)
needs=$(for deb in "$folder"/*.deb; do dpkg-deb -f "$deb" Depends; done |
    tr ',' '\n' | sed 's/(.*//; s/|.*//' | tr -d ' ' | sort -u | grep -v rtscope)
# shellcheck disable=SC2086 # one word for each package
inside apt-get install -y -qq $needs >"$folder/apt.log" 2>&1 || wrong "see $folder/apt.log"
files >"$folder/before.txt"
inside sh -c 'dpkg -i /tmp/*.deb' >>"$folder/apt.log" 2>&1 || wrong "see $folder/apt.log"
fine "ok ($(( ($(date +%s%N) - began) / 1000000 )) ms)"

step "rtscope --version, doctor"
said=$(inside rtscope --version) || wrong "$said"
inside rtscope doctor >"$folder/doctor.txt" 2>&1 || wrong "see $folder/doctor.txt"
fine "$(printf '%s\n' "$said" | head -n 1)"

step "rtscope demo hog"
if inside sh -c 'cd /tmp && rtscope demo hog' >"$folder/demo.txt" 2>&1; then
    grep -q "ran ahead of it" "$folder/demo.txt" || wrong "see $folder/demo.txt"
    fine
else
    wrong "see $folder/demo.txt"
fi

step "rtscope diagnose"
cp "$(dirname "$0")/../docs/recordings/late-loop.txt" "$root/tmp"
said=$(inside rtscope diagnose /tmp/late-loop.txt --task ctrl_loop) || wrong "$said"
case $said in
*"rt_hog (tid 116, rt 60) ran ahead of it"*) fine ;;
*) wrong "$said" ;;
esac

step "upgrade over an older one"
older=$(mktemp -d)
for deb in "$folder"/*.deb; do
    rm -rf "$older/tree"
    dpkg-deb -R "$deb" "$older/tree"
    sed -i 's/^Version: .*/Version: 0.0.1/; s/(= [0-9.]*)/(= 0.0.1)/g; s/(>= 0\.1[0-9.]*)/(>= 0.0.1)/g' \
        "$older/tree/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$older/tree" "$root/tmp/older-$(basename "$deb")" >/dev/null
done
rm -rf "$older"
{
    # shellcheck disable=SC2086 # one word for each package
    inside dpkg --purge $names &&
        inside sh -c 'dpkg -i /tmp/older-*.deb' &&
        inside sh -c 'rm /tmp/older-*.deb; dpkg -i /tmp/*.deb'
} >>"$folder/apt.log" 2>&1 || wrong "see $folder/apt.log"
[ "$(inside dpkg-query -W -f '${Version}' rtscope)" != 0.0.1 ] || wrong "still the older one"
fine

step "removal without a trace"
# shellcheck disable=SC2086 # one word for each package
inside dpkg --purge $names >>"$folder/apt.log" 2>&1 || wrong "see $folder/apt.log"
files >"$folder/after.txt"
said=$(diff "$folder/before.txt" "$folder/after.txt") || wrong "$said"
fine

step "lintian"
said=$(lintian --tag-display-limit 0 --fail-on error,warning "$folder"/*.deb 2>&1) || wrong "$said"
fine
