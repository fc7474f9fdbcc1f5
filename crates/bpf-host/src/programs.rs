//! The BPF programs of this machine, ours and others': where their code lies. The kernel's table of
//! functions may not list it, and never says where it ends.

use std::collections::BTreeSet;
use std::path::Path;

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};

/// A function of a BPF program, as the kernel compiled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFunction {
    /// Its first byte.
    pub address: u64,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// `bpf_prog_TAG_NAME`, as the kernel's own table calls it.
    pub name: String,
    /// This process loaded it.
    pub is_ours: bool,
}

/// The functions of every program that is loaded now; none where the kernel hides their addresses.
pub fn program_functions() -> Vec<ProgramFunction> {
    let options = ProgInfoQueryOptions::default()
        .include_jited_ksyms(true)
        .include_jited_func_lens(true);
    let ours = own_programs();
    let functions = ProgInfoIter::with_query_opts(options).flat_map(move |program| {
        let tag: String = program
            .tag
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = format!("bpf_prog_{tag}_{}", program.name.to_string_lossy());
        let places = program.jited_ksyms.iter().zip(&program.jited_func_lens);
        let functions = places.map(|(address, length)| ProgramFunction {
            address: address.addr() as u64,
            size_bytes: u64::from(*length),
            name: name.trim_end_matches('_').to_owned(),
            is_ours: ours.contains(&program.id),
        });
        functions.collect::<Vec<_>>()
    });
    functions.filter(|function| function.address != 0).collect()
}

/// The numbers of the programs that this process holds. Most of what is open is something else, and
/// its link says so without its text.
fn own_programs() -> BTreeSet<u32> {
    let files = std::fs::read_dir("/proc/self/fd");
    let number = |file: std::fs::DirEntry| {
        if std::fs::read_link(file.path()).ok()?.as_os_str() != "anon_inode:bpf-prog" {
            return None;
        }
        let text = Path::new("/proc/self/fdinfo").join(file.file_name());
        let text = std::fs::read_to_string(text).ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    let files = files.into_iter().flatten().flatten();
    files.filter_map(number).collect()
}

/// Whether a program was loaded after the one with this number; the number of the newest.
pub fn newer_program(than: u32) -> Option<u32> {
    let mut newest = None;
    let mut id = than;
    // SAFETY: the call writes the number to a local that outlives it.
    while unsafe { libbpf_sys::bpf_prog_get_next_id(id, &raw mut id) } == 0 {
        newest = Some(id);
    }
    newest
}
