//! Records made by hand, and the payloads that LTTng would have written.

use super::*;

fn format(system: &str, name: &str, fields: &str) -> EventFormat {
    let text = format!(
        "name: {name}\nID: 9\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{fields}\nprint fmt: \"\"\n"
    );
    EventFormat::parse(system, &text).expect("a sound format")
}

fn line(declaration: &str, offset: u32, size: u32, signed: u8) -> String {
    format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
}

fn run(format: &EventFormat, record: &[u8]) -> (Vec<String>, Vec<u8>) {
    let (plan, class) = Plan::compile(format);
    let mut out = Vec::new();
    plan.run(record, |tid| if tid == 7 { 5 } else { tid }, &mut out);
    let mut names = vec![class.name];
    names.extend(class.fields.iter().map(|field| field.name.to_string()));
    (names, out)
}

#[test]
fn a_switch_reads_as_lttng_writes_it() {
    let fields = [
        line("char prev_comm[16]", 8, 16, 0),
        line("pid_t prev_pid", 24, 4, 1),
        line("int prev_prio", 28, 4, 1),
        line("long prev_state", 32, 8, 1),
        line("char next_comm[16]", 40, 16, 0),
        line("pid_t next_pid", 56, 4, 1),
        line("int next_prio", 60, 4, 1),
    ];
    let format = format("sched", "sched_switch", &fields.concat());
    let mut record = vec![0; 64];
    record[8..16].copy_from_slice(b"hog\0junk");
    record[24] = 42;
    record[28] = 39;
    record[32..34].copy_from_slice(&256u16.to_le_bytes());
    record[40..44].copy_from_slice(b"idle");
    record[60] = 120;
    let (names, out) = run(&format, &record);
    let expect =
        "sched_switch prev_comm prev_tid prev_prio prev_state next_comm next_tid next_prio";
    assert_eq!(names.join(" "), expect);
    let mut payload = b"hog".to_vec();
    payload.resize(16, 0);
    payload.extend(42i32.to_le_bytes());
    payload.extend((-61i32).to_le_bytes());
    payload.extend(256i64.to_le_bytes());
    payload.extend(b"idle");
    payload.resize(16 + 16 + 16, 0);
    payload.extend(0i32.to_le_bytes());
    payload.extend(20i32.to_le_bytes());
    assert_eq!(out, payload);
}

#[test]
fn system_calls_have_arguments_as_wide_as_their_c_types() {
    let fields = [
        line("int __syscall_nr", 8, 4, 1),
        line("int dfd", 16, 8, 0),
        line("const char * filename", 24, 8, 0),
        line("umode_t mode", 32, 8, 0),
    ];
    let format = format("syscalls", "sys_enter_openat", &fields.concat());
    let mut record = vec![0; 40];
    record[16..24].copy_from_slice(&0xffff_ff9cu64.to_le_bytes());
    record[24..32].copy_from_slice(&0x7fff_0000_1234u64.to_le_bytes());
    record[32] = 0o66;
    let (names, out) = run(&format, &record);
    assert_eq!(names.join(" "), "syscall_entry_openat dfd filename mode");
    let mut payload = (-100i32).to_le_bytes().to_vec();
    payload.extend(0x7fff_0000_1234u64.to_le_bytes());
    payload.extend(0o66u16.to_le_bytes());
    assert_eq!(out, payload);
}

#[test]
fn forks_name_thread_groups_and_requests_name_the_running_task() {
    let fork = [
        line("__data_loc char[] parent_comm", 8, 4, 0),
        line("pid_t parent_pid", 12, 4, 1),
        line("__data_loc char[] child_comm", 16, 4, 0),
        line("pid_t child_pid", 20, 4, 1),
    ];
    let format_fork = format("sched", "sched_process_fork", &fork.concat());
    let mut record = vec![0; 32];
    record[8..12].copy_from_slice(&(24u32 | 3 << 16).to_le_bytes());
    record[12] = 7;
    record[16..20].copy_from_slice(&(27u32 | 5 << 16).to_le_bytes());
    record[20] = 8;
    record[24..32].copy_from_slice(b"ab\0child");
    let (names, out) = run(&format_fork, &record);
    let expect = "sched_process_fork parent_comm parent_tid parent_pid child_comm child_tid \
                  child_pid";
    assert_eq!(names.join(" "), expect);
    assert_eq!((&out[..3], out[16], out[20]), (b"ab\0".as_slice(), 7, 5));
    assert_eq!(
        (&out[24..30], out[40], out[44]),
        (b"child\0".as_slice(), 8, 8)
    );

    let format_plug = format("block", "block_plug", &line("char comm[16]", 8, 16, 0));
    let mut record = vec![0; 24];
    record[4] = 77;
    let (names, out) = run(&format_plug, &record);
    assert_eq!(
        (names.join(" ").as_str(), out[0]),
        ("block_plug tid comm", 77)
    );
}

