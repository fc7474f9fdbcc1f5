#!/bin/sh
# Tries the .deb files as their users do, in a fresh root of each distribution: installed by apt, the
# first commands, an upgrade, removal without a trace; then lintian.
# usage: packaging/check.sh FOLDER [SUITE…]
set -eu

here=$(realpath "$(dirname "$0")") folder=$(realpath "$1")
shift
[ $# != 0 ] || set -- bookworm trixie jammy noble
log=$folder/check
mkdir -p "$log"
root=
# Who is started with the system.
wanted_by=/etc/systemd/system/multi-user.target.wants

leave() {
    [ -n "$root" ] || return 0
    for place in sys/kernel/tracing sys proc dev; do
        ! mountpoint -q "$root/$place" || umount "$root/$place"
    done
    rm -rf --one-file-system "$root"
    root=
}
trap leave EXIT
# Who is ended from outside leaves no root behind, and none of this system's folders in it.
trap 'exit 1' HUP INT PIPE TERM

step() { printf '%-44s ' "$suite: $1"; }
fine() { printf '%s\n' "${1:-ok}"; }
wrong() { # what
    printf 'FAILED\n%s\n' "$1" >&2
    exit 1
}
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
apt() { inside apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" >>"$log/$suite-apt.txt" 2>&1; }
# The packages of a pattern, as they are called inside.
# shellcheck disable=SC2086 # the pattern is one
debs() { (cd "$root/tmp" && printf '/tmp/%s ' $1); }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
# All that is there, but for what apt and dpkg remember.
files() {
    (cd "$root" && find . -xdev \( -path './proc/*' -o -path './sys/*' -o -path './dev/*' -o -path './tmp/*' \
        -o -path './var/lib/dpkg/*' -o -path './var/lib/apt/*' -o -path './var/cache/*' \
        -o -path './var/log/*' -o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}

fresh_root() {
    root=$(mktemp -d /var/tmp/rtscope-root-XXXXXX)
    step "a fresh root"
    if ! said=$("$here/root.sh" "$suite" "$root" "$log/$suite-debootstrap.txt"); then
        fine "$said"
        return 1
    fi
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    # Folders of systemd's own.
    mkdir -p "$root/var/lib/private" "$root$wanted_by"
    mount --bind /proc "$root/proc"
    mount --bind /sys "$root/sys"
    mount --bind /dev "$root/dev"
    mount --bind /sys/kernel/tracing "$root/sys/kernel/tracing" 2>/dev/null || true
    # What the root brought along and nobody needs would go with our packages.
    apt update && apt purge --autoremove || wrong "see $log/$suite-apt.txt"
    mkdir "$root/tmp/new" "$root/tmp/old"
    cp "$folder"/*.deb "$root/tmp/new"
    cp "$here/../docs/recordings/late-loop.txt" "$root/tmp"
    fine
}

# The same packages as a version before: their control files alone tell them apart.
older() {
    tree=$(mktemp -d)
    for deb in "$folder"/*.deb; do
        rm -rf "$tree/deb"
        dpkg-deb -R "$deb" "$tree/deb"
        sed -i 's/^Version: .*/Version: 0.0.1/; s/(= [0-9.]*)/(= 0.0.1)/g; s/(>= 0\.1[0-9.]*)/(>= 0.0.1)/g' \
            "$tree/deb/DEBIAN/control"
        dpkg-deb --root-owner-group -Znone -b "$tree/deb" "$root/tmp/old/$(basename "$deb")" >/dev/null
    done
    rm -rf "$tree"
}

answers() { # what it printed
    case $1 in
    *"rt_hog (tid 116, rt 60) ran ahead of it"*) ;;
    *) wrong "no such answer: $1" ;;
    esac
}

installed() {
    step "apt install, to the first answer"
    files >"$log/$suite-bare.txt"
    began=$(now_ms)
    apt install --no-install-recommends $(debs 'new/rtscope_*.deb') || wrong "see $log/$suite-apt.txt"
    said=$(inside rtscope diagnose /tmp/late-loop.txt --task ctrl_loop) || wrong "$said"
    answers "$said"
    fine "ok ($(($(now_ms) - began)) ms)"
    step "the libraries too"
    apt install --no-install-recommends $(debs 'new/*.deb') ||
        wrong "see $log/$suite-apt.txt"
    fine
}

used() {
    step "rtscope --version, doctor"
    said=$(inside rtscope --version) || wrong "$said"
    inside rtscope doctor >"$log/$suite-doctor.txt" 2>&1 || wrong "see $log/$suite-doctor.txt"
    fine "$(printf '%s\n' "$said" | head -n 1)"
    step "rtscope demo hog"
    inside sh -c 'cd /tmp && rtscope demo hog' >"$log/$suite-demo.txt" 2>&1 &&
        grep -q "ran ahead of it" "$log/$suite-demo.txt" || wrong "see $log/$suite-demo.txt"
    fine
}

# What helps who types: pages and completions.
helped() {
    step "a page for each verb, completions"
    verbs=$(inside rtscope --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    [ -n "$verbs" ] || wrong "no verbs in rtscope --help"
    for verb in $verbs; do
        [ "$verb" = help ] || [ -e "$root/usr/share/man/man1/rtscope-$verb.1.gz" ] || wrong "no page of $verb"
    done
    # The folders in which the shells of Debian and Ubuntu look.
    for file in zsh/vendor-completions/_rtscope fish/vendor_completions.d/rtscope.fish; do
        [ -e "$root/usr/share/$file" ] || wrong "no $file"
    done
    # shellcheck disable=SC2016 # the shell inside is meant
    said=$(inside bash -c '. /usr/share/bash-completion/completions/rtscope
        COMP_WORDS=(rtscope report cput) COMP_CWORD=2
        _rtscope_named && echo "${COMPREPLY[*]}"') || wrong "$said"
    [ "$said" = cputop ] || wrong "of cput it makes '$said'"
    said=$(inside dpkg --verify rtscope) || wrong "$said"
    [ -z "$said" ] || wrong "$said"
    fine
}

# What a program is built with, by this machine's compiler and the files of the packages alone.
linked() {
    step "pkg-config, programs in C"
    where=$(echo "$root"/usr/lib/*/pkgconfig)
    found() { # flags, library
        PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
            PKG_CONFIG_SYSROOT_DIR="$root" PKG_CONFIG_LIBDIR="$where:${where%/*}/rtscope/lttng/pkgconfig" \
            pkg-config "$@"
    }
    for library in rtscope rtscope-probe lttng-ust; do
        case $library in
        rtscope) text='#include <rtscope.h>' ;;
        rtscope-probe) text='#include <rtscope/event.h>' ;;
        *) text='#include <lttng/tracepoint.h>' ;;
        esac
        # shellcheck disable=SC2046 # several words
        said=$(echo "$text
int main(void) { return 0; }" | cc -x c - -o "$root/tmp/linked" -Wl,--no-as-needed \
            -Wl,--allow-shlib-undefined $(found --cflags --libs $library) 2>&1) || wrong "$said"
        # Its loader finds the library that it was linked with.
        said=$(inside /tmp/linked 2>&1) || wrong "$library: $said"
        said=$(found --libs-only-L $library)
        for path in $said; do
            [ -d "${path#-L}" ] || wrong "$library: no folder ${path#-L}"
        done
    done
    rm -f "$root/tmp/linked"
    # Machine code, and not rustc's own beside it, which is four times as much.
    ! readelf -SW "$root"/usr/lib/*/librtscope.a 2>&1 | grep -q '\.llvmbc' || wrong "librtscope.a has .llvmbc"
    fine
}

# The service of a system that runs systemd, which a root has not: who would be called writes down how.
serviced() { # what is to be called
    step "the service: $1"
    grep -q "$1 rtscope-monitor.service" "$root/tmp/called" || wrong "$(cat "$root/tmp/called")"
    fine
}

with_systemd() {
    mkdir -p "$root/run/systemd/system"
    printf '#!/bin/sh\necho "$@" >>/tmp/called\n' >"$root/usr/bin/systemctl"
    chmod 755 "$root/usr/bin/systemctl"
    : >"$root/tmp/called"
}

without_systemd() {
    rm -rf "$root/run/systemd" "$root/usr/bin/systemctl"
}

removed() {
    names=$(for deb in "$folder"/*.deb; do dpkg-deb -f "$deb" Package; done)
    step "removal without a trace"
    # shellcheck disable=SC2086 # one word for each package
    apt purge --autoremove $names || wrong "see $log/$suite-apt.txt"
    without_systemd
    files >"$log/$suite-after.txt"
    said=$(diff "$log/$suite-bare.txt" "$log/$suite-after.txt") || wrong "$said"
    fine
}

upgraded() {
    step "upgrade over an older one"
    older
    with_systemd
    for age in old new; do
        : >"$root/tmp/called"
        apt install --no-install-recommends $(debs "$age/*.deb") ||
            wrong "see $log/$suite-apt.txt"
    done
    [ "$(inside dpkg-query -W -f '${Version}' rtscope)" != 0.0.1 ] || wrong "still the older one"
    said=$(inside rtscope diagnose /tmp/late-loop.txt --task ctrl_loop) || wrong "$said"
    answers "$said"
    fine
    serviced try-restart
    step "settings that were changed stay"
    echo 'every = "10m"' >"$root/etc/rtscope/monitor.toml"
    : >"$root/tmp/called"
    apt install --reinstall --no-install-recommends $(debs 'new/rtscope_*.deb') ||
        wrong "see $log/$suite-apt.txt"
    grep -q 10m "$root/etc/rtscope/monitor.toml" || wrong "the settings were replaced"
    said=$(inside rtscope monitor --config /etc/rtscope/monitor.toml --check-config 2>&1) ||
        wrong "$said"
    fine
}

# A service that was enabled, and has counted: as systemd leaves it, as the unit has a user of its own.
counted() {
    mkdir "$root/var/lib/private/rtscope"
    echo intervals >"$root/var/lib/private/rtscope/monitor.db"
    ln -s private/rtscope "$root/var/lib/rtscope"
    ln -s /lib/systemd/system/rtscope-monitor.service "$root$wanted_by/rtscope-monitor.service"
    step "what was counted stays behind a removal"
    apt remove rtscope || wrong "see $log/$suite-apt.txt"
    [ -s "$root/var/lib/rtscope/monitor.db" ] || wrong "no monitor.db"
    fine
}

for suite in "$@"; do
    : >"$log/$suite-apt.txt"
    if fresh_root; then
        installed
        used
        helped
        linked
        removed
        upgraded
        counted
        serviced stop
        removed
    fi
    leave
done
suite=lintian
step "errors and warnings"
said=$(lintian --tag-display-limit 0 --fail-on error,warning "$folder"/*.deb 2>&1) || wrong "$said"
fine
