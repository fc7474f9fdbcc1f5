//! CPUs in the kernel's words.

use event::Cpu;

/// CPUs as the kernel lists them: `0-3,8`.
pub fn list(cpus: &[Cpu]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu.0 => *last = cpu.0,
            _ => ranges.push((cpu.0, cpu.0)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}
