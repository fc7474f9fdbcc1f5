#!/bin/sh
# Prints what CMake must know of a library of ours: its target, or with `version` which one it is.
# usage: packaging/cmake-config.sh rtscope|rtscope-probe [version]
set -eu

name=${1:-}
case $name in
rtscope) target=rtscope::rtscope header=rtscope.h ;;
rtscope-probe) target=rtscope::probe header=rtscope/event.h ;;
*)
    printf 'error: no such library\n  found: %s\n  fix:  rtscope or rtscope-probe\n' "$name" >&2
    exit 1
    ;;
esac
if [ "${2:-}" = version ]; then
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
    cat <<CMAKE
# One of the same major version that is not older does.
set(PACKAGE_VERSION "$version")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION_MAJOR EQUAL ${version%%.*} AND NOT PACKAGE_FIND_VERSION VERSION_GREATER "$version")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL "$version")
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
CMAKE
    exit
fi
cat <<CMAKE
# find_package($name) gives the target $target.
get_filename_component(_rtscope_lib "\${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
get_filename_component(_rtscope_prefix "\${_rtscope_lib}" DIRECTORY)
# Where libraries lie in a folder of their architecture, headers are one level higher.
if(NOT EXISTS "\${_rtscope_prefix}/include/$header")
  get_filename_component(_rtscope_prefix "\${_rtscope_prefix}" DIRECTORY)
endif()
find_package(Threads REQUIRED)
if(NOT TARGET $target)
  add_library($target SHARED IMPORTED)
  set_target_properties($target PROPERTIES
    IMPORTED_LOCATION "\${_rtscope_lib}/lib$name.so"
    INTERFACE_INCLUDE_DIRECTORIES "\${_rtscope_prefix}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
CMAKE
