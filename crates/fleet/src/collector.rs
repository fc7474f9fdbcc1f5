//! A collector of metrics that takes OTLP over HTTP, as OpenTelemetry's does.

use event::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::curl;

/// Where a collector takes metrics below its address.
const METRICS: &str = "/v1/metrics";

/// Where metrics are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Its address, with the path.
    address: String,
    token: Option<String>,
}

impl Collector {
    /// From an address as `http://HOST:4318`; one with a path is taken as it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for what is no address.
    pub fn new(address: &str, token: Option<String>) -> Result<Collector> {
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| address.strip_prefix(scheme));
        let is_plain = |rest: &&str| {
            let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
            !rest.is_empty() && rest.bytes().all(plain)
        };
        let Some(rest) = rest.filter(is_plain) else {
            let error = Error::new(ErrorKind::InvalidInput, "not the address of a collector");
            return Err(error
                .found(format!("'{address}'"))
                .fix("give it as http://HOST:4318, or https://HOST/PATH"));
        };
        let path = match rest.trim_end_matches('/').contains('/') {
            true => "",
            false => METRICS,
        };
        Ok(Collector {
            address: format!("{}{path}", address.trim_end_matches('/')),
            token,
        })
    }

    /// Sends a request of OTLP.
    ///
    /// # Errors
    /// When no answer comes, or the collector refuses it, or a part of it.
    pub fn send(&self, request: &Value) -> Result<()> {
        let answer = curl::post(&self.address, &request.to_string(), self.token.as_deref())?;
        let said: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let partial = &said["partialSuccess"];
        let rejected = &partial["rejectedDataPoints"];
        // A number of 64 bits is a text in JSON; some write it as a number.
        let is_whole =
            matches!(rejected.as_str(), None | Some("0")) && rejected.as_u64().unwrap_or(0) == 0;
        if (200..300).contains(&answer.status) && is_whole {
            return Ok(());
        }
        let words: String = answer.body.chars().take(200).collect();
        let what = format!("the collector {} takes no metrics", self.address);
        Err(Error::new(ErrorKind::Io, what)
            .found(format!("HTTP {}: {words}", answer.status))
            .fix("enable its receiver for OTLP over HTTP, and give its token with token_file"))
    }
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
