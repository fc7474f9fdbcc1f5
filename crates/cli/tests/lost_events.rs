//! After losses of applications the advice is more than they had. Needs no privilege.

mod recorded;

use std::process::Command;

use recorded::{Scene, compile_with_probe, run};

/// Writes for longer than its rings have room for, without a pause.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
int main(void)
{
    for (int i = 0; i < 2000000; i++)
        RTSCOPE_EVENT(robot, step, i32("i", i));
    return 0;
}
"#;

#[test]
fn rings_that_were_full_are_to_be_four_times_as_large() {
    let program = compile_with_probe("lossy", PROGRAM, &[]);
    let check = |option: &[&str], variable: Option<&str>, advice: &str| {
        let scene = Scene::new();
        let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
        rtscope.args(["record", "--user", "robot:*"]).args(option);
        rtscope.arg("-o").arg(scene.trace()).arg("--").arg(&program);
        rtscope.env("RTSCOPE_DIR", scene.shared());
        rtscope.envs(variable.map(|size| ("RTSCOPE_RING_SIZE", size)));
        let said = run(&mut rtscope);
        assert!(said.contains(advice), "{said}");
    };
    let of_program = "start them with RTSCOPE_RING_SIZE=128K\n";
    check(&[], Some("32K"), of_program);
    check(&["--ring", "1M"], Some("32K"), of_program);
    check(&["--ring", "32K"], None, "repeat with --ring 128K\n");
}
