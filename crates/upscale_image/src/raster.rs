//! 8-bit RGB pictures in memory, for showing and judging: resizing as the field's benchmarks do it, cropping, two results
//! side by side. It serves the demo, the golden image and the laboratory; no customer's picture passes through here.

mod before_after;
mod resize;
mod rgb8;
mod soften;

pub use before_after::{Pair, before_after};
pub use resize::{Kernel, resize};
pub use rgb8::{Rgb8, WrongRgb8};
pub use soften::soften;
