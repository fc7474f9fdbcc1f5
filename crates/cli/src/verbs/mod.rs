//! One module for each verb: options in, output and outcome out.

pub mod cat;
pub mod doctor;
pub mod record;
mod window;
