//! Check how much stack the library needs of a thread: where it attaches, and where it records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Does each thing on a stack that it painted before, and prints how much of the paint is gone.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#define RTSCOPE_NO_CONSTRUCTOR
#include <rtscope/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#define STACK_BYTES (256 << 10)
static ucontext_t back, there;
static void (*work)(void);
static char words[700];
static double numbers[500];
static void nothing(void) {}
static void start(void) { rtscope_attach(); }
static void number(void)
{
    for (int i = 0; i < 20000; i++)
        RTSCOPE_EVENT(app, number, i32("i", i));
}
static void text(void)
{
    for (int i = 0; i < 20000; i++)
        RTSCOPE_EVENT(app, text, text("words", words));
}
static void array(void)
{
    for (int i = 0; i < 2000; i++)
        RTSCOPE_EVENT(app, array, array("numbers", f64, numbers, 500));
}
static void go(void) { work(); }
static long used_bytes(void (*wanted)(void))
{
    unsigned char *const stack =
        mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long unused = 0;
    memset(stack, 0xa5, STACK_BYTES);
    work = wanted;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK_BYTES;
    there.uc_link = &back;
    makecontext(&there, go, 0);
    swapcontext(&back, &there);
    while (unused < STACK_BYTES && stack[unused] == 0xa5)
        unused++;
    munmap(stack, STACK_BYTES);
    return STACK_BYTES - unused;
}
int main(void)
{
    memset(words, 'x', sizeof words - 1);
    const long before = used_bytes(nothing);
    printf("attach %ld\n", used_bytes(start) - before);
    printf("number %ld\n", used_bytes(number) - before);
    printf("text %ld\n", used_bytes(text) - before);
    printf("array %ld\n", used_bytes(array) - before);
    return 0;
}
"#;

/// Linked as programs do that need nothing at run time: a dynamic loader binds a function at its
/// first call, and takes more than all of this.
fn build(folder: &Path) -> PathBuf {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    std::fs::write(folder.join("stack.c"), PROGRAM).expect("a file");
    let script = "make -s -C \"$0\" OUT=\"$1\" \"$1/librtscope-probe.a\" && cd \"$1\" &&
        cc -O2 -Wall -Wextra -Werror -I\"$0/include\" -static -o stack stack.c librtscope-probe.a";
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", script]).arg(probe).arg(folder).status();
    assert!(status.expect("a shell").success());
    folder.join("stack")
}

#[test]
fn a_start_takes_four_kilobytes_of_stack_and_an_event_little_more_than_its_payload() {
    let built = tempfile::tempdir().expect("a folder");
    let program = build(built.path());
    let check = |variables: &[(&str, &str)], most: [u64; 4]| {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut command = Command::new(&program);
        command
            .env("RTSCOPE_DIR", folder.path())
            .env("RTSCOPE_EVENTS", "x:*,app:*:14,y")
            .envs(variables.iter().copied());
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{variables:?}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let found: BTreeMap<_, u64> = lines
            .map(|(what, bytes)| (what, bytes.parse().expect("a number")))
            .collect();
        for (what, most) in ["attach", "number", "text", "array"].into_iter().zip(most) {
            // A start that takes nothing was before: who asks for none until then has none.
            let sound = 1..=most;
            assert!(sound.contains(&found[what]), "{variables:?}: {found:?}");
        }
    };
    const EVENT: u64 = 384;
    let most = [4096, EVENT, 512 + EVENT, 4080 + EVENT];
    check(&[], most);
    check(&[("RTSCOPE_RSEQ", "off")], most);
    check(
        &[
            ("RTSCOPE_MODE", "overwrite"),
            ("RTSCOPE_CLOCK", "monotonic"),
        ],
        most,
    );
    check(&[("RTSCOPE_DISABLE", "yes")], [4096, 64, 64, 64]);
}
