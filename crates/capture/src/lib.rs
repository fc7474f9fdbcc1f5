//! Sessions from start to files on disk, and the facts about this machine that they rest on.

pub mod facts;
