//! Events of a Rust application: one line at the place where something happens.
//!
//! ```
//! let (i, late_ns) = (7_u64, 1500_u64);
//! rtscope_probe::event!("control", "cycle", u64 "i" = i, u64 "late_ns" = late_ns);
//! ```
//!
//! Fields: `u8 u16 u32 u64`, `i8 i16 i32 i64`, `x8 x16 x32 x64` (printed in hexadecimal),
//! `f32 f64`, `text` (a `&str`), `bytes` (a `&[u8]`); text and bytes of one event are cut at 512
//! bytes together.
//!
//! An event that is off costs two loads and a branch that is not taken, and its fields are not
//! evaluated. One that is on makes no system call, takes no lock and allocates nothing: its fields
//! are laid out on the stack, and one call into the C library writes them. The events of the whole
//! program are known before `main`, so that a recorder can switch them on at any time.

mod level;
#[cfg(feature = "log")]
mod log_sink;
mod native;
mod payload;
#[cfg(feature = "tracing")]
mod tracing_layer;

pub use level::Level;
#[cfg(feature = "log")]
pub use log_sink::LogSink;
pub use native::Event;
pub use payload::Payload;
#[cfg(feature = "tracing")]
pub use tracing_layer::TracingLayer;

/// Records an event: `event!("provider", "name", kind "field" = value, …)`, with the level
/// [`Level::DebugLine`]; `event!(Level::Info, "provider", "name", …)` gives another.
#[macro_export]
macro_rules! event {
    ($provider:literal, $name:literal $(, $kind:ident $field:literal = $value:expr)* $(,)?) => {
        $crate::event!($crate::Level::DebugLine, $provider, $name $(, $kind $field = $value)*)
    };
    ($level:expr, $provider:literal, $name:literal
     $(, $kind:ident $field:literal = $value:expr)* $(,)?) => {{
        static EVENT: $crate::Event = $crate::Event::new(
            $level,
            $provider,
            $name,
            &[$(($crate::Payload::code(stringify!($kind)), $field)),*],
        );
        // Before main, as a constructor of C.
        #[used]
        #[unsafe(link_section = ".init_array.00102")]
        static REGISTER: extern "C" fn() = {
            extern "C" fn register() {
                EVENT.register();
            }
            register
        };
        if EVENT.is_enabled() {
            #[allow(unused_mut)]
            let mut payload = $crate::Payload::new();
            $(payload.$kind($value);)*
            EVENT.write(&mut payload);
        }
    }};
}
