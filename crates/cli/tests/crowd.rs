//! More processes than a recorder has room for at the same time: those that wait have their turn
//! when the others are through. Needs no privilege.

mod recorded;

use std::process::{Command, Stdio};

use recorded::{Scene, compile_with_probe};

/// Its children wait until all are there; each writes three events and ends.
const CROWD: &str = r#"
#include <rtscope/event.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    const int children = atoi(words[1]);
    int gate[2];
    char byte;
    if (count < 2 || pipe(gate) != 0)
        return 1;
    for (int child = 0; child < children; child++) {
        const pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid > 0)
            continue;
        close(gate[1]);
        if (read(gate[0], &byte, 1) < 0)
            return 1;
        for (int i = 0; i < 3; i++)
            RTSCOPE_EVENT(crowd, tick, i32("child", child));
        _exit(0);
    }
    close(gate[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
"#;
const CHILDREN: usize = 150;

/// What a recorder that may have so many files open says of the crowd, which is over when it ends.
fn recorded(scene: &Scene, files: u32) -> String {
    let crowd = compile_with_probe("crowd", CROWD, &[]);
    let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_rtscope")]);
    shell.args(["record", "--user", "crowd", "--ring", "32K", "-o"]);
    shell.arg(scene.trace()).arg("--").arg(crowd);
    shell.arg(CHILDREN.to_string());
    shell
        .env("RTSCOPE_DIR", scene.shared())
        .stdin(Stdio::null());
    recorded::run(&mut shell)
}

#[test]
fn who_finds_no_room_beside_the_others_is_read_behind_them() {
    let scene = Scene::new();
    // Of 12 at the same time.
    let said = recorded(&scene, 150);
    let all = format!("recorded {} events of {CHILDREN} processes", 3 * CHILDREN);
    assert!(said.contains(&all), "{said}");
    assert!(!said.contains("not recorded"), "{said}");
    assert_eq!(scene.events().len(), 3 * CHILDREN);
    let left: Vec<_> = std::fs::read_dir(scene.shared())
        .expect("a folder")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
