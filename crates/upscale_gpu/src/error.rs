//! Why a device does not do it; always a reason to let the CPU do it instead.

/// In words, with the numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// There is no device of that number.
    #[error("GPU {index} does not exist: {}", found(*.count))]
    NoAdapter {
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver does not open it, or it lacks what is needed.
    #[error("the GPU cannot be used: {0}")]
    Unusable(String),
    /// The network, or a picture of that size with this network, is none for this device.
    #[error("the GPU cannot run this: {0}")]
    Unfit(String),
    /// It broke while it worked.
    #[error("the GPU failed: {0}")]
    Failed(String),
    /// The sink, or the caller's `cancelled`, said stop.
    #[error("cancelled")]
    Cancelled,
}

fn found(count: usize) -> String {
    match count {
        0 => "no Vulkan driver offers any".to_owned(),
        1 => "there is one, number 0".to_owned(),
        _ => format!("there are {count}, from 0"),
    }
}
