//! Check that no filter, whatever its bytes, makes a traced process crash, hang or read outside.

use std::path::Path;
use std::process::Command;

/// Random filters at the end of a page, behind which nothing is mapped; fields at the end of
/// another. The instructions are mostly sound, so that they get far.
const PROGRAM: &str = r#"
#define RTSCOPE_NO_CONSTRUCTOR
#include "filter.c"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096ul

uint32_t rtscope_own_tid(void)
{
    return 7;
}

struct rtscope_object rtscope_write_views[RTSCOPE_SETS_MAX];
static unsigned long written;

void rtscope_write_(const struct rtscope_object *object, uint32_t id, uint64_t *payload,
                    size_t payload_bytes)
{
    (void)object, (void)id, (void)payload, (void)payload_bytes;
    written++;
}

static uint64_t seed;

static uint32_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static unsigned char *page(void)
{
    unsigned char *const at =
        mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + PAGE, PAGE, PROT_NONE))
        abort();
    return at;
}

static void fill(unsigned char *at, size_t bytes)
{
    for (size_t place = 0; place < bytes; place++)
        at[place] = (unsigned char)(draw() % 3 ? draw() % 4 : draw());
}

int main(int count, char **words)
{
    const unsigned long runs = strtoul(words[1], 0, 10);
    unsigned char *const filters = page(), *const fields = page();
    unsigned long passed = 0;
    for (unsigned set = 0; set < RTSCOPE_SETS_MAX; set++)
        rtscope_write_views[set].rings = (struct rtscope_ring *)(void *)filters;
    seed = count > 2 ? strtoul(words[2], 0, 10) : 1;
    for (unsigned long run_number = 0; run_number < runs; run_number++) {
        const uint32_t steps = draw() % 24, constants = draw() % 40;
        struct rtscope_filter header = {steps, draw() % 4 ? constants : draw()};
        const size_t bytes = sizeof header + steps * sizeof(struct rtscope_instruction) + constants;
        const size_t room = (bytes + 7) & ~7ul;
        unsigned char *const at = filters + PAGE - room;
        fill(at, room);
        memcpy(at, &header, sizeof header);
        for (uint32_t step = 0; step < steps; step++) {
            struct rtscope_instruction one;
            one.op = draw() % 20 ? (unsigned char)(1 + draw() % 17) : (unsigned char)draw();
            one.a = (unsigned char)(draw() % 10);
            one.b = (unsigned char)(draw() % 18);
            one.c = (unsigned char)(draw() % 3);
            one.target = draw() % 8 ? step + 1 + draw() % 4 : draw();
            one.value = draw() % 4 ? draw() % 16 : (uint64_t)draw() << (draw() % 34);
            if (draw() % 3 == 0)
                one.value |= (uint64_t)(draw() % 24) << 32;
            memcpy(at + sizeof header + step * sizeof one, &one, sizeof one);
        }
        rtscope_filters_.at = filters;
        rtscope_filters_.bytes = PAGE;
        /* Of all sets; those of others are believed no more than this one. */
        const struct rtscope_filters all = {{(uint32_t)((at - filters) / 8), draw() % 500,
                                             draw() % 2 ? 0 : draw(), 0}};
        uint64_t word;
        struct rtscope_switch state = {3, 1 | draw(), 1, 1 + draw() % 2};
        memcpy(filters + state.filter * 8, &all, sizeof all);
        if (draw() % 50 == 0)
            state.filter = draw() % 2 ? PAGE / 8 - 1 : draw();
        memcpy(&word, &state, sizeof word);
        const size_t payload = draw() % 64, hidden = draw() % 32;
        unsigned char *const fields_at = fields + PAGE - payload - hidden;
        fill(fields_at, payload + hidden);
        passed += (unsigned long)rtscope_pass_((void *)&word, fields_at, payload,
                                               fields_at + payload, hidden);
    }
    printf("%lu\n", passed);
    return written ? 0 : 2;
}
"#;

#[test]
fn no_filter_reads_outside_or_runs_without_end() {
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../probe");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (source, program) = (
        folder.path().join("hostile.c"),
        folder.path().join("hostile"),
    );
    std::fs::write(&source, PROGRAM).expect("the program's text");
    let mut compile = Command::new("cc");
    compile.args([
        "-O1",
        "-g",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    ]);
    compile.arg(format!("-I{}", probe.join("include").display()));
    compile.arg(format!("-I{}", probe.join("src").display()));
    compile.arg(&source).arg("-o").arg(&program);
    assert!(compile.status().expect("a C compiler").success());
    // `RTSCOPE_RUNS=200` makes them ten million.
    let runs = u64::from(testkit::runs(10)) * 50_000;
    for seed in 1..=2u64 {
        let output = Command::new(&program)
            .args([runs.to_string(), seed.to_string()])
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "seed {seed}: {} {said}",
            output.status
        );
        let passed: u64 = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .expect("a number");
        assert!(
            passed > 0 && passed < runs,
            "all of one kind: {passed} of {runs}"
        );
    }
}
