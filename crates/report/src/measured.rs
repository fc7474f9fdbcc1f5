//! What a measurement says beside its figures: how long it took, on which kernel, what is doubtful.

use event::Duration;
use serde_json::{Value, json};

/// On what the figures of a measurement rest.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// How long it took.
    pub elapsed: Duration,
    /// Whether all was done that was asked.
    pub complete: bool,
    /// The longest that is allowed, when that was asked.
    pub over: Option<Duration>,
    /// The kernel's release, and how it preempts itself.
    pub kernel: (&'a str, &'a str),
    /// What makes the figures doubtful.
    pub warnings: &'a [String],
}

impl Measured<'_> {
    /// What tests rest on.
    #[cfg(test)]
    pub(crate) fn sample(over_us: Option<i64>) -> Measured<'static> {
        Measured {
            elapsed: Duration::from_ms(10),
            complete: true,
            over: over_us.map(Duration::from_us),
            kernel: ("6.18", "none"),
            warnings: &[],
        }
    }

    /// Whether more was found than is allowed.
    pub(crate) fn is_over(&self, longest: Option<Duration>) -> bool {
        self.over.is_some_and(|over| longest > Some(over))
    }

    /// The last lines of a table.
    pub(crate) fn foot(&self) -> String {
        let (kernel, preemption) = self.kernel;
        let seconds = self.elapsed.as_ns() as f64 / 1e9;
        let mut text = format!("{seconds:.1} s, Linux {kernel}, preemption {preemption}\n");
        for warning in self.warnings {
            text += &format!("doubtful: {warning}\n");
        }
        text
    }

    /// An object of the schema with the `figures`, which are an object too.
    pub(crate) fn json(&self, (schema, version): (&str, u32), figures: Value) -> Value {
        let mut object = json!({
            "schema": schema,
            "version": version,
            "complete": self.complete,
            "elapsed_ns": self.elapsed.as_ns(),
            "kernel": self.kernel.0,
            "preemption": self.kernel.1,
            "over_ns": self.over.map(Duration::as_ns),
            "warnings": self.warnings,
        });
        if let (Some(object), Value::Object(figures)) = (object.as_object_mut(), figures) {
            object.extend(figures);
        }
        object
    }
}
