//! Which event gets which stack.

use ftrace::PageLayout;

use super::*;

const HARDIRQ: u8 = 0x08;

fn format(id: u16, name: &str, own: &str) -> EventFormat {
    let text = format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{own}\nprint fmt: \"\"\n"
    );
    EventFormat::parse("ftrace", &text).expect("a format")
}

const CALLER: &str = "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

fn records(user: bool) -> StackRecords {
    let size = format!("\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n{CALLER}");
    let tgid = format!("\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;\n{CALLER}");
    let mut all = vec![format(4, "kernel_stack", &size), format(9, "tick", "")];
    all.extend(user.then(|| format(13, "user_stack", &tgid)));
    let (records, events) = StackRecords::split(&Formats::new(PageLayout::LP64, all));
    assert_eq!(events.iter().count(), 1, "stacks are no events");
    records
}

/// What stands before a record: its number, flags, task.
fn head(id: u16, flags: u8, task: i32) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend([flags, 0]);
    bytes.extend(task.to_le_bytes());
    bytes
}

fn stack(id: u16, (flags, task): (u8, i32), size: i32, addresses: &[u64]) -> Vec<u8> {
    let mut bytes = head(id, flags, task);
    bytes.extend(size.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    bytes
}

/// One event: its time, and its stacks.
type Got = (u64, Vec<u64>, Vec<u64>);

fn popped(queue: &mut StackQueue) -> Vec<Got> {
    let words = |bytes: &[u8]| {
        let words = bytes.chunks_exact(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight"));
        words.map(word).collect()
    };
    let mut all = Vec::new();
    while let Some(event) = queue.pop() {
        let stacks = event.stacks();
        all.push((event.time_ns, words(stacks.kernel), words(stacks.user)));
    }
    all
}

#[test]
fn each_event_gets_the_stacks_behind_it_also_where_an_interrupt_came_between() {
    let records = records(true);
    let mut queue = StackQueue::default();
    let (task, irq) = ((0, 7), (HARDIRQ, 7));
    queue.push(10, &head(9, task.0, task.1), true);
    assert!(popped(&mut queue).is_empty());
    queue.push(11, &head(9, irq.0, irq.1), true);
    assert!(queue.stack(&records, Side::Kernel, &stack(4, irq, 1, &[1])));
    assert!(queue.stack(&records, Side::User, &stack(13, irq, 7, &[2, 0, 3])));
    // In the order of their times.
    assert!(popped(&mut queue).is_empty());
    assert!(queue.stack(&records, Side::Kernel, &stack(4, task, 2, &[4, 5])));
    assert!(queue.stack(&records, Side::User, &stack(13, task, 7, &[6, 7])));
    let expect = [(10, vec![4, 5], vec![6, 7]), (11, vec![1], vec![2])];
    assert_eq!(popped(&mut queue), expect);
}

#[test]
fn an_event_whose_stacks_were_not_written_does_not_take_those_of_others() {
    let records = records(false);
    let mut queue = StackQueue::default();
    let task = (0, 7);
    queue.push(10, &head(9, task.0, task.1), true);
    queue.push(20, &head(9, task.0, task.1), true);
    assert!(queue.stack(&records, Side::Kernel, &stack(4, task, 1, &[1])));
    assert_eq!(
        popped(&mut queue),
        [(10, vec![], vec![]), (20, vec![1], vec![])]
    );
    // Its event was lost.
    assert!(!queue.stack(&records, Side::Kernel, &stack(4, task, 1, &[1])));
    queue.push(30, &head(9, task.0, task.1), true);
    assert!(!queue.stack(&records, Side::Kernel, &stack(4, (0, 8), 1, &[1])));
    assert!(!queue.settle(), "it may come");
    assert!(popped(&mut queue).is_empty());
    assert!(queue.settle(), "it did not");
    assert_eq!(popped(&mut queue), [(30, vec![], vec![])]);
}

#[test]
fn a_stack_never_has_more_addresses_than_its_record() {
    let records = records(true);
    let check = |side, record: &[u8], expect: &[u64]| {
        let bytes: Vec<u8> = expect.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(records.addresses(side, record), bytes);
    };
    check(Side::Kernel, &stack(4, (0, 7), 1, &[1, 2]), &[1]);
    check(Side::Kernel, &stack(4, (0, 7), 1 << 30, &[1, 2]), &[1, 2]);
    check(Side::Kernel, &stack(4, (0, 7), -1, &[1, 2]), &[]);
    check(Side::Kernel, &head(4, 0, 7), &[]);
    check(Side::User, &stack(13, (0, 7), 7, &[1, 2]), &[1, 2]);
    check(Side::User, &stack(13, (0, 7), 7, &[0, 2]), &[]);
}
