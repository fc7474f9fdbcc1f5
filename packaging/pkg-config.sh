#!/bin/sh
# Prints what pkg-config must know of librtscope. usage: packaging/pkg-config.sh PREFIX
set -eu

version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
cat <<PC
prefix=$1
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: rtscope
Description: Open any Linux trace, read its events, write one
Version: $version
Libs: -L\${libdir} -lrtscope
Libs.private: -lpthread -ldl -lm
Cflags: -I\${includedir}
PC
