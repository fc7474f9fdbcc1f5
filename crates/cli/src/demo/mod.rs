//! Late activations of our own making: real-time tasks that delay each other, as processes of
//! their own, with what they measured of themselves as the truth to compare with.

pub mod hog;
pub mod jack;
pub mod part;
pub mod process;
pub(crate) mod run;
