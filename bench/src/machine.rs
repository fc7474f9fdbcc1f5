//! The machine that was measured: a figure without it means nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::child;

/// Facts of this machine, now.
#[derive(Debug)]
pub struct Machine {
    kernel: String,
    preemption: String,
    cpus: usize,
    processor: String,
    is_virtual: bool,
    load_average: String,
}

impl Machine {
    /// Asks `rtscope doctor`; what nobody knows is called unknown.
    ///
    /// # Errors
    /// When the doctor fails.
    pub fn read(rtscope: &Path) -> Result<Machine> {
        let said = child::output(Command::new(rtscope).args(["doctor", "--json"]))?;
        let doctor: Value = serde_json::from_str(&said).context("the doctor said no JSON")?;
        let (machine, scheduler) = (&doctor["facts"]["machine"], &doctor["facts"]["scheduler"]);
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Ok(Machine {
            kernel: words(&machine["kernel_release"]),
            preemption: words(&scheduler["preemption"]),
            cpus: machine["cpus_online"].as_array().map_or(0, Vec::len),
            processor: processor(&cpuinfo).unwrap_or_else(|| words(&Value::Null)),
            is_virtual: machine["virtualised"] == true,
            load_average: load_average(),
        })
    }

    /// A paragraph.
    pub fn markdown(&self) -> String {
        format!(
            "Machine: {}{} CPUs, {}; Linux {}, preemption {}; load average at the start {}.\n",
            if self.is_virtual { "virtual, " } else { "" },
            self.cpus,
            self.processor,
            self.kernel,
            self.preemption,
            self.load_average
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "kernel": self.kernel,
            "preemption": self.preemption,
            "cpus": self.cpus,
            "processor": self.processor,
            "virtual": self.is_virtual,
            "load_average": self.load_average,
        })
    }
}

/// The three load averages.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or("unknown").to_owned()
}

fn processor(cpuinfo: &str) -> Option<String> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| field.trim() == "model name")?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_as_the_kernel_names_it() {
        let check = |cpuinfo: &str, expect: Option<&str>| {
            assert_eq!(processor(cpuinfo).as_deref(), expect);
        };
        check(
            "processor\t: 0\nmodel name\t: A CPU @ 2.6 GHz\n",
            Some("A CPU @ 2.6 GHz"),
        );
        check("processor\t: 0\n", None);
    }
}
