//! `sudo rtscope record --user` beside other users: those who come later, those in other
//! namespaces, and those who mean harm. Each in a shared memory of its own.

mod beside_users;
mod recorded;

use std::process::Command;

use beside_users::{check, check_root_alone, events, recorded as recording};

#[test]
fn a_user_whose_folder_appears_later_is_recorded() {
    // The first run has the folder made, and may be over before it is seen.
    let script = r#"
        as 4001 "$honest"
        while ! grep -qs ^honest: /dev/shm/rtscope-4001/session-*; do sleep 0.02; done
        as 4001 "$honest""#;
    let _root = testkit::privileged();
    let (folder, text) = recording("later", "", script);
    assert!(events(folder.path()) >= 1000, "{text}");
}

#[test]
fn a_daemon_that_drops_its_privileges_is_recorded() {
    check("daemon", "", r#""$honest" setuid 4001 fork"#, 1000);
}

#[test]
fn who_cannot_use_the_folder_that_it_is_told_is_named() {
    let before = "mkdir -m 700 /dev/shm/rtscope-0";
    let script = r#"RTSCOPE_DIR=/etc/passwd "$honest"; "$honest""#;
    let text = check("unusable", before, script, 1000);
    for part in ["honest (", "has no rings", "its RTSCOPE_DIR is no folder"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn where_nobody_can_make_a_file_any_more_this_is_said() {
    let before = "mount -o remount,nr_inodes=32 /dev/shm";
    let script = r#"
        "$honest"
        i=0
        while touch /dev/shm/full$i 2>/dev/null; do i=$((i + 1)); done
        "$honest""#;
    let text = check("inodes", before, script, 1000);
    for part in [
        "can make no rings in /dev/shm/rtscope-0",
        "no free inode",
        "df -i",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn who_takes_the_folder_of_root_is_moved_out_of_the_way() {
    let before = "as 4001 mkdir /dev/shm/rtscope-0; as 4001 ln -s /etc /dev/shm/rtscope-4002";
    let text = check("squatted", before, r#""$honest""#, 1000);
    for part in [
        "rtscope-0 was not of user 0",
        "rtscope-4002 was not of user 4002",
        "made by user 4001",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn who_takes_the_names_that_things_are_moved_to_keeps_nothing() {
    // In a pid namespace the recorder's number is small.
    let before = "as 4001 mkdir /dev/shm/rtscope-0 \
        $(seq -f /dev/shm/.not-of-user-0-%g-4001 1 2000)";
    let text = check("names_taken", before, r#""$honest""#, 1000);
    assert!(text.contains("rtscope-0 was not of user 0"), "{text}");
}

#[test]
fn who_makes_hundreds_of_namespaces_hides_nobody_elses() {
    let before = r#"
        as 4001 sh -c '
            i=0
            while [ $i -lt 280 ]; do
                i=$((i + 1))
                unshare --user --map-root-user --mount sleep 100 &
            done
            wait' &
        while [ "$(pgrep -c sleep)" -lt 280 ]; do sleep 0.1; done"#;
    let script = r#"
        unshare --mount sh -c '
            mount -t tmpfs tmpfs /dev/shm
            mkdir -m 700 /dev/shm/rtscope-0
            while ! grep -qs ^honest: /dev/shm/rtscope-0/session-*; do sleep 0.02; done
            "$honest"'"#;
    check("namespaces", before, script, 1000);
}

#[test]
fn more_processes_are_recorded_than_the_soft_limit_of_files_has_room_for() {
    let script = r#"
        i=0 all=
        while [ $i -lt 200 ]; do i=$((i + 1)); "$honest" & all="$all $!"; done
        wait $all"#;
    check("many", "ulimit -S -n 150", script, 200_000);
}

#[test]
fn who_lives_in_namespaces_of_its_own_is_recorded() {
    let script = r#"
        unshare --mount --pid --fork --user --map-root-user sh -c '
            mount -t tmpfs tmpfs /dev/shm
            mkdir -m 700 /dev/shm/rtscope-0
            while ! grep -qs ^honest: /dev/shm/rtscope-0/session-*; do sleep 0.02; done
            "$honest"'"#;
    check("container", "", script, 1000);
}

#[test]
fn who_lives_in_a_container_without_root_is_recorded() {
    // Root of here has no number in there.
    let script = r#"
        as 4001 unshare --mount --pid --fork --user --map-root-user sh -c '
            mount -t tmpfs tmpfs /dev/shm
            mkdir -m 700 /dev/shm/rtscope-0
            i=0
            while ! grep -qs ^honest: /dev/shm/rtscope-0/session-* && [ $i -lt 500 ]; do
                i=$((i + 1))
                sleep 0.02
            done
            "$honest"'"#;
    let said = check("rootless", "", script, 1000);
    assert!(!said.contains("not recorded"), "{said}");
}

#[test]
fn rings_are_not_small_where_nobody_says_how_many_cpus_there_are() {
    let script = r#"
        told=$(sed -n "s/^!ring-at-most //p" /dev/shm/rtscope-0/session-*)
        [ "$told" -gt 65536 ]
        "$honest""#;
    let before = "mount -t tmpfs -o size=6G,mode=1777 tmpfs /dev/shm; umount -l /sys";
    check("no_sys", before, script, 1000);
}

#[test]
fn a_folder_whose_user_means_harm_harms_nobody_else() {
    // Rings of the evil user's own in any state, names of all kinds, and writers that never stop.
    let before = "as 4001 mkdir -m 700 /dev/shm/rtscope-4001; mkdir -m 700 /dev/shm/rtscope-0";
    let script = r#"
        cat >"$folder/evil" <<'END'
        cd /dev/shm/rtscope-4001
        mkfifo rings-1-1 session-1-1
        mkdir rings-1-2
        ln -s /etc/shadow rings-1-3
        truncate -s 100G rings-1-4
        i=0
        while :; do
            i=$((i + 1))
            RTSCOPE_DIR=$PWD "$honest" & one=$!
            for rings in rings-*; do
                case $((i % 6)) in
                0) cp "$rings" "rings-2-$i" ;;
                1) ln "$rings" "rings-3-$i" ;;
                2) mv "$rings" "rings-4-$i" ;;
                3) truncate -s $((i * 1000)) "$rings" ;;
                4) chmod 666 "$rings" ;;
                *) rm -rf "$rings" ;;
                esac
            done
            rm -f session-* recorder
            head -c 100000 /dev/urandom >"rings-5-$i"
            kill -9 $one
        done 2>/dev/null >&2
END
        as 4001 sh "$folder/evil" & evil=$!
        sleep 0.5
        "$honest"
        kill $evil"#;
    check_root_alone("evil", before, script);
}

#[test]
fn who_keeps_recorders_out_of_its_own_folder_hides_nobody_else() {
    // What a recorder makes in a folder is there before it, as something else, or in use.
    let before = r#"
        mkdir -m 700 /dev/shm/rtscope-0
        for user in 4001 4002 4003 4004 4005; do as $user mkdir -m 700 /dev/shm/rtscope-$user; done
        as 4001 mkfifo /dev/shm/rtscope-4001/recorder
        as 4002 mkdir -p /dev/shm/rtscope-4002/recorder/full
        as 4003 ln -s /etc/hostname /dev/shm/rtscope-4003/recorder
        as 4004 flock /dev/shm/rtscope-4004/recorder sleep 100 &
        as 4005 chmod 500 /dev/shm/rtscope-4005
        sum=$(cksum /etc/hostname)
        while [ ! -e /dev/shm/rtscope-4004/recorder ]; do sleep 0.02; done"#;
    let script = r#"
        for user in 4001 4002 4003 4004 4005; do as $user "$honest"; done
        "$honest"
        test "$sum" = "$(cksum /etc/hostname)""#;
    check_root_alone("kept_out", before, script);
}

/// Another user took the name of the folder of one that is not root, and may not be followed there.
#[test]
fn who_finds_its_folder_taken_is_told_how_to_have_it() {
    const TAKEN: &str = r#"
        set -eu
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        # Where another user reaches it.
        touch "$folder/rtscope"
        mount --bind "$rtscope" "$folder/rtscope"
        cd /
        setpriv --reuid 4001 --regid 4001 --clear-groups mkdir -m 777 /dev/shm/rtscope-4002
        ! setpriv --reuid 4002 --regid 4002 --clear-groups \
            "$folder/rtscope" record --user 'honest:*' -o /dev/shm/trace --duration 1ms 2>&1"#;
    let _root = testkit::privileged();
    let folder = tempfile::tempdir().expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("open to all");
    let mut unshare = Command::new("timeout");
    unshare.args(["60", "unshare", "--mount", "sh", "-c", TAKEN]);
    unshare
        .env_remove("RTSCOPE_DIR")
        .env("folder", folder.path());
    unshare.env("rtscope", env!("CARGO_BIN_EXE_rtscope"));
    let text = recorded::run(&mut unshare);
    for part in [
        "error: /dev/shm/rtscope-4002 is not to be trusted\n",
        "found: owner 4001 (not 4002), mode 777\n",
        "fix:  sudo rm -r /dev/shm/rtscope-4002 ",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}