#[test]
fn what_the_table_does_not_know_keeps_the_kernels_names_and_types() {
    let fields = [
        line("u8 small", 8, 1, 0),
        line("__data_loc u64[] ids", 12, 4, 0),
        line("unsigned char mac[6]", 16, 6, 0),
    ];
    let format = format("new", "new_event", &fields.concat());
    let mut record = vec![0; 40];
    record[8] = 3;
    record[12..16].copy_from_slice(&(24u32 | 16 << 16).to_le_bytes());
    record[16..22].copy_from_slice(b"\x01\x02\x03\x04\x05\x06");
    record[24] = 9;
    record[32] = 10;
    let (names, out) = run(&format, &record);
    assert_eq!(names.join(" "), "new_event small _ids_length ids mac");
    let mut payload = vec![3];
    payload.extend(2u32.to_le_bytes());
    payload.extend(9u64.to_le_bytes());
    payload.extend(10u64.to_le_bytes());
    payload.extend([1, 2, 3, 4, 5, 6]);
    assert_eq!(out, payload);
}

#[test]
fn a_record_that_ends_early_reads_as_zero_and_keeps_its_size() {
    let fields = [
        line("u64 a", 8, 8, 0),
        line("__data_loc char[] name", 16, 4, 0),
        line("char comm[16]", 20, 16, 0),
    ];
    let format = format("new", "new_event", &fields.concat());
    for length in 0..36 {
        let mut record = vec![0xff; length];
        record.truncate(length);
        let (_, out) = run(&format, &record);
        assert_eq!(out.len(), 8 + 1 + 16, "{length}");
    }
}

#[test]
fn the_return_of_a_function_says_how_long_it_took_and_not_when_by_another_clock() {
    let fields = [
        line("unsigned long func", 8, 8, 0),
        line("unsigned int depth", 16, 4, 0),
        line("unsigned int overrun", 20, 4, 0),
        line("unsigned long long calltime", 24, 8, 0),
        line("unsigned long long rettime", 32, 8, 0),
    ];
    let format = format("ftrace", "funcgraph_exit", &fields.concat());
    let check = |begin: u64, end: u64, expect: u64| {
        let mut record = vec![0; 40];
        record[8] = 0x80;
        record[16] = 3;
        record[24..32].copy_from_slice(&begin.to_le_bytes());
        record[32..40].copy_from_slice(&end.to_le_bytes());
        let (names, out) = run(&format, &record);
        assert_eq!(
            names.join(" "),
            "funcgraph_exit func depth overrun duration"
        );
        assert_eq!(out[8], 3);
        assert_eq!(out[16..], expect.to_le_bytes());
    };
    check(1_000, 1_250, 250);
    check(u64::MAX - 1, u64::MAX, 1);
    // The clocks of two CPUs may differ.
    check(1_250, 1_000, 0);
    // A record that was cut off.
    let (_, out) = run(&format, &[0; 20]);
    assert_eq!(out[16..], [0; 8]);
}

#[test]
fn what_a_probe_was_told_to_show_in_hexadecimal_is() {
    let fields = [
        line("unsigned long __probe_ip", 8, 8, 0),
        line("u32 flags", 16, 4, 0),
        line("u64 at", 20, 8, 0),
        line("u64 count", 28, 8, 0),
    ];
    let text = format!(
        "name: entry\nID: 9\nformat:\n{}\n\
         print fmt: \"(%lx) flags=0x%x at=0x%Lx count=%Lu\", REC->__probe_ip, REC->flags\n",
        fields.concat()
    );
    let format = EventFormat::parse("probes", &text).expect("a sound format");
    let (_, class) = Plan::compile(&format);
    let is_hexadecimal = |field: &Field| match &field.ty {
        FieldType::Integer(integer) => integer.base == Base::Hexadecimal,
        _ => false,
    };
    let shown: Vec<_> = class.fields.iter().map(is_hexadecimal).collect();
    assert_eq!(shown, [true, true, true, false], "{:?}", class.fields);
}

#[test]
fn a_text_that_a_probe_could_not_read_is_told_from_an_empty_one() {
    let text = "__data_loc char[] path";
    let of_probe = [
        line("unsigned long __probe_ip", 8, 8, 0),
        line(text, 16, 4, 0),
    ];
    let of_other = [line("unsigned long ip", 8, 8, 0), line(text, 16, 4, 0)];
    let check = |fields: &[String], bytes: &[u8], expect: &[u8]| {
        let format = format("probes", "opens", &fields.concat());
        let mut record = vec![0; 20];
        record[16..20].copy_from_slice(&(20 | (bytes.len() as u32) << 16).to_le_bytes());
        record.extend_from_slice(bytes);
        let (_, out) = run(&format, &record);
        assert_eq!(&out[8..], expect, "{bytes:?}");
    };
    check(&of_probe, b"ab\0", b"ab\0");
    check(&of_probe, b"\0", b"\0");
    check(&of_probe, b"", b"(fault)\0");
    check(&of_other, b"", b"\0");
}
