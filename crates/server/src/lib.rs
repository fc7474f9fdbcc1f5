//! The page of a trace and its API, on this machine alone. `docs/view.md` describes both.
//!
//! # Design constraints
//! - It listens on the loopback address only, but where somebody gives an address and a token
//!   ([`serve_known`]); every question of a trace must carry the token of its URL, and
//!   name this machine as its host, so that no page from elsewhere can ask.
//! - [`serve`] has no token: it gives pages that everybody on this machine may read.
//! - It only reads. No path that a client sends opens a file: the page is inside of the program,
//!   and the trace was opened before.
//! - [`View::answer`] is all of the API without a network, for tests and for whoever embeds it.
//! - What a client asks for is bounded: rows, columns, tracks, filters, questions at once.

mod answer;
pub mod answers;
mod api;
mod cache;
mod cells;
mod columns;
mod connections;
mod counted;
mod counters;
mod events;
mod foreign;
mod http;
mod ledger;
mod matches;
mod page;
mod pages;
mod question;
mod reports;
mod served;
mod timed;
mod tracks;
mod view;

pub use answer::Answer;
pub use foreign::ForeignReport;
pub use http::{Listening, listen};
pub use page::{has_page, hits_page, monitor_page};
pub use pages::{Pages, serve, serve_known, serve_private};
pub use served::Served;
pub use view::{View, ViewOptions};
