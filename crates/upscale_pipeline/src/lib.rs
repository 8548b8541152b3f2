//! From untrusted bytes to a PNG that was checked: the steps of one picture ([`upscale_image`]), the child that does them
//! ([`run_child`]) in its sandbox, what it and its parent say to each other, and the parent's side
//! ([`ChildOptions::upscale`]), which trusts nothing that it hears. Knows no service, no task and no store.

mod cache;
mod check_png;
mod child;
mod device;
#[cfg(debug_assertions)]
pub mod fault;
mod frame;
pub mod kernels;
mod models;
mod output;
mod picture;
mod running;
pub mod sandbox;
mod status;
mod supervisor;

pub use cache::{LastLevel, cache_share_bytes};
pub use child::{ChildError, ChildSetup, run_child};
pub use device::{
    Announcement, DeviceFacts, DeviceLink, DeviceProcess, KnownNetworks, announce, serve_device,
};
pub use frame::{
    Answer, DeviceUse, Facts, Job, Spent, read_answer, read_job, read_source, write_answer,
    write_progress,
};
pub use models::{ModelPath, ModelPaths, ModelsError};
pub use picture::{
    Clock, FallbackLevel, PictureOptions, PipelineError, Upscaled, processor, upscale_image, wall,
};
pub use status::status_bytes;
pub use supervisor::{ALLOCATOR, BadEnd, CheckedResult, ChildEnd, ChildOptions};
pub use upscale_image::Format;
