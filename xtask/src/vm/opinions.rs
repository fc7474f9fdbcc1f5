//! Second opinions: what the kernel's own tracers and cyclictest say of the activations that
//! rtscope explained.

use std::path::Path;

use anyhow::{Context, Result};

use super::claim::{Claim, fact};
use super::judge::spans;
use super::verdict::Verdict;

/// They read the clock later than we do: in the task, after its way back from the switch, which
/// these guests take 20 to 40 us for.
const LATER_NS_MAX: i64 = 60_000;
/// How far an interrupt's length may be from osnoise's, which leaves its own cost out.
const HANDLER_NS_MAX: i64 = 10_000;
/// timerlat's period: so much of a handler may pass before the timer that suffers from it.
const TIMERLAT_PERIOD_NS: i64 = 1_000_000;
/// What the guest asks hwlat for.
const HWLAT_WIDTH_NS: i64 = 30_000_000;

/// Compares `result/facts` with the diagnoses.
pub fn judge(result: &Path) -> Result<Vec<Claim>> {
    let number = |key: &str| -> Result<i64> {
        let text = fact(result, key)?;
        text.parse().with_context(|| format!("{key}: '{text}'"))
    };
    let worst = |name: &str| worst(&result.join(name));
    let mut claims = Vec::new();
    for name in ["timerlat", "osnoise"] {
        let (ours_ns, theirs_ns) = (worst(name)?.latency_ns(), number(&format!("{name}_ns"))?);
        claims.push(agree("timerlat's thread", ours_ns, theirs_ns));
    }
    let handler = worst("osnoise")?;
    let theirs_ns = number("osnoise_irq_ns")?;
    claims.push((
        format!(
            "osnoise's interrupt lab_device {theirs_ns} ns, ours with what came before the timer \
             cut off: {}",
            handler.sentence()
        ),
        handler.culprit()["name"] == "lab_device"
            && (-HANDLER_NS_MAX..=TIMERLAT_PERIOD_NS + HANDLER_NS_MAX)
                .contains(&(theirs_ns - handler.culprit_ns())),
    ));
    let theirs_ns = number("cyclictest_us")? * 1_000;
    claims.push(agree(
        "cyclictest",
        worst("cyclictest")?.latency_ns(),
        theirs_ns,
    ));
    claims.extend(hwlat(&worst("hwlat")?, number("hwlat_gaps")?));
    Ok(claims)
}

/// hwlat's kernel thread keeps interrupts off for its width, and finds no gap in virtual time.
fn hwlat(verdict: &Verdict, gaps: i64) -> Vec<Claim> {
    let culprit = verdict.culprit();
    let ours_ns = verdict.culprit_ns();
    let function = culprit["function"].as_str().unwrap_or_default();
    vec![
        (
            format!(
                "hwlat's function has interrupts off: {}",
                verdict.sentence()
            ),
            culprit["kind"] == "interrupts_off"
                && (function.starts_with("kthread_fn") || function.starts_with("get_sample")),
        ),
        (
            format!("for {ours_ns} ns, no more than hwlat's width of {HWLAT_WIDTH_NS} ns"),
            ours_ns <= HWLAT_WIDTH_NS + LATER_NS_MAX,
        ),
        (
            format!("hwlat sees {gaps} gaps, and we accuse no hardware"),
            gaps == 0,
        ),
    ]
}

fn agree(who: &str, ours_ns: i64, theirs_ns: i64) -> Claim {
    let holds = (0..=LATER_NS_MAX).contains(&(theirs_ns - ours_ns));
    let text = format!(
        "{who} says {theirs_ns} ns and we say {ours_ns} ns, which is sooner by {LATER_NS_MAX} ns \
         at most"
    );
    (text, holds)
}

/// The worst of the activations that the injected fault touched; of all, where there was none.
fn worst(folder: &Path) -> Result<Verdict> {
    let truth = std::fs::read_to_string(folder.join("truth")).unwrap_or_default();
    let faults: Vec<(i64, i64)> = spans(&truth).collect();
    Verdict::all(folder)?
        .into_iter()
        .filter(|verdict| faults.is_empty() || faults.iter().any(|span| verdict.overlaps(*span)))
        .max_by_key(Verdict::latency_ns)
        .with_context(|| format!("no hit of the fault in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_when_the_other_reads_its_clock_a_little_later() {
        let check = |ours_ns: i64, theirs_ns: i64, expect: bool| {
            let (text, holds) = agree("cyclictest", ours_ns, theirs_ns);
            assert_eq!(holds, expect, "{text}");
        };
        check(100, 100, true);
        check(100, 100 + LATER_NS_MAX, true);
        check(100, 101 + LATER_NS_MAX, false);
        check(100, 99, false);
    }
}
