#!/bin/sh
# Compiles the readers with a counter on every edge; everything else as it is. Cargo calls it as
# RUSTC_WORKSPACE_WRAPPER: for packages of this workspace, with the compiler as first argument.
# The pass and its options belong to LLVM, so that a stable compiler has them.
case "${CARGO_PKG_NAME:-}" in
abi | ctf | event | expr | ftrace | ring | trace)
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    ;;
fuzz)
    # The canaries are found by the same counters; the engine counts itself too, which is the same
    # in every run.
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    ;;
esac
exec "$@"
