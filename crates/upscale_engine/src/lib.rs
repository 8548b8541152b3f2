//! Pixels -> more pixels: model files, networks, and the fastest CPU inference for them we know how to write.
//!
//! An [`Engine`] holds the networks that ship; [`Engine::upscale`] streams the finished rows of one picture.
//! Within one instruction set its output is bit-identical for any thread count and any banding.
//! Codecs, colour and files of pictures belong to the image room; this one never does I/O.

#![forbid(unsafe_code)]

mod anatomy;
mod architecture;
pub mod bench;
mod bicubic;
mod bytes;
mod calibrate;
mod checkpoint;
mod conditioning;
mod device;
mod direct;
mod engine;
mod ensemble;
mod error;
mod executor;
mod faces;
mod finish;
mod folding;
mod job;
mod kernel_set;
mod mixed;
mod model;
mod model_file;
mod narrow;
mod ncnn;
mod needed;
mod network;
mod orientation;
mod packed;
mod picture;
mod plan;
mod products;
mod ranges;
mod reference;
mod restorer;
mod run;
mod schedule;
mod scratch;
mod shapes;
mod shipped;
mod shuffle;
mod sigmoid;
mod sleepers;
mod stagger;
mod task;
mod tiles;
#[cfg(test)]
mod traffic;
#[cfg(test)]
mod trials;
mod turned;
mod upscale;
mod winograd;
mod word_tiles;
mod words;

pub use architecture::Architecture;
pub use bicubic::{Phase, linear_phases, phases};
pub use device::{Device, DeviceError, DeviceWork, MACS_OF_A_MOMENT};
pub use engine::{Engine, EngineOptions};
pub use error::{ModelError, UpscaleError};
pub use executor::Precision;
pub use faces::{
    Cascade, DETECTOR_MODEL, EnhancedFaces, Face, FaceEnhancer, Plane, Window, find_faces,
};
pub use kernel_set::KernelSet;
pub use model::Model;
pub use ncnn::join_ncnn;
pub use network::{Activation, Base, Combine, Layer, Map, Network, PICTURE};
pub use restorer::Restorer;
pub use shapes::Shape;
