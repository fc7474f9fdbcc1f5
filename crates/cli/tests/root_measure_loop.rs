//! Check what `measure loop` needs the kernel or LTTng's daemon for: iterations that interrupts
//! hit, the other tracer, the highest rate without a loss.

use std::process::Command;

use serde_json::Value;

fn measured(words: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rtscope"));
    command.args(["measure", "loop", "--json"]).args(words);
    let output = command
        .env_remove("RTSCOPE_EVENTS")
        .output()
        .expect("rtscope starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Loops of all bins and beyond them.
fn counted(found: &Value) -> u64 {
    let rows = found["histogram"].as_array().expect("a histogram").iter();
    let binned: u64 = rows.filter_map(|row| row["loops"].as_u64()).sum();
    binned + found["overruns"].as_u64().expect("overruns")
}

#[test]
fn what_interrupts_hit_is_taken_out_and_nothing_else() {
    let _alone = testkit::privileged();
    // As fast as it goes, so that an interrupt has nowhere else to come; half a second at least.
    const LOOPS: u64 = 50_000_000;
    let loops = LOOPS.to_string();
    let words = ["--loops", &loops, "--net-of-irqs"];
    let all = measured(&words);
    let net = &all["net_of_irqs"];
    assert_eq!((counted(&all), &all["loops"]), (LOOPS, &LOOPS.into()));
    let loops = net["loops"].as_u64().expect("a number");
    assert_eq!(counted(net), loops);
    assert_eq!(counted(net) + counted(&all["hit"]), LOOPS);
    assert!(loops < LOOPS, "half a second without an interrupt");
    assert!(loops > LOOPS / 2, "{loops}");
    let max = |found: &Value| found["max_ns"].as_f64().expect("a number");
    assert!(max(net) <= max(&all));
}

#[test]
fn lttng_records_the_same_loop() {
    let _alone = testkit::privileged();
    let header = Command::new("cc")
        .args([
            "-E",
            "-include",
            "lttng/tracepoint.h",
            "-x",
            "c",
            "/dev/null",
        ])
        .output();
    let sessiond = Command::new("lttng-sessiond").arg("--version").output();
    if sessiond.is_err() || !header.is_ok_and(|output| output.status.success()) {
        testkit::skip("root_measure_loop", "LTTng-UST is not installed");
        return;
    }
    for tracer in ["lttng", "lttng-timer"] {
        let found = measured(&["--loops", "20000", "--tracer", tracer]);
        assert_eq!(
            (&found["tracer"], counted(&found)),
            (&tracer.into(), 20_000)
        );
        // 32 MiB hold them all.
        assert_eq!(found["lost"], 0, "{found:#}");
    }
}

#[test]
fn the_highest_rate_is_between_what_was_whole_and_what_was_not() {
    let _alone = testkit::privileged();
    if !testkit::long("the highest rate without a loss") {
        return;
    }
    let found = measured(&["--tracer", "rtscope", "--find-max-rate"]);
    assert_eq!(found["schema"], "rtscope.measure.loop.rates");
    let rates = found["rates"].as_array().expect("rates");
    let beside: Vec<_> = rates.iter().map(|rate| rate["beside"].as_str()).collect();
    let all = "sched,irq,raw_syscalls:*";
    assert_eq!(beside, [None, Some(all), Some("raw_syscalls:*")]);
    for rate in rates {
        let whole = rate["per_second"].as_f64().expect("a rate");
        let lossy = rate["lossy_per_second"].as_f64();
        assert!(whole > 0.0, "{found:#}");
        assert!(lossy.is_none_or(|lossy| lossy > whole), "{found:#}");
    }
}
