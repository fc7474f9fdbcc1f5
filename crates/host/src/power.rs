//! How deep idle CPUs may sleep while we measure.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use event::{Duration, Error, Result};

/// The kernel's power management quality of service: Documentation/power/pm_qos_interface.rst.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// While it lives, no CPU enters an idle state that takes longer than asked to leave.
#[derive(Debug)]
pub struct WakeLatency {
    /// The request ends when the kernel sees the file closed.
    _request: File,
}

impl WakeLatency {
    /// Asks for at most `latency`, in whole microseconds; zero forbids every idle state but the
    /// lightest. None where the kernel has no idle states to choose from.
    ///
    /// # Errors
    /// When the device is there and refuses.
    pub fn request(latency: Duration) -> Result<Option<WakeLatency>> {
        if !Path::new(DEVICE).exists() {
            return Ok(None);
        }
        let latency_us = i32::try_from(latency.as_ns() / 1000).unwrap_or(i32::MAX);
        let written = File::options()
            .write(true)
            .open(DEVICE)
            .and_then(|mut file| {
                file.write_all(&latency_us.to_ne_bytes())?;
                Ok(file)
            });
        let request = written.map_err(|error| {
            Error::io(
                format!("cannot limit the idle states through {DEVICE}"),
                error,
            )
            .fix("run it with sudo, or measure with --power as-it-is")
        })?;
        Ok(Some(WakeLatency { _request: request }))
    }
}
