#!/bin/sh
# Builds all that packages hold, by the profile `dist`, and makes the packages. No path of this
# machine is in them.
# usage: packaging/build.sh TARGET_DIR
set -eu

cd "$(dirname "$0")/.."
root=$(pwd -P)
mkdir -p "$1"
target=$(realpath "$1")
cargo_home=$(realpath "${CARGO_HOME:-$HOME/.cargo}")
machine=$(rustc --print host-tuple)
stage=$target/stage output=$target/packages
rm -rf "$stage" "$output"
mkdir -p "$output"

# What the folders of this machine are called in messages and in debug information.
remapped() { # flag
    printf '%s' "$1$root=/rtscope $1$target=/target $1$cargo_home=/cargo"
}
paths=$(remapped --remap-path-prefix=)
# Functions that became the same code are one, where the linker can (lld, Rust's own on x86-64).
# Relocations are packed in the static program alone, which brings its loader; one before glibc 2.36 is
# told nothing by them. Another system's loader might not know them either.
static_flags=
probe=$(mktemp -d)
echo 'fn main() { println!("one"); }' >"$probe/one.rs"
linked() { # flags
    rustc "$@" -o "$probe/one" "$probe/one.rs" 2>/dev/null && [ "$("$probe/one" 2>/dev/null)" = one ]
}
! linked -C link-arg=-Wl,--icf=all || paths="$paths -Clink-arg=-Wl,--icf=all"
packed="-C link-arg=-Wl,-z,pack-relative-relocs"
# shellcheck disable=SC2086 # several words
! linked -C target-feature=+crt-static $packed || static_flags=$packed
rm -rf "$probe"
maps=$(remapped -ffile-prefix-map=)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# Tables of a fleet are compressed at zstd's first level: the other levels' searches are left out.
others=
for search in DFAST GREEDY LAZY LAZY2 BTLAZY2 BTOPT BTULTRA; do
    others="$others -DZSTD_EXCLUDE_${search}_BLOCK_COMPRESSOR"
done
# Nothing unwinds through C.
CFLAGS="$maps -fno-asynchronous-unwind-tables$others"
# The monitor's store is tables and indexes: no search in texts, no places, no JSON, no statistics of
# pages, and nothing is loaded.
LIBSQLITE3_FLAGS=
for part in FTS3 FTS3_PARENTHESIS FTS5 RTREE DBSTAT_VTAB LOAD_EXTENSION; do
    LIBSQLITE3_FLAGS="$LIBSQLITE3_FLAGS -USQLITE_ENABLE_$part"
done
for part in LOAD_EXTENSION JSON DEPRECATED; do
    LIBSQLITE3_FLAGS="$LIBSQLITE3_FLAGS -DSQLITE_OMIT_$part"
done
LIBSQLITE3_FLAGS="$LIBSQLITE3_FLAGS -USQLITE_SOUNDEX"
export SOURCE_DATE_EPOCH CFLAGS LIBSQLITE3_FLAGS CARGO_TARGET_DIR="$target" LC_ALL=C TZ=UTC
umask 022

step() { printf '== %s\n' "$*" >&2; }
installed() { make --no-print-directory "$@" TARGET="$machine" DESTDIR="$stage" PREFIX=/usr STRIP=no; }

step "the program"
RUSTFLAGS="$paths" installed install PROFILE=dist
step "the libraries"
RUSTFLAGS="$paths" installed install-library PROFILE=dist
make --no-print-directory -C probe install OUT="$target/probe-build" CFLAGS="-O2 -g $maps" \
    DESTDIR="$stage" PREFIX=/usr
# In the same folder: what builds it is there, and the other one is staged.
step "the static program"
RUSTFLAGS="$paths" make --no-print-directory static PROFILE=dist \
    STATIC_TARGET="$machine" STATIC_DIR="$target" STATIC_FLAGS="$static_flags"
step "packages"
packaging/packages.py "$stage" "$output" "$target/$machine/dist/rtscope"
step "the wheel"
rm -rf "$target/wheels"
if RUSTFLAGS="$paths" packaging/wheel.sh "$target" dist --target "$machine"; then
    cp "$target"/wheels/*.whl "$output"
else
    echo "skipped: the wheel: maturin could not be had, or failed: see above" >&2
fi
(cd "$output" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort |
    xargs sha256sum -- >SHA256SUMS)
