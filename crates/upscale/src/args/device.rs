//! `--device`: what computes pictures, and the process that a GPU has.

use std::{fmt, str::FromStr};

use clap::Args;
use upscale_core::Look;

use super::SealedModels;

/// What computes pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    /// The GPU where one is faster than the CPU, as measured.
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this number in the order of `doctor`, and the CPU for what it does not do.
    Gpu(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => {
                let number = text
                    .strip_prefix("gpu:")
                    .and_then(|number| number.parse().ok());
                let none = || "not auto, cpu, or gpu: and a number such as gpu:0".to_owned();
                number.map(Self::Gpu).ok_or_else(none)
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => out.write_str("auto"),
            Self::Cpu => out.write_str("cpu"),
            Self::Gpu(number) => write!(out, "gpu:{number}"),
        }
    }
}

/// What a GPU's process is told.
#[derive(Debug, Args)]
pub(crate) struct GpuArgs {
    /// Which GPU.
    #[arg(long, value_name = "auto|gpu:N")]
    pub(crate) device: DeviceChoice,
    /// Process that starts this one.
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<u32>,
    /// Threads that a picture would have on the CPU.
    #[arg(long, value_name = "N")]
    pub(crate) threads: u32,
    /// The look of the restoring networks.
    #[arg(long, value_name = "LOOK", default_value_t = Look::default())]
    pub(crate) look: Look,
    #[command(flatten)]
    pub(crate) models: SealedModels,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_written_as_it_is_read() {
        for text in ["auto", "cpu", "gpu:0", "gpu:12"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for wrong in ["", "gpu", "gpu:", "gpu:-1", "gpu:a", "cuda:0", "GPU:0"] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }
}
