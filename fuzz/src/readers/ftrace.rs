//! ftrace: trace.dat, ring pages, format files, text, Perfetto's traces.

use std::cell::RefCell;

use ::ftrace::{EventFormat, Order, Page, PageLayout, lttng::Plan};
use testkit::dat::{self, DatPacking, SyntheticDat};

use super::walk::{ITEMS_MAX, MemoryFile, walk};
use crate::engine::Reader;
use crate::random::Random;

/// trace.dat files of every kind.
pub const DAT: Reader = Reader {
    name: "dat",
    what: "trace.dat 6 and 7: options, sections, compressed parts, pages, tables",
    seeds: dat_seeds,
    grammar: None,
    run: file,
};

/// The first byte chooses byte order and width, the rest is a page.
pub const PAGES: Reader = Reader {
    name: "pages",
    what: "sub-buffers of ftrace's rings",
    seeds: page_seeds,
    grammar: None,
    run: page,
};

/// A text as in `events/*/*/format` or `events/header_page`; the last bytes are a record.
pub const FORMAT: Reader = Reader {
    name: "format",
    what: "format files, header_page, and records read by them",
    seeds: format_seeds,
    grammar: Some(include_str!("../../grammars/format.txt")),
    run: format,
};

/// ftrace's text.
pub const TEXT: Reader = Reader {
    name: "text",
    what: "ftrace's text: trace, trace_pipe, systrace",
    seeds: text_seeds,
    grammar: Some(include_str!("../../grammars/text.txt")),
    run: file,
};

/// Perfetto's traces.
pub const PERFETTO: Reader = Reader {
    name: "perfetto",
    what: "Perfetto's traces: packets, bundles, compact ones, generic events",
    seeds: perfetto_seeds,
    grammar: None,
    run: file,
};

/// A trace that Perfetto's own library wrote, and the same packets compressed.
fn perfetto_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../seeds/perfetto.pftrace").to_vec(),
        include_bytes!("../../seeds/perfetto-compressed.pftrace").to_vec(),
    ]
}

/// Files of our own making, of every version, order, width and compression.
fn dat_seeds(random: &mut Random) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for packing in [DatPacking::None, DatPacking::Zlib, DatPacking::Zstd] {
        for version in [6, 7] {
            let count = 3 + random.below(90) as u64;
            let dat = SyntheticDat {
                version,
                packing,
                big_endian: random.one_in(2),
                long_bytes: if random.one_in(2) { 4 } else { 8 },
                clock: if random.one_in(2) { "mono" } else { "x86-tsc" }.to_owned(),
                cpus: vec![dat::events(0, count), dat::events(1, 5)],
                missed: random.one_in(2).then_some(9),
                instance: random
                    .one_in(2)
                    .then(|| ("other".to_owned(), dat::events(0, 3))),
            };
            seeds.push(dat.bytes());
        }
    }
    seeds
}

thread_local! {
    static FILE: RefCell<Option<MemoryFile>> = RefCell::new(MemoryFile::new());
}

/// Opens an input as the file that it may be.
fn file(input: &[u8]) {
    let path = FILE.with_borrow_mut(|file| file.as_mut()?.set(input).ok());
    let Some(path) = path else { return };
    if let Ok(trace) = trace::Trace::open(path) {
        walk(&trace);
    }
}

fn page_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (choice, (big_endian, long_bytes)) in [(false, 8), (true, 8), (false, 4), (true, 4)]
        .into_iter()
        .enumerate()
    {
        let dat = SyntheticDat {
            big_endian,
            long_bytes,
            missed: Some(3),
            ..SyntheticDat::default()
        };
        let pages = dat.pages(&dat::events(0, 120));
        for page in pages.chunks(4096).take(2) {
            let mut seed = vec![choice as u8];
            seed.extend(page);
            seeds.push(seed);
        }
    }
    seeds
}

fn page(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let order = if choice & 1 == 0 {
        Order::Little
    } else {
        Order::Big
    };
    let long = if choice & 2 == 0 { 8 } else { 4 };
    let layout = PageLayout {
        commit_size_bytes: long,
        data_offset_bytes: 8 + long,
        ..PageLayout::LP64
    };
    let Ok(page) = Page::parse(&layout.with_order(order), bytes) else {
        return;
    };
    let mut events = 0;
    for event in page.events() {
        events += 1;
        assert!(events < ITEMS_MAX, "a page without end");
        std::hint::black_box(event.is_ok());
    }
}

fn format_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let header = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                  \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                  \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    let format = "name: tick\nID: 901\nformat:\n\
                  \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                  \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                  \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                  \tfield:__data_loc char[] text;\toffset:24;\tsize:4;\tsigned:0;\n\
                  \tfield:__rel_loc u64[] ids;\toffset:28;\tsize:4;\tsigned:0;\n\
                  \tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n\n\
                  print fmt: \"%s\", REC->comm\n";
    vec![header.into(), format.into()]
}

fn format(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = PageLayout::parse(&text);
    let system = if input.len().is_multiple_of(3) {
        "sched"
    } else {
        "syscalls"
    };
    for long_bytes in [4, 8] {
        let Ok(format) = EventFormat::parse_for(system, &text, long_bytes) else {
            continue;
        };
        let (plan, class) = Plan::compile(&format);
        let record = &input[input.len().saturating_sub(120)..];
        let mut payload = Vec::new();
        plan.run(record, |tid| tid, &mut payload);
        std::hint::black_box((payload, class));
    }
}

fn text_seeds(_: &mut Random) -> Vec<Vec<u8>> {
    let trace = "# tracer: nop\n\
                 <idle>-0       [000] d.h1.  8.91: irq_handler_entry: irq=24 name=snd:card0\n\
                 <idle>-0       [000] d..2.     8.911233: sched_switch: prev_comm=a prev_pid=0 \
                 prev_prio=120 prev_state=R+ ==> next_comm=b c next_pid=172 next_prio=49\n\
                 b c-172  (-----) [000] .....     8.911300: tracing_mark_write: B|12|hello\n\
                 CPU:1 [LOST 12 EVENTS]\n\
                 init-1       [001] 8.912000: sys_read(fd: 3, buf: 7ff)\n\
                 init-1       [001] 8.912001: sys_read -> 0x5\n\
                 init-1       [001] 8.912001: sys_close <-do_syscall_64\n";
    let old = trace.replace('\n', "\\n\\\n");
    let page = format!("<!DOCTYPE html>\n<script>\n{trace}</script>\n");
    vec![
        trace.into(),
        page.into(),
        format!("<html>\nvar linuxPerfData = \"\\\n{old}").into(),
    ]
}
