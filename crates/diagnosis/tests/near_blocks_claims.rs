//! Claims about a target that blocks twice within microseconds: each block has its own record.

use diagnosis::{Query, TaskFilter, diagnose};
use event::Tid;
use testkit::{SyntheticTrace, Task};

const VICTIM: Task = Task::rt(100, "victim", 50);
const MAPPER: Task = Task::rt(200, "mapper", 30);

const KERNEL: i64 = 0;
const FAULT: i64 = 4;

const UNMAP: [&str; 4] = [
    "rwsem_down_write_slowpath+0x24d",
    "down_write_killable+0x52",
    "__vm_munmap+0x8b",
    "__x64_sys_munmap+0x17",
];
const TOUCH: [&str; 2] = ["lock_mm_and_find_vma+0x3d", "exc_page_fault+0x81"];

/// A block of the victim from `us` on, whose record is `skew_ns` away, if there is one.
struct Block {
    us: i64,
    until_us: i64,
    record: Option<(i64, &'static [&'static str])>,
    skew_ns: i64,
}

fn block(us: i64, until_us: i64, record: Option<(i64, &'static [&'static str])>) -> Block {
    Block {
        us,
        until_us,
        record,
        skew_ns: 0,
    }
}

fn skewed(skew_ns: i64, block: Block) -> Block {
    Block { skew_ns, ..block }
}

const BARRIER: [&str; 5] = [
    "schedule_timeout+0x100",
    "wait_for_completion+0x86",
    "synchronize_rcu_normal+0xb3",
    "__x64_sys_membarrier+0x284",
    "do_syscall_64+0x71",
];

/// The name of the largest term of a hit in which the victim blocks so; its sentence.
#[track_caller]
fn check(blocks: [Block; 2], expect: &str) -> String {
    let trace = SyntheticTrace::new().at(10).block(VICTIM, Task::IDLE);
    let trace = trace.at(900).wake(MAPPER).after(5).run(MAPPER);
    let trace = trace.at(1_000).timer_irq().wake(VICTIM).after(1);
    let mut trace = trace.timer_irq_end().at(1_010).preempt(MAPPER, VICTIM);
    for Block {
        us,
        until_us,
        record,
        skew_ns,
    } in blocks
    {
        if let Some((on, stack)) = record {
            let at = trace.at_ns(us * 1_000 + skew_ns);
            trace = at.blocked(VICTIM, on, None, stack);
        }
        trace = trace.at(us).block(VICTIM, MAPPER);
        trace = trace.at(until_us).wake(VICTIM).after(2);
        trace = trace.preempt(MAPPER, VICTIM);
    }
    let tid = VICTIM.tid;
    let end_us = 50_100;
    let steps = [
        (1_000_000, 7, 0, tid),
        (1_010_000, 8, 0, tid),
        (end_us * 1000, 10, 0, tid),
    ];
    let trace = trace.at(end_us).block(VICTIM, MAPPER);
    let query = Query {
        tasks: TaskFilter::from(Tid(tid)),
        ..Query::default()
    };
    let trace = trace.hit(1, VICTIM, MAPPER, &steps).build();
    let diagnosis = diagnose(&trace, &query).expect("the trace can be diagnosed");
    let ledger = &diagnosis.activations[0].ledger;
    assert_eq!(ledger.terms[0].kind.to_string(), expect);
    diagnosis.verdict().expect("a verdict").sentence.clone()
}

const LOCK_OF_MAPPER: &str = "lock held by mapper (tid 200, rt 30)";
const UNNAMED: &str = "unexplained: it slept in the kernel, no event says for what";

#[test]
fn a_long_block_is_what_its_own_record_says_and_not_one_just_before() {
    let fault = || block(1_100, 1_104, Some((FAULT, &TOUCH)));
    let unmap = block(1_177, 50_000, Some((KERNEL, &UNMAP)));
    check([fault(), unmap], LOCK_OF_MAPPER);
    // The other way round.
    let unmap = block(1_100, 1_104, Some((KERNEL, &UNMAP)));
    check(
        [unmap, block(1_177, 50_000, Some((FAULT, &TOUCH)))],
        "page fault",
    );
    // Both sources stamp a little apart.
    let unmap = || block(1_177, 50_000, Some((KERNEL, &UNMAP)));
    check(
        [skewed(5_000, fault()), skewed(-6_000, unmap())],
        LOCK_OF_MAPPER,
    );
}

#[test]
fn the_record_of_another_block_is_none() {
    // That of the second block is missing: the first one's says nothing of it.
    let fault = block(1_100, 1_104, Some((FAULT, &TOUCH)));
    check([fault, block(1_177, 50_000, None)], UNNAMED);
    let short = block(1_100, 1_104, Some((KERNEL, &BARRIER)));
    let sentence = check([short, block(1_177, 50_000, None)], UNNAMED);
    assert!(!sentence.contains("membarrier"), "{sentence}");
}

#[test]
fn a_sleep_that_no_event_names_is_told_by_its_function_and_its_system_call() {
    let touch = block(1_100, 1_104, Some((FAULT, &TOUCH)));
    let long = block(1_177, 50_000, Some((KERNEL, &BARRIER)));
    let sentence = check([touch, long], UNNAMED);
    let slept = "(it slept in synchronize_rcu_normal, of the system call membarrier)";
    assert!(sentence.contains(slept), "{sentence}");
    assert!(sentence.contains("nobody can be named"), "{sentence}");
}
