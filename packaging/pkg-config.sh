#!/bin/sh
# Prints what pkg-config must know of a library of ours.
# usage: packaging/pkg-config.sh PREFIX [rtscope|rtscope-probe|lttng-ust]
# The last is for builds that ask for LTTng-UST and are to get the probe.
set -eu

prefix=$1 name=${2:-rtscope}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
libs='-L${libdir}' flags=''
case $name in
rtscope) text="Open any Linux trace, read its events, write one" private="-lpthread -ldl -lm" ;;
rtscope-probe) text="Events of applications, without a system call" private="-lpthread" ;;
lttng-ust) text="The probe under the names of LTTng-UST 2.13" private="-lpthread" version=2.13.0
    libs='-L${libdir}/rtscope/lttng -Wl,-rpath-link,${libdir}' flags='-I${includedir}/rtscope/lttng ' ;;
*)
    printf 'error: no such library\n  found: %s\n  fix:  rtscope, rtscope-probe or lttng-ust\n' \
        "$name" >&2
    exit 1
    ;;
esac
cat <<PC
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $name
Description: $text
Version: $version
Libs: $libs -l$name
Libs.private: $private
Cflags: $flags-I\${includedir}
PC
