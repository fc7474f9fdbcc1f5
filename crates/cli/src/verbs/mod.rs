//! One module for each verb: options in, output and outcome out.

pub mod doctor;
