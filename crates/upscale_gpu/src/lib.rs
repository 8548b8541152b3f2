//! Networks on a GPU, through Vulkan: the same network, the same picture, the same rows as the engine's, within a stated
//! tolerance. [`adapters`] says which devices there are, [`Gpu`] is one of them, opened.
//!
//! Which device is worth it, and what happens when one fails, is for others to say; here every failure is an error in words.

#![forbid(unsafe_code)]

mod adapters;
mod area;
mod error;
mod gpu;
mod packed;
mod programs;
mod run;
mod steps;

pub use adapters::{AdapterFacts, AdapterKind, adapters};
pub use error::GpuError;
pub use gpu::{Gpu, Storage};
