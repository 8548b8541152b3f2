//! Judging pictures: the resizing that benchmarks are made with and the figures they are given. 8-bit RGB in,
//! double precision inside. It serves `upscale eval` and the demo; no customer's picture passes through here.

mod compare;
mod resize;
mod rgb8;

pub use compare::{Likeness, compare};
pub use resize::{Kernel, resize};
pub use rgb8::{Rgb8, WrongRgb8};
