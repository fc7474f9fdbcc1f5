//! `sudo rtscope record --user` beside programs that are where recorders seldom look: below another
//! root, in another mount namespace, run with the rights of another user, in a shared memory that
//! is mounted otherwise; and beside users who make so many of these that others could be passed
//! by.

mod beside_users;
mod recorded;

use beside_users::check;

/// Waits for our recorder in the folder `$1`, not for ever: another of root's may be there first.
/// Each step is run by what follows it.
const AWAIT: &str = r#"
await() {
    awaited=$1 i=0; shift
    until [ $i -eq 500 ] || "$@" grep -qs ^honest: -r --include=session-* "$awaited"; do
        i=$((i + 1))
        sleep 0.02
    done
}
"#;

/// A root with a shared memory of its own, and the honest program in it.
const JAIL: &str = r#"
mkdir "$folder/jail"
mount --bind / "$folder/jail"
mount -t tmpfs tmpfs "$folder/jail/dev"
mkdir -m 1777 "$folder/jail/dev/shm"
mount -t tmpfs tmpfs "$folder/jail/tmp"
cp "$honest" "$folder/jail/tmp/honest"
mkdir -m 700 "$folder/jail/dev/shm/rtscope-0"
"#;

/// A mount namespace with a shared memory of its own; its process is `$other`.
const NAMESPACE: &str = r#"
unshare --mount sh -c '
    mount -t tmpfs tmpfs /dev/shm
    mkdir -m 700 /dev/shm/rtscope-0
    exec sleep 100' & other=$!
"#;

#[test]
fn who_lives_below_another_root_is_recorded() {
    let script = r#"
        chroot "$folder/jail" /bin/sleep 100 &
        await "$folder/jail/dev/shm/rtscope-0" env
        chroot "$folder/jail" /tmp/honest"#;
    check("jail", &[AWAIT, JAIL].concat(), script, 1000);
}

#[test]
fn who_goes_below_another_root_is_recorded_to_its_end() {
    let script = r#""$honest" chroot "$folder/empty""#;
    check("chroot", r#"mkdir "$folder/empty""#, script, 1000);
}

#[test]
fn who_goes_into_another_mount_namespace_is_recorded_and_so_is_its_child() {
    let script = r#"
        await /dev/shm/rtscope-0 nsenter --mount=/proc/$other/ns/mnt
        "$honest" setns /proc/$other/ns/mnt
        "$honest" setns /proc/$other/ns/mnt fork"#;
    check("setns", &[AWAIT, NAMESPACE].concat(), script, 2000);
}

#[test]
fn who_runs_with_the_rights_of_another_is_recorded_as_that_user_whatever_the_caller_says() {
    let before = r#"
        as 4002 mkdir -m 700 /dev/shm/rtscope-4002
        cp "$honest" "$folder/root"; chmod 4755 "$folder/root"
        cp "$honest" "$folder/other"; chown 4002 "$folder/other"; chmod 4755 "$folder/other""#;
    let script = r#"
        as 4001 "$folder/root"
        as 4001 env RTSCOPE_DIR=/etc/passwd RTSCOPE_DISABLE=1 "$folder/other" <&-
        as 4001 sh -c 'ulimit -f 0; exec "$folder/root" >/dev/null'
        as 4001 sh -c 'exec 3<&-; ulimit -n 4; exec "$folder/root"'"#;
    let said = check("set_uid", before, script, 2000);
    for part in ["root (", "ulimit -f", "ulimit -n"] {
        assert!(said.contains(part), "no '{part}' in\n{said}");
    }
}

#[test]
fn a_shared_memory_of_data_alone_holds_rings() {
    let before = "mount -o remount,noexec,nosuid,nodev /dev/shm";
    check("noexec", before, r#""$honest""#, 1000);
}

#[test]
fn who_may_not_write_to_shared_memory_runs_on_beside_others() {
    let script = r#"
        unshare --mount sh -c 'mount -o remount,bind,ro /dev/shm && exec "$honest"'
        "$honest""#;
    check("read_only", "", script, 1000);
}

#[test]
fn containers_that_come_and_go_leave_room_for_those_that_follow() {
    // More folders, one namespace after the other, than are recorded at the same time.
    let script = r#"
        for container in $(seq 17); do
            unshare --mount sh -c '
                mount -t tmpfs tmpfs /dev/shm
                mkdir -m 700 $(seq -f /dev/shm/rtscope-%g 64)
                eval "$0"
                await /dev/shm/rtscope-64 env' "$await"
        done
        sleep 1
        as 4001 mkdir -m 700 /dev/shm/rtscope-4001
        await /dev/shm/rtscope-4001 env
        as 4001 "$honest""#;
    let before = format!("{AWAIT}\nawait='{}'", AWAIT.trim());
    check("containers", &before, script, 1000);
}

#[test]
fn a_user_with_many_namespaces_and_folders_keeps_no_other_user_out() {
    let before = r#"
        for namespace in $(seq 20); do
            as 4001 unshare --user --map-root-user --mount sh -c '
                mount -t tmpfs tmpfs /dev/shm
                mkdir -m 700 $(seq -f /dev/shm/rtscope-%g 64)
                exec sleep 100' &
        done
        while [ "$(pgrep -c sleep)" -lt 20 ]; do sleep 0.1; done"#;
    let script = r#"
        sleep 1
        as 4002 mkdir -m 700 /dev/shm/rtscope-4002
        await /dev/shm/rtscope-4002 env
        as 4002 "$honest""#;
    let said = check("many_folders", &[AWAIT, before].concat(), script, 1000);
    assert!(
        said.contains("64 directories of rings of user 4001"),
        "{said}"
    );
}
