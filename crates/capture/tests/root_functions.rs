//! Check that code which comes after a watch began has its own name, and no other's; and that
//! functions are traced, or refused with what this kernel says.

use capture::{EventSelection, FunctionPatterns, Recorder, RecorderConfig, kernel_functions};
use event::ErrorKind;
use trace::Symbols;

#[test]
fn a_program_in_the_kernel_has_its_name_and_its_end() {
    let _privileged = testkit::privileged();
    let config = bpf_host::WatchConfig::default();
    let (watch, _ring) = bpf_host::Watch::start(&config).expect("a watch");
    let programs = bpf_host::program_functions();
    let ours = |name: &str| {
        let mut found = programs.iter();
        found
            .find(|one| one.is_ours && one.name.ends_with(name))
            .expect("a program of ours")
    };
    let symbols = Symbols::from_kallsyms(&kernel_functions());
    for name in ["_sched_switch", "_sched_waking"] {
        let program = ours(name);
        let last = program.address + program.size_bytes - 1;
        let found = symbols.lookup(last);
        let own = format!("rtscope_prog{name}");
        assert_eq!(found, Some((own.as_str(), program.size_bytes - 1)));
        let behind = symbols.lookup(last + 1);
        assert_ne!(behind.map(|(name, _)| name), Some(own.as_str()));
    }
    drop(watch);
    // The kernel frees its code a moment later.
    while bpf_host::program_functions().contains(ours("_sched_switch")) {
        std::thread::yield_now();
    }
    let symbols = Symbols::from_kallsyms(&kernel_functions());
    let gone = symbols.lookup(ours("_sched_switch").address);
    assert!(
        gone.is_none_or(|(name, _)| !name.starts_with("rtscope_prog_")),
        "{gone:?}"
    );
}

#[test]
fn functions_are_traced_or_refused_with_what_the_kernel_says_and_nothing_stays() {
    let _privileged = testkit::privileged();
    let instances = || {
        let tracefs = ftrace::Tracefs::find().expect("tracefs");
        let folder = std::fs::read_dir(tracefs.root().join("instances")).expect("instances");
        let names = folder.flatten().map(|entry| entry.file_name());
        let own = format!("rtscope-{}-", std::process::id());
        names
            .filter(|name| name.to_string_lossy().starts_with(&own))
            .count()
    };
    let start = |name: &str| {
        let config = RecorderConfig {
            events: EventSelection::new(["sched:sched_switch"]),
            functions: FunctionPatterns::new([name]).expect("a name"),
            ..RecorderConfig::default()
        };
        Recorder::start(&config)
    };
    let check_error = |error: event::Error| {
        let said = error.value_found().is_some_and(|found| !found.is_empty());
        assert!(said && error.fixed_by().is_some(), "{error:#}");
        error.kind()
    };
    let none = check_error(start("rtscope_no_such_function").expect_err("none is called so"));
    match start("vfs_read") {
        Ok(recorder) => {
            assert_eq!(none, ErrorKind::NotFound);
            let formats = recorder.formats();
            let names = ["funcgraph_entry", "function"];
            assert!(names.iter().any(|name| formats.by_name(name).is_some()));
        }
        Err(error) => {
            assert_eq!(check_error(error), ErrorKind::Unsupported);
            assert_eq!(none, ErrorKind::Unsupported);
            testkit::skip(
                "functions are traced",
                "this kernel refuses its list of functions",
            );
        }
    }
    assert_eq!(instances(), 0);
}
