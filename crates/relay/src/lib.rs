//! Traces over the network while they are written ([docs/streaming.md] has the protocol).
//!
//! The recorder's side: [`Delivery`] reads what a recorder writes into its folder, the spool, sends
//! it on, and gives its room back once the other side has it. The receiver's side: [`Receiver`]
//! writes the same files below the name of each host.
//!
//! # Design constraints
//! - Neither side's protocol (`courier`, [`Peer`]) reads or writes a socket: bytes come in, bytes
//!   go out. Tests cut them at any byte.
//! - What comes from the wire is hostile: each length is bounded before anything is allocated, and
//!   a name is a name of a fixed alphabet or nothing.
//! - The receiver's file is the truth: after a cut it says how long each is, and the sender goes on
//!   at that byte.
//!
//! [docs/streaming.md]: ../../../docs/streaming.md

mod auth;
mod book;
mod courier;
mod delivery;
mod frame;
mod name;
mod peer;
mod receiver;
mod rest;
mod route;
mod store;
mod strangers;
mod told;

pub use auth::Token;
pub use book::{End, Figures};
pub use delivery::{Delivered, Delivery, To};
pub use name::{host_name, is_name, plain as plain_name};
pub use peer::Peer;
pub use receiver::{Received, Receiver};
pub use rest::{Rest, cut_delivered, is_spool};
pub use route::Route;
pub use store::Store;
pub use told::Told;

/// The version of the protocol; both sides must have the same.
pub const VERSION: u16 = 1;
/// The port where nobody names another.
pub const PORT: u16 = 7423;
