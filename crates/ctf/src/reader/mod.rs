//! The reader: metadata → [`Schema`], bytes of a stream file → [`StreamReader`].
//!
//! Everything here is pure over byte slices; [`TraceFiles`] is the thin layer that opens and maps
//! files.
//!
//! The way of the data: `metadata` (packets → text) → `lexer` → `parser` and `attributes` (types) →
//! `schema` (blocks) → `compile`, `references` and `places` (references resolved, offsets worked
//! out: `layout`) → `packet` and `stream` (bytes → events), with `walk` and `bits` below them.

mod attributes;
mod bits;
mod compile;
mod ctf2;
mod event_ref;
mod files;
mod float;
mod index;
mod layout;
mod lexer;
mod metadata;
mod packet;
mod parser;
mod places;
mod references;
mod scale;
mod schema;
mod stream;
mod types;
mod walk;
mod window;

pub use event_ref::EventRef;
pub use files::{StreamFile, TraceFiles};
pub use index::PacketIndex;
pub use metadata::text as metadata_text;
pub use schema::{ClockInfo, Schema};
pub use stream::{BadBytes, Loss, Step, StreamReader};
