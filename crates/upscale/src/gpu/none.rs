//! A build without its `gpu` feature: there are no drivers to ask.

use std::sync::Arc;

use upscale_engine::Device;

use super::Found;

pub(super) fn list() -> Vec<Found> {
    Vec::new()
}

pub(super) fn open(_: usize) -> Result<Arc<dyn Device>, String> {
    Err("this program was built without GPUs".to_owned())
}
