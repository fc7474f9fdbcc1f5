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
    let scene = Scene::new();
    let mut rtscope = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    rtscope.args(["record", "--user", "robot:*", "-o"]);
    rtscope.arg(scene.trace()).arg("--").arg(&program);
    rtscope.env("RTSCOPE_DIR", scene.shared());
    rtscope.env("RTSCOPE_RING_SIZE", "32K");
    let said = run(&mut rtscope);
    let advice = "start them with RTSCOPE_RING_SIZE=128K\n";
    assert!(said.contains(advice), "{said}");
}
