//! One module for each verb: options in, output and outcome out.

mod again;
mod ahead;
pub mod cat;
pub mod check;
pub mod convert;
pub mod diagnose;
pub mod diff;
pub mod doctor;
mod external;
mod follow;
pub mod info;
pub mod measure;
pub mod monitor;
mod opened;
mod page;
mod passing;
mod progress;
pub mod record;
pub mod report;
pub mod rings;
mod room;
pub mod shield;
mod trackers;
pub mod tune;
pub mod view;
pub mod watch;
mod window;
