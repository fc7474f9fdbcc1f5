//! What the hypervisor took from every CPU, read at a moment of ours.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::{Object, libbpf_sys};

/// The program that reads it. A clone runs the same one, from any thread.
#[derive(Clone, Debug)]
pub struct StealReader {
    /// None where the kernel has no such account.
    program: Option<Arc<OwnedFd>>,
}

impl StealReader {
    pub(crate) fn open(object: &Object, is_known: bool) -> StealReader {
        let mut loaded = object.progs().filter(|program| program.autoload());
        let program = loaded.find(|program| program.name() == "read_steal");
        let fd = program.and_then(|program| program.as_fd().try_clone_to_owned().ok());
        StealReader {
            program: fd.filter(|_| is_known).map(Arc::new),
        }
    }

    /// Looks, so that the next record is about the time from now on.
    pub fn look(&self) {
        self.run(0);
    }

    /// Leaves a record for each CPU among the evidence.
    pub fn record(&self) {
        self.run(1);
    }

    fn run(&self, mut question: u32) {
        let Some(program) = &self.program else {
            return;
        };
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            ctx_in: (&raw mut question).cast(),
            ctx_size_in: size_of::<u32>() as u32,
            ..Default::default()
        };
        // SAFETY: the options and what they point to live for the call. A refusal leaves no record,
        // which reads as steal that is not known.
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    }
}
