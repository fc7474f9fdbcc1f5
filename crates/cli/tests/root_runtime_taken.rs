//! The folder of sessions in `/tmp`, where anybody can take its name: whoever did so is named, ends
//! nobody's recording, and there is another folder that works.

mod recorded;

use std::process::Command;

/// A user without a runtime folder (4001), somebody who means harm (4002), and a `/tmp` of theirs.
/// `$take` takes the name; then each verb of sessions is tried.
const FRAME: &str = r#"
set -eu
mount -t tmpfs tmpfs /mnt
cp "$rtscope" /mnt/rtscope
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -m 700 /mnt/home
chown 4001:4001 /mnt/home
unset XDG_RUNTIME_DIR RTSCOPE_RUNTIME_DIR RTSCOPE_DIR
export HOME=/mnt/home taken=/tmp/rtscope-runtime-4001
cd /mnt/home
as() { user=$1; shift; setpriv --reuid "$user" --regid "$user" --clear-groups "$@"; }
# A recording that somebody could want to end.
as 4001 /mnt/rtscope record --user -o kept 2>said >/dev/null &
until grep -q '^recording' said; do sleep 0.02; done
eval "$take"
verb() {
    code=0
    as 4001 /mnt/rtscope "$@" 2>&1 || code=$?
    echo "[$code]"
}
verb record start night --user -o night
verb record list
verb record status night
verb record stop night
verb doctor --clean -o nothing >/dev/null
echo "made: $(find /tmp -user 4001 | tr '\n' ' ')"
[ ! -e made ] || echo "made through a link"
here=$(ls /dev/shm/rtscope-4001)
case "$(pgrep -u 4001 -x rtscope) $here" in [0-9]*session-*) echo kept ;; *) echo ended ;; esac
export RTSCOPE_RUNTIME_DIR=$HOME/.rtscope
echo "elsewhere:"
verb record start night --user -o night
verb record list
verb record stop night
"#;

/// What is said where somebody did what `take` says.
fn said(take: &str) -> String {
    let mut unshare = Command::new("timeout");
    unshare.args(["120", "unshare"]);
    unshare.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    unshare.args(["sh", "-c", FRAME]);
    unshare.env("rtscope", env!("CARGO_BIN_EXE_rtscope"));
    unshare.env("take", take);
    recorded::run(&mut unshare)
}

fn check(take: &str, owner: &str) {
    let text = said(take);
    let (here, elsewhere) = text.split_once("elsewhere:\n").expect("both");
    // Each of the four verbs says what it found, and what to do.
    for part in [
        "the folder of sessions /tmp/rtscope-runtime-4001/sessions is not ours alone",
        owner,
        "export RTSCOPE_RUNTIME_DIR=$HOME/.rtscope",
    ] {
        assert_eq!(
            here.matches(part).count(),
            4,
            "'{part}' after {take}:\n{text}"
        );
    }
    assert!(!here.contains("[0]"), "{take}:\n{text}");
    assert!(here.contains("made: \n"), "{take}:\n{text}");
    assert!(
        here.contains("\nkept\n") && !here.contains("link"),
        "{take}:\n{text}"
    );
    assert!(!text.contains('\u{1b}'), "{take}:\n{text}");
    let lines = elsewhere.lines();
    let codes: Vec<_> = lines.filter(|line| line.starts_with('[')).collect();
    assert_eq!(codes, ["[0]"; 3], "{take}:\n{text}");
}

#[test]
fn who_takes_the_folder_of_sessions_is_named_and_there_is_another() {
    let _root = testkit::privileged();
    let by_4002 = "/tmp/rtscope-runtime-4001 is user 4002's";
    check("as 4002 mkdir -m 755 $taken", by_4002);
    check("as 4002 mkdir -m 700 $taken", by_4002);
    check("as 4002 mkdir -m 777 $taken; chmod 777 $taken", by_4002);
    check("as 4002 touch $taken", by_4002);
    check("as 4002 mkfifo -m 666 $taken", by_4002);
    check("as 4002 ln -s /nowhere $taken", by_4002);
    check(
        "as 4002 mkdir -m 777 /tmp/trap; as 4002 ln -s /tmp/trap $taken",
        by_4002,
    );
}

#[test]
fn sessions_that_somebody_made_up_end_nobodys_recording() {
    let _root = testkit::privileged();
    // Of a recorder that lives, with a lock that leads into its user's home, and a name for a
    // terminal.
    let forge = r#"
        as 4002 mkdir -m 755 $taken $taken/sessions $taken/sessions/night
        as 4002 chmod 777 $taken $taken/sessions $taken/sessions/night
        as 4002 ln -s $HOME/made $taken/sessions/night/lock
        printf '{"pid":%d,"output":"%s/\u001b[31m","begin_wall_ns":7,"flight":false}' \
            $(pgrep -u 4001 -x rtscope) $HOME > /tmp/forged
        as 4002 cp /tmp/forged $taken/sessions/night/session.json"#;
    check(forge, "/tmp/rtscope-runtime-4001 is user 4002's");
}

#[test]
fn a_folder_of_sessions_that_others_may_write_to_is_not_read() {
    let _root = testkit::privileged();
    let open = "as 4001 mkdir -p $taken/sessions; as 4001 chmod 777 $taken/sessions";
    let text = said(open);
    let part = "/tmp/rtscope-runtime-4001/sessions is user 4001's, mode 777";
    assert_eq!(text.matches(part).count(), 4, "{text}");
}
