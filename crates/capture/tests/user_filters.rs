//! Check that what a filter lets pass is what is recorded, decided in the traced process before
//! the record is written. Needs no privilege.

use std::path::Path;

use capture::{RecordConfig, UserConfig, record};
use event::{ErrorKind, TimeRange};
use host::capabilities::Capabilities;
use testkit::{Traced, build_traced};
use trace::{Item, Trace};

/// Numbers from 0 to 99 in every guise. It waits until the recorder has seen it and set its filter:
/// the event that it begins with tells it so, by being enabled.
const PROGRAM: &str = r#"
#include <rtscope/event.h>
#include <stdio.h>
#include <unistd.h>
enum light { RED, GREEN, BROKEN };
RTSCOPE_ENUMERATION(light, RTSCOPE_LABEL("red", RED), RTSCOPE_LABELS("others", GREEN, BROKEN));
static void number(unsigned i)
{
    char name[16];
    unsigned short row[3] = {(unsigned short)i, (unsigned short)(i * 2), 7};
    snprintf(name, sizeof name, "n%u", i);
    RTSCOPE_EVENT(app, number, text("name", name), u32("i", i), i32("negative", -(int)i),
                  f64("half", i / 2.0), sequence("some", u16, row, i % 4),
                  array("row", u16, row, 3),
                  chars("letters", name, 8), n16("net", (unsigned short)((i & 255) << 8)),
                  e8("light", light, i % 3), x64("mask", 1ull << (i % 64)),
                  nowrite(u32("secret", i * 3)), nowrite(text("unseen", name)),
                  nowrite(i8("after", -1)));
}
static int is_filtered(void)
{
    /* The switches lie in rows; the recorder sets all of one table together. */
    const struct rtscope_switch *const state = __start_rtscope_switches;
    return *(volatile unsigned char *)&state->enabled != 0;
}
int main(void)
{
    for (unsigned waited = 0; !is_filtered() && waited < 20000; waited++)
        usleep(1000);
    for (unsigned i = 0; i < 100; i++)
        number(i);
    return 0;
}
"#;

/// The numbers that a recording with this filter holds.
fn recorded(program: &Path, filter: &str) -> Vec<u64> {
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let folder = tempfile::tempdir().expect("a folder");
    let user = UserConfig::new(&[format!("app:number {filter}")]).expect("a filter");
    let directory = format!("RTSCOPE_DIR={}", shared.path().display());
    let config = RecordConfig {
        kernel: false,
        user: Some(user.in_directory(shared.path())),
        command: Some(vec!["env".into(), directory.into(), program.into()]),
        ..RecordConfig::new(folder.path().join("trace"))
    };
    let summary = match record(&config, &Capabilities::default(), "test") {
        Ok(summary) => summary,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{filter}: {error}"),
    };
    assert_eq!(summary.user.refused, Vec::<String>::new(), "{filter}");
    let trace = Trace::open(&summary.path).expect("a trace");
    let mut numbers = Vec::new();
    let mut cursor = trace.cursor(TimeRange::ALL);
    while let Some(Item::Event(event)) = cursor.next().expect("sound") {
        let class = &trace.classes()[event.class().0 as usize];
        if class.name.starts_with("lttng_ust_statedump:") {
            continue;
        }
        assert!(class.field("secret").is_none(), "it is in no record");
        numbers.push(event.u64(class.field("i").expect("i")));
    }
    numbers
}

#[test]
fn what_a_filter_lets_pass_is_recorded_and_nothing_else() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = build_traced(scratch, "filtered", Traced::c(PROGRAM));
    let check = |filter: &str, expect: &dyn Fn(u64) -> bool| {
        let expect: Vec<u64> = (0..100).filter(|i| expect(*i)).collect();
        assert_eq!(recorded(&program, filter), expect, "{filter}");
    };
    check("i > 90", &|i| i > 90);
    check("i >= 10 && i < 12 || i == 50", &|i| {
        matches!(i, 10 | 11 | 50)
    });
    check("!(i < 98)", &|i| i >= 98);
    check("negative < -96", &|i| i > 96);
    check("half == 4.5", &|i| i == 9);
    check("name == \"n42\"", &|i| i == 42);
    check("name == \"n4*\"", &|i| i == 4 || (40..50).contains(&i));
    check("name =* \"n[1-2]?\"", &|i| (10..30).contains(&i));
    check("letters contains \"99\"", &|i| i == 99);
    check("_some_length == 3 && i < 8", &|i| matches!(i, 3 | 7));
    check("row[1] == 20", &|i| i == 10);
    check("net == 5", &|i| i == 5);
    check("light == \"red\" && i < 7", &|i| matches!(i, 0 | 3 | 6));
    check("mask & 0x18 && i < 64", &|i| matches!(i, 3 | 4));
    check("i in (1, 2, 99)", &|i| matches!(i, 1 | 2 | 99));
    check("secret == 30", &|i| i == 10);
    check("unseen == \"n7\" && after == -1", &|i| i == 7);
    check("(i * 2 + 1) % 7 == 0 && 10 / i > 1", &|i| i == 3);
    check("vtid == vpid && i == 1", &|i| i == 1);
    check("i > 1000", &|_| false);
}

#[test]
fn what_a_process_cannot_evaluate_is_refused_with_its_reason() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = "#include <rtscope/event.h>\nint main(void) { \
                  RTSCOPE_EVENT(app, plain, text(\"s\", \"x\")); \
                  RTSCOPE_EVENT(app, other); return 0; }";
    let program = build_traced(scratch, "refused", Traced::c(source));
    let shared = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["app:plain s =~ \"x+\"".to_owned(), "app:other".to_owned()];
    let user = UserConfig::new(&words).expect("rules");
    let directory = format!("RTSCOPE_DIR={}", shared.path().display());
    let config = RecordConfig {
        kernel: false,
        user: Some(user.in_directory(shared.path())),
        command: Some(vec!["env".into(), directory.into(), program.into()]),
        ..RecordConfig::new(folder.path().join("trace"))
    };
    let summary = record(&config, &Capabilities::default(), "test").expect("it records");
    let refused = summary.user.refused.join("\n");
    assert!(
        refused.contains("app:plain") && refused.contains("a regular expression"),
        "{refused}"
    );
    assert_eq!(summary.user.events(), 1);
}
