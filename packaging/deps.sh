#!/bin/sh
# Installs what is missing to build, to test and to run the demo; asks nothing and changes nothing
# that is there. usage: packaging/deps.sh build|demo|test|vm|bench|packages|book|licences
set -eu

wanted=${1:-build}
rust_min=1.89

fail() { # what, found, fix
    printf 'error: %s\n  found: %s\n  fix:  %s\n' "$1" "$2" "$3" >&2
    exit 1
}

check_rust() {
    command -v cargo >/dev/null ||
        fail "a Rust toolchain is needed" "no cargo in PATH" \
            "install Rust $rust_min or later (https://rustup.rs), then: export PATH=\$HOME/.cargo/bin:\$PATH"
    found=$(rustc --version | cut -d' ' -f2)
    oldest=$(printf '%s\n%s\n' "$rust_min" "$found" | sort -V | head -n 1)
    [ "$oldest" = "$rust_min" ] ||
        fail "the Rust toolchain is too old" "rustc $found" "rustup update stable (needs $rust_min)"
}

# One need a line: the package's name as a pattern, and a command that is true when it is there.
build_needs() {
    cat <<'NEEDS'
^clang$ command -v clang
^(pkgconf|pkg-config)$ command -v pkg-config
^libelf-dev$ test -e /usr/include/libelf.h
^zlib1g-dev$ test -e /usr/include/zlib.h
^gcc$ command -v cc
NEEDS
}

test_needs() {
    cat <<'NEEDS'
^babeltrace2$ command -v babeltrace2
^util-linux$ command -v setpriv
^memcached$ command -v memcached
^rt-tests$ command -v hackbench
^trace-cmd$ command -v trace-cmd
^g\+\+$ command -v c++
^strace$ command -v strace
^valgrind$ command -v valgrind
^tmux$ command -v tmux
^python3$ command -v python3
^python3-venv$ python3 -c 'import ensurepip, venv'
NEEDS
}

bench_needs() {
    cat <<'NEEDS'
^babeltrace2$ command -v babeltrace2
^rt-tests$ command -v hackbench
^sysbench$ command -v sysbench
^iperf3$ command -v iperf3
^iproute2$ command -v ip
^mariadb-server$ command -v mariadbd
^memcached$ command -v memcached
^trace-cmd$ command -v trace-cmd
^python3-bt2$ /usr/bin/python3 -c 'import bt2'
^lttng-tools$ command -v lttng-sessiond
^valgrind$ command -v valgrind
^liblttng-ust-dev$ echo '#include <lttng/tracepoint.h>' | cc -E -x c - -o /dev/null
NEEDS
}

# Other processors, languages and tracers, for the tests that hold the probe against them.
probe_needs() {
    cat <<'NEEDS'
^gcc-aarch64-linux-gnu$ command -v aarch64-linux-gnu-gcc
^libc6-dev-arm64-cross$ test -e /usr/aarch64-linux-gnu/include/stdlib.h
^qemu-user$ command -v qemu-aarch64
^default-jdk-headless$ command -v javac
^liblog4j2-java$ test -e /usr/share/java/log4j-core.jar
^lttng-tools$ command -v lttng-sessiond
^liblttng-ust-dev$ echo '#include <lttng/tracepoint.h>' | cc -E -x c - -o /dev/null
NEEDS
}

# What reads our pages, metrics and histograms, for the tests that hold us against it.
page_needs() {
    cat <<'NEEDS'
^chromium$ command -v chromium || command -v chromium-browser
^prometheus$ command -v promtool
^gnuplot-nox$ command -v gnuplot
NEEDS
}

vm_needs() {
    cat <<'NEEDS'
^qemu-system-x86$ command -v qemu-system-x86_64
^busybox-static$ busybox --help && ! ldd "$(command -v busybox)"
^kmod$ test -x /sbin/depmod
^xz-utils$ command -v xz
^make$ command -v make
^gcc-12$ command -v gcc-12
^libc6-dev$ test -e /usr/lib/x86_64-linux-gnu/libc.a
^rt-tests$ command -v cyclictest
^util-linux$ command -v setpriv
^iproute2$ command -v ip
NEEDS
}

