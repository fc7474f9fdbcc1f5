//! The reader: metadata → [`Schema`], bytes of a stream file → [`StreamReader`].
//!
//! Decoding is pure over byte slices; [`TraceFiles`] is the thin layer that opens files, and
//! `window` the one that reads pieces of them.
//!
//! The way of the data: `metadata` (packets → text) → `lexer`, `parser` and `attributes` (types of
//! CTF 1.8) or `ctf2` (those of CTF 2) → `schema` (blocks) → `compile`, `references` and `places`
//! (references resolved, offsets worked out: `layout`) → `packet`, `header` and `stream` (bytes →
//! events), with `walk` and `bits` below them and `ahead` for most events; `pass` and `sizes` are
//! the short way past what nobody wants. `index` finds the packets of a file by their headers.
//! `standard` notes in `violations` what breaks the standard and is read all the same.

mod ahead;
mod attributes;
mod bits;
mod compile;
mod ctf2;
mod event_ref;
mod files;
mod float;
mod header;
mod index;
mod layout;
mod lexer;
mod metadata;
mod packet;
mod packet_facts;
mod parser;
mod pass;
mod places;
mod references;
mod resume;
mod roles;
mod scalars;
mod scale;
mod schema;
mod sizes;
mod standard;
mod stream;
mod types;
mod violations;
mod walk;
mod window;

pub use event_ref::EventRef;
pub(crate) use files::read_schema;
pub use files::{StreamFile, TraceFiles};
pub use index::PacketIndex;
pub use metadata::text as metadata_text;
pub(crate) use references::absolute;
pub use schema::{ClassRemarks, ClockInfo, Schema};
pub(crate) use stream::cut_at;
pub use stream::{BadBytes, Hole, Loss, Step, StreamReader};
pub use violations::{Violation, Violations};
