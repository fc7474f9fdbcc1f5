//! Check that programs in several languages are in one trace: C, Rust (macro, tracing, log),
//! Python's logging and Java's. Needs no privilege; what is not installed is said.

mod recorded;

use std::process::Command;

use recorded::{Scene, compile, exists, libraries, probe, run, scratch};

const C: &str = "#include <rtscope/event.h>\n\
    int main(void) { RTSCOPE_EVENT(mixed, c, i32(\"answer\", 42)); return 0; }\n";

const PYTHON: &str = "\
import logging, rtscope_probe
logging.getLogger().addHandler(rtscope_probe.Handler())
logging.getLogger('robot.arm').warning('late by %d ns', 1500)
";

/// As it is written for LTTng's agent; in a child, too.
const AGENT: &str = "\
import logging, os
import lttngust
logging.getLogger('robot.head').debug('it nods')
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    logging.getLogger('robot.head').debug('so does its child')
    os._exit(0)
";

const JAVA: &str = "\
public class Main {
    public static void main(final String[] words) {
        final java.util.logging.Logger logger = java.util.logging.Logger.getLogger(\"robot.leg\");
        logger.setUseParentHandlers(false);
        logger.addHandler(new org.rtscope.probe.JulHandler());
        logger.log(java.util.logging.Level.WARNING, \"late by {0} ns\", 1500);
        logger.fine(\"not logged\");
    }
}
";

const LOG4J: &str = "\
public class Log4j {
    public static void main(final String[] words) {
        final org.apache.logging.log4j.core.Logger logger =
            (org.apache.logging.log4j.core.Logger)
                org.apache.logging.log4j.LogManager.getLogger(\"robot.eye\");
        final org.rtscope.probe.Log4jAppender appender =
            new org.rtscope.probe.Log4jAppender(\"rtscope\");
        appender.start();
        logger.addAppender(appender);
        logger.error(\"late by {} ns\", 1500);
    }
}
";

/// Where Debian has Log4j 2.
const LOG4J_JARS: &str = "/usr/share/java/log4j-api.jar:/usr/share/java/log4j-core.jar";

/// A command that runs all of them, and what each should have said.
struct Mixed {
    commands: Vec<String>,
    expect: Vec<&'static str>,
}

impl Mixed {
    fn add(&mut self, command: String, expect: &[&'static str]) {
        self.commands.push(command);
        self.expect.extend(expect);
    }
}

fn add_c(mixed: &mut Mixed) {
    let include = format!("-I{}", probe().join("include").display());
    let search = format!("-L{}", libraries().display());
    let found = format!("-Wl,-rpath,{}", libraries().display());
    let program = compile(
        "cc",
        "mixed",
        C,
        &[&include, &search, "-lrtscope-probe", &found],
    );
    mixed.add(program.display().to_string(), &["mixed:c: { answer = 42 }"]);
}

fn add_rust(mixed: &mut Mixed) {
    // An example of the crate, built as anybody would build it.
    let own = std::env::current_exe().expect("where we are");
    let target = own.ancestors().nth(3).expect("the target's folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        "rtscope-probe",
        "--all-features",
    ]);
    cargo
        .args(["--example", "mixed", "--target-dir"])
        .arg(target);
    run(cargo.current_dir(probe().join("..")));
    let example = target.join("debug/examples/mixed");
    let expect = [
        "mixed:rust: { answer = 42, half = 0.5, what = \"text\" }",
        "rust_log:line: { log_level = 4, line = 18, target = \"mixed\", \
         file = \"probe/rust/examples/mixed.rs\", msg = \"late by 1500 ns\" }",
        "rust_tracing:span_begin: ",
        "rust_tracing:event: ",
        "rust_tracing:span_end: ",
    ];
    mixed.add(example.display().to_string(), &expect);
}

fn add_python(mixed: &mut Mixed) {
    if !exists("python3") {
        testkit::skip("faces", "python3 is not installed");
        return;
    }
    let program = scratch().join("mixed.py");
    std::fs::write(&program, PYTHON).expect("a program");
    let path = probe().join("python");
    let agents = libraries().join("librtscope-agents.so");
    mixed.add(
        format!(
            "PYTHONPATH={} PYTHONDONTWRITEBYTECODE=1 RTSCOPE_AGENTS={} python3 {}",
            path.display(),
            agents.display(),
            program.display()
        ),
        &[
            "lttng_python:event: { logger_name = \"robot.arm\", funcName = \"<module>\", \
             lineno = 3, int_loglevel = 30, ",
        ],
    );
    let program = scratch().join("agent.py");
    std::fs::write(&program, AGENT).expect("a program");
    mixed.add(
        format!(
            "PYTHONPATH={} PYTHONDONTWRITEBYTECODE=1 RTSCOPE_AGENTS={} python3 {}",
            path.display(),
            agents.display(),
            program.display()
        ),
        &[
            "lttng_python:event: { logger_name = \"robot.head\", funcName = \"<module>\", \
             lineno = 3, int_loglevel = 10, ",
            "lttng_python:event: { logger_name = \"robot.head\", funcName = \"<module>\", \
             lineno = 8, int_loglevel = 10, ",
        ],
    );
}

fn add_java(mixed: &mut Mixed) {
    if !exists("javac") {
        testkit::skip(
            "faces",
            "no JDK is installed: apt install default-jdk-headless",
        );
        return;
    }
    let log4j = std::path::Path::new("/usr/share/java/log4j-core.jar").exists();
    let out = format!("OUT={}", libraries().display());
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(probe()).args([&out, "java"]);
    let jars = if log4j { LOG4J_JARS } else { "" };
    run(make.arg(format!("LOG4J={jars}")));
    let native = libraries().join("librtscope-java.so");
    let classes = format!(
        "{}:{}:{jars}",
        scratch().display(),
        libraries().join("java").display()
    );
    let mut program = |name: &str, text: &str, expect| {
        let source = scratch().join(name).with_extension("java");
        std::fs::write(&source, text).expect("a program");
        run(Command::new("javac")
            .arg("-cp")
            .arg(&classes)
            .arg("-d")
            .arg(scratch())
            .arg(source));
        let native = native.display();
        mixed.add(
            format!("java -Drtscope.library={native} -cp {classes} {name}"),
            expect,
        );
    };
    program(
        "Main",
        JAVA,
        &[
            "lttng_jul:event: { logger_name = \"robot.leg\", class_name = \"Main\", \
           method_name = \"main\", long_millis = ",
        ],
    );
    if log4j {
        let expect = "lttng_log4j2:event: { logger_name = \"robot.eye\", class_name = \"Log4j\", \
                      method_name = \"main\", filename = \"Log4j.java\", line_number = 10, ";
        program("Log4j", LOG4J, &[expect]);
    } else {
        testkit::skip(
            "faces",
            "Log4j 2 is not installed: apt install liblog4j2-java",
        );
    }
}

#[test]
fn a_mixed_system_is_in_one_trace() {
    std::fs::create_dir_all(scratch()).expect("a folder");
    let mut mixed = Mixed {
        commands: Vec::new(),
        expect: Vec::new(),
    };
    add_c(&mut mixed);
    add_rust(&mut mixed);
    add_python(&mut mixed);
    add_java(&mut mixed);
    let scene = Scene::new();
    let patterns = "mixed,rust_log,rust_tracing,lttng_python,lttng_jul,lttng_log4j2";
    let script = mixed.commands.join(" && ");
    scene.record(&["--user", patterns], &["sh", "-c", &script]);
    scene.check_babeltrace("faces");
    let events = scene.events();
    let mut from = 0;
    for expect in &mixed.expect {
        let found = events[from..]
            .iter()
            .position(|event| event.starts_with(expect));
        let place = found.unwrap_or_else(|| panic!("no {expect}\n{}", events.join("\n")));
        from += place + 1;
    }
    assert_eq!(events.len(), mixed.expect.len(), "{}", events.join("\n"));
    let said = events
        .iter()
        .filter(|event| event.contains("late by 1500 ns"));
    assert!(said.count() >= 1, "{}", events.join("\n"));
    // As Python writes the time of a line: 2026-11-23 12:00:00,123.
    let python = events
        .iter()
        .filter(|event| event.contains(" threadName = "));
    assert!(python.clone().all(|event| event.contains(" asctime = \"2")));
}
