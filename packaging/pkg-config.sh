#!/bin/sh
# Prints what pkg-config must know of a library of ours.
# usage: packaging/pkg-config.sh PREFIX [rtscope|rtscope-probe]
set -eu

prefix=$1 name=${2:-rtscope}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
case $name in
rtscope) text="Open any Linux trace, read its events, write one" private="-lpthread -ldl -lm" ;;
rtscope-probe) text="Events of applications, without a system call" private="-lpthread" ;;
*)
    printf 'error: no such library\n  found: %s\n  fix:  rtscope or rtscope-probe\n' "$name" >&2
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
Libs: -L\${libdir} -l$name
Libs.private: $private
Cflags: -I\${includedir}
PC
