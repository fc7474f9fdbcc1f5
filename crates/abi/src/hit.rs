//! Reads a hit: a chain over the threshold, with its steps and stacks.

use event::evidence::{EndKind, Hit, Kin, Step, StepKind};
use event::{Cpu, Duration, Error, ErrorKind, Instant, Prio, Result};

use crate::{raw, text};

/// Reads a hit that came through the ring.
///
/// # Errors
/// [`ErrorKind::Corrupt`] when the bytes are too few or a kind is unknown.
pub fn decode_hit(bytes: &[u8], threshold: Duration) -> Result<Hit> {
    let hit: raw::Hit = raw::read(bytes).ok_or_else(|| {
        corrupt(format!(
            "{} bytes instead of {}",
            bytes.len(),
            size_of::<raw::Hit>()
        ))
    })?;
    let end_kind = u8::try_from(hit.end_kind)
        .ok()
        .and_then(EndKind::from_value)
        .ok_or_else(|| corrupt(format!("end kind {}", hit.end_kind)))?;
    let task = hit
        .target
        .named()
        .ok_or_else(|| corrupt("no target".into()))?;
    let length = (hit.steps_length as usize).min(raw::STEPS_MAX);
    Ok(Hit {
        id: hit.id,
        end_kind,
        origin: Instant::from_ns(hit.origin_ns as i64),
        end: Instant::from_ns(hit.end_ns as i64),
        threshold,
        task,
        culprit: hit.culprit.named(),
        preemptions: hit.preemptions,
        overflow: hit.overflow,
        stale: hit.flags & raw::CHAIN_STALE != 0,
        repaired: hit.flags & raw::CHAIN_REPAIRED != 0,
        unseen: hit.flags & raw::CHAIN_UNSEEN != 0,
        kin: match hit.flags {
            flags if flags & raw::CHAIN_NEAR != 0 => Kin::Near,
            flags if flags & raw::CHAIN_STRANGER != 0 => Kin::Stranger,
            _ => Kin::Asked,
        },
        ordinary: false,
        steps: hit.steps[..length]
            .iter()
            .map(decode_step)
            .collect::<Result<_>>()?,
        cost: Duration::from_ns(i64::from(hit.cost_ns)),
        waker_stack: hit.waker_stack.frames(),
        wakee_stack: hit.wakee_stack.frames(),
        culprit_stack: hit.culprit_stack.frames(),
    })
}

fn decode_step(step: &raw::Step) -> Result<Step> {
    Ok(Step {
        time: Instant::from_ns(step.time_ns as i64),
        kind: StepKind::from_value(step.kind)
            .ok_or_else(|| corrupt(format!("step kind {}", step.kind)))?,
        cpu: Cpu(step.cpu),
        id: step.id,
        prio: Prio::from_lttng(step.prio),
        comm: text(&step.comm),
    })
}

fn corrupt(found: String) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a record of the kernel's watch makes no sense",
    )
    .found(found)
    .fix("report it: the program and its BPF part were not built together")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> raw::Hit {
        let mut hit: raw::Hit = raw::zeroed();
        hit.id = 1;
        hit.origin_ns = 1_000;
        hit.end_ns = 26_000;
        hit.target = raw::Task {
            tid: 7,
            prio: -61,
            comm: *b"victim\0\0\0\0\0\0\0\0\0\0",
        };
        hit.culprit.tid = -1;
        hit.steps_length = 1;
        hit.steps[0].kind = StepKind::Waking as u8;
        hit.steps[0].time_ns = 1_000;
        hit
    }

    #[test]
    fn a_hit_is_read_with_its_latency_and_names() {
        let hit = decode_hit(raw::bytes(&sample()), Duration::from_us(20)).unwrap();
        assert_eq!(hit.latency(), Duration::from_us(25));
        assert_eq!(
            (hit.task.comm.as_str(), hit.task.prio),
            ("victim", Prio(39))
        );
        assert_eq!(hit.culprit, None);
        assert_eq!(hit.steps[0].kind, StepKind::Waking);
    }

    #[test]
    fn lengths_that_lie_are_cut_and_kinds_that_lie_are_refused() {
        let check = |change: fn(&mut raw::Hit), expect: bool| {
            let mut hit = sample();
            change(&mut hit);
            assert_eq!(decode_hit(raw::bytes(&hit), Duration::ZERO).is_ok(), expect);
        };
        check(|hit| hit.waker_stack.length = u32::MAX, true);
        check(|hit| hit.end_kind = 9, false);
        check(|hit| hit.steps[0].kind = 99, false);
        check(|hit| hit.steps_length = u32::MAX, false);
        check(|hit| hit.target.tid = -1, false);
        assert!(decode_hit(&raw::bytes(&sample())[1..], Duration::ZERO).is_err());
    }
}
