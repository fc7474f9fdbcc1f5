//! The cost of a watch by its own account.

use serde_json::Value;

/// The cost of one watch by its own `end` line.
pub struct Accounted {
    /// Calls of programs in a second.
    pub calls_per_s: f64,
    /// A call, on average, with the kernel's measuring.
    pub call_ns: f64,
    /// Of all CPUs, in the kernel, without its measuring.
    pub programs_percent: f64,
    /// Of all CPUs, in our process.
    pub process_percent: f64,
}

impl Accounted {
    /// From the last line of `watch --json`; none when it is another.
    pub fn from_end_line(end: &Value) -> Option<Accounted> {
        let cost = &end["cost"];
        let available_ns = cost["available_ns"].as_f64()?;
        let programs_ns = cost["programs_ns"].as_f64()?;
        let programs = cost["programs"].as_array()?;
        let sum = |key: &str| -> f64 {
            let of_each = programs.iter().filter_map(|program| program[key].as_f64());
            of_each.sum()
        };
        let calls = sum("calls");
        Some(Accounted {
            calls_per_s: calls * 1e9 / cost["measured_ns"].as_f64()?.max(1.0),
            call_ns: sum("run_ns") / calls.max(1.0),
            programs_percent: programs_ns / available_ns * 100.0,
            process_percent: cost["process_ns"].as_f64()? / available_ns * 100.0,
        })
    }

    /// Both together.
    pub fn share_percent(&self) -> f64 {
        self.programs_percent + self.process_percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_read_from_the_end_line() {
        let end = serde_json::json!({"type": "end", "elapsed_ns": 2_000_000_000u64, "cost": {
            "available_ns": 4_000_000_000u64, "programs_ns": 80_000_000, "process_ns": 4_000_000,
            "measured_ns": 1_000_000_000u64, "programs": [
                {"calls": 1_000_000, "run_ns": 70_000_000},
                {"calls": 600_000, "run_ns": 26_000_000}]}});
        let cost = Accounted::from_end_line(&end).expect("a cost");
        assert_eq!((cost.calls_per_s, cost.call_ns), (1_600_000.0, 60.0));
        assert!((cost.share_percent() - 2.1).abs() < 1e-9);
        assert!(Accounted::from_end_line(&Value::Null).is_none());
    }
}
