//! What can go wrong: a model file that cannot be used, a picture that cannot be done.

/// A model file was refused; the message says which rule it broke, with numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model file cannot be used: {0}")]
pub struct ModelError(pub(crate) String);

pub(crate) fn refuse(reason: impl Into<String>) -> ModelError {
    ModelError(reason.into())
}

/// Why a picture was not upscaled to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpscaleError {
    /// The sink, or the caller's `cancelled`, said stop.
    #[error("the upscale was cancelled")]
    Cancelled,
    /// The picture has more pixels than the engine was told to accept.
    #[error("{width} x {height} pixels exceed the limit of {pixels_max} pixels")]
    TooLarge {
        /// Columns of the source.
        width: usize,
        /// Rows of the source.
        height: usize,
        /// The limit ([`crate::EngineOptions::pixels_max`]).
        pixels_max: usize,
    },
    /// The network reads gray or RGB, nothing else.
    #[error("{channels} channels; the networks read 1 (gray) or 3 (RGB)")]
    Channels {
        /// What the source has.
        channels: usize,
    },
    /// The result has to be held in memory, and there is not so much.
    #[error("{bytes} bytes of memory are needed for the result")]
    Memory {
        /// What was asked for.
        bytes: usize,
    },
    /// Faces were to be enhanced and could not be: the detector failed, or the network made what is no picture.
    #[error("the faces could not be enhanced: {reason}")]
    Face {
        /// What failed, for logs.
        reason: String,
    },
    /// The device that was to run the networks did not, or made something else than the CPU does.
    #[error("the device: {reason}")]
    Device {
        /// What failed, for logs.
        reason: String,
        /// Whether the device is broken; else it is only not for this picture, or not now.
        is_broken: bool,
    },
}
