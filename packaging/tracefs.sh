#!/bin/sh
# Mounts tracefs where it is not mounted, and says so.
set -eu

mountpoint=/sys/kernel/tracing
grep -q " $mountpoint tracefs " /proc/mounts && exit 0
fix="sudo mount -t tracefs nodev $mountpoint"
if [ "$(id -u)" != 0 ]; then
    printf 'error: tracefs is needed\n  found: nothing mounted on %s\n  fix:  %s\n' \
        "$mountpoint" "$fix" >&2
    exit 1
fi
echo "mounting tracefs on $mountpoint" >&2
mount -t tracefs nodev "$mountpoint"