packages_needs() {
    cat <<'NEEDS'
^dpkg-dev$ command -v dpkg-shlibdeps
^binutils$ command -v objcopy
^git$ command -v git
^lintian$ command -v lintian
^rpm$ command -v rpmbuild
^debootstrap$ command -v debootstrap
^python3$ python3 -c 'import tomllib'
NEEDS
}

jack_need() {
    echo '^jackd2$ command -v jackd'
}

# A program that cargo builds from its sources, as Debian has none; minutes, once.
cargo_need() { # program, crate, version
    PATH="$HOME/.cargo/bin:$PATH" command -v "$1" >/dev/null ||
        cargo install --locked --quiet "$2@$3" ||
        fail "a program is missing" "$1" "cargo install --locked $2@$3"
}

# Prints the packages of the needs on stdin that are not met.
missing() {
    while read -r pattern probe; do
        sh -c "$probe" >/dev/null 2>&1 || printf '%s\n' "$pattern"
    done
}

apt_is_fresh=
install() { # patterns
    command -v apt-get >/dev/null ||
        fail "packages are missing and this is no Debian" "$*" "install them by hand, then run make again"
    [ "$(id -u)" = 0 ] ||
        fail "packages are missing" "$*" "sudo packaging/deps.sh $wanted"
    export DEBIAN_FRONTEND=noninteractive
    if [ -z "$apt_is_fresh" ]; then
        apt-get update -qq || fail "cannot refresh the package lists" "apt-get update failed" \
            "check the network and /etc/apt/sources.list"
        apt_is_fresh=1
    fi
    names=
    for pattern in "$@"; do
        name=$(apt-cache search --names-only "$pattern" | cut -d' ' -f1 | head -n 1)
        [ -n "$name" ] || fail "no package matches" "$pattern" "check /etc/apt/sources.list"
        names="$names $name"
    done
    echo "installing$names" >&2
    # shellcheck disable=SC2086 # one word for each package; one call, which is minutes faster
    apt-get install -y -qq --no-install-recommends $names >/dev/null
}

check_rust
lacks=$(build_needs | missing)
[ "$wanted" != test ] || lacks="$lacks $(test_needs | missing)"
[ "$wanted" != bench ] || lacks="$lacks $(bench_needs | missing)"
[ "$wanted" != vm ] || lacks="$lacks $(vm_needs | missing)"
[ "$wanted" != packages ] || lacks="$lacks $(packages_needs | missing)"
# shellcheck disable=SC2086 # one word for each package
[ -z "${lacks# }" ] || install $lacks
[ "$wanted" != book ] || cargo_need mdbook mdbook 0.5.4
[ "$wanted" != licences ] || cargo_need cargo-deny cargo-deny 0.20.2
if [ "$wanted" = demo ] || [ "$wanted" = test ] || [ "$wanted" = vm ]; then
    # Without it the demo shows the hog, and tests say that they were skipped.
    lacks=$(jack_need | missing)
    [ -z "$lacks" ] || (install $lacks) ||
        echo "jackd2 could not be installed: the demo falls back to 'rtscope demo hog'" >&2
fi
if [ "$wanted" = test ]; then
    # Without them the laboratory says that it was skipped.
    lacks=$(vm_needs | missing)
    # shellcheck disable=SC2086 # one word for each package
    [ -z "$lacks" ] || (install $lacks) ||
        echo "the emulator could not be installed: the laboratory will be skipped" >&2
    # Without them a few tests, of the probe and of what browsers show, say that they were skipped.
    lacks="$(probe_needs | missing) $(page_needs | missing)"
    # shellcheck disable=SC2086 # one word for each package
    [ -z "${lacks# }" ] || (install $lacks) ||
        echo "not all of these could be installed:" $lacks >&2
fi
