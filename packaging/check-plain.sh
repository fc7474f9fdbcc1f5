#!/bin/sh
# Tries the packages that are no .deb as their users do: .rpm files in a root of their own, the
# static tarball where nothing else is, the image as a container. usage: packaging/check-plain.sh FOLDER
set -eu

folder=$(realpath "$1") here=$(realpath "$(dirname "$0")")
recording=$here/../docs/recordings/late-loop.txt
root=$(mktemp -d /var/tmp/rtscope-plain-XXXXXX)

leave() {
    [ ! -e "$root/storage" ] || container rmi --all --force >/dev/null 2>&1 || true
    rm -rf --one-file-system "$root"
}
trap leave EXIT
# Who is ended from outside leaves no root behind, and none of this system's folders in it.
trap 'exit 1' HUP INT PIPE TERM

step() { printf '%-44s ' "$1"; }
fine() { printf '%s\n' "${1:-ok}"; }
wrong() { # what
    printf 'FAILED\n%s\n' "$1" >&2
    exit 1
}
# The answer that docs/recordings knows to be true.
answers() { # what it printed
    case $1 in
    *"rt_hog (tid 116, rt 60) ran ahead of it"*) ;;
    *) wrong "no such answer: $1" ;;
    esac
}
# crun wants one version of control groups, runc takes both.
runtime=$(command -v runc || true)
container() {
    podman --root "$root/storage" --runroot "$root/run" --storage-driver vfs \
        --cgroup-manager cgroupfs ${runtime:+--runtime "$runtime"} "$@"
}

step "rpm --query, --install, --erase"
mkdir "$root/rpm"
installed() { rpm --root "$root/rpm" --dbpath /var/lib/rpm "$@" 2>"$root/said"; }
installed --initdb
# No shell is in there for what a service's package runs.
installed --install --nodeps --noscripts "$folder"/*.rpm || wrong "$(cat "$root/said")"
for package in "$folder"/*.rpm; do
    rpm -qpl "$package" | while read -r file; do
        [ -e "$root/rpm$file" ] || [ -L "$root/rpm$file" ] || wrong "not installed: $file"
    done
done
said=$("$root/rpm/usr/bin/rtscope" diagnose "$recording" --task ctrl_loop) || wrong "$said"
answers "$said"
# shellcheck disable=SC2046 # one word for each package
installed --erase --noscripts $(installed -qa) || wrong "$(cat "$root/said")"
# Folders of the system that the files lay in belong to no package.
find "$root/rpm" -path "$root/rpm/var" -prune -o ! -type d -print >"$root/after"
for package in "$folder"/*.rpm; do
    rpm -qp --scripts "$package" | sed -n '/^[a-z]* scriptlet/!p' >"$root/scripts"
    sh -n "$root/scripts" || wrong "$package: $(cat "$root/scripts")"
done
[ ! -s "$root/after" ] || wrong "left behind: $(cat "$root/after")"
fine

step "the static tarball, alone in a root"
mkdir "$root/static"
tar -xzf "$folder"/*-static.tar.gz -C "$root/static" --strip-components=1
cp "$recording" "$root/static"
said=$(chroot "$root/static" /bin/rtscope diagnose /late-loop.txt --task ctrl_loop) || wrong "$said"
answers "$said"
said=$(chroot "$root/static" /bin/rtscope doctor 2>&1) || true
case $said in *watch*) ;; *) wrong "$said" ;; esac
fine "ok ($(stat -c %s "$root/static/bin/rtscope") bytes)"

step "the image, as a container"
if command -v podman >/dev/null; then
    mkdir "$root/work"
    cp "$recording" "$root/work"
    said=$(container load --input "$folder"/*-oci.tar 2>&1) || wrong "$said"
    image=$(container images --format '{{.ID}}' | head -n 1)
    # Limits below those of here: where this runs in a container itself, none can be raised.
    said=$(container run --rm --network none \
        --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        -v "$root/work:/work:ro" "$image" diagnose late-loop.txt --task ctrl_loop 2>&1) ||
        wrong "$said"
    answers "$said"
    fine
else
    fine "skipped: podman is not there (apt-get install podman)"
fi
