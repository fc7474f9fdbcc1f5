//! Check that code which comes after a watch began has its own name, and no other's.

use capture::kernel_functions;
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
