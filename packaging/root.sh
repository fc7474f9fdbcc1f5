#!/bin/sh
# Makes a fresh root of a distribution, or says why it cannot (exit code 3).
# usage: packaging/root.sh SUITE ROOT LOG
# ROOTS is a folder with roots that were made before, as SUITE.tar.
set -eu

suite=$1 root=$2 log=$3
archives=/usr/share/keyrings

skipped() { # why
    echo "skipped: $1"
    exit 3
}

if [ -e "${ROOTS:-/nowhere}/$suite.tar" ]; then
    tar -xf "$ROOTS/$suite.tar" -C "$root"
    exit 0
fi
case $suite in
jammy | noble)
    keys=${UBUNTU_KEYS:-$archives/ubuntu-archive-keyring.gpg}
    mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
    # All of Ubuntu's suites are made alike, also those that are younger than debootstrap.
    script=/usr/share/debootstrap/scripts/gutsy
    [ -e "$keys" ] || skipped "no keys of Ubuntu: apt-get install ubuntu-archive-keyring (Debian 13)"
    ;;
*)
    keys=$archives/debian-archive-keyring.gpg
    mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
    script=/usr/share/debootstrap/scripts/sid
    [ -e "$keys" ] || skipped "no keys of Debian: apt-get install debian-archive-keyring"
    ;;
esac
debootstrap --variant=minbase --keyring="$keys" "$suite" "$root" "$mirror" "$script" >"$log" 2>&1 ||
    skipped "debootstrap of $suite failed: see $log"
