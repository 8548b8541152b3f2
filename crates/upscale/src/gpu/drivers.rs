//! What this machine's Vulkan drivers offer.

use std::sync::Arc;

use upscale_engine::Device;
use upscale_gpu::{AdapterKind, Gpu, adapters};
use upscale_pipeline::DeviceFacts;

use super::Found;

pub(super) fn list() -> Vec<Found> {
    let all = adapters().into_iter().map(|adapter| Found {
        index: adapter.index,
        rank: match adapter.kind {
            AdapterKind::Discrete => Some(0),
            AdapterKind::Virtual => Some(1),
            AdapterKind::Integrated => Some(2),
            AdapterKind::Other => Some(3),
            AdapterKind::Software => None,
        },
        facts: DeviceFacts {
            name: adapter.name,
            driver: adapter.driver,
            kind: adapter.kind.name().to_owned(),
            buffer_bytes: adapter.buffer_bytes_max,
        },
    });
    all.collect()
}

pub(super) fn open(index: usize) -> Result<Arc<dyn Device>, String> {
    let opened = Gpu::open(index).map_err(|error| error.to_string())?;
    Ok(Arc::new(opened))
}
