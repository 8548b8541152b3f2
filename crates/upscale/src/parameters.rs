//! How a command line and a batch's CSV name the parameters of an order beside its scale, which each command asks for
//! in its own way.

use clap::Args;
use serde::Deserialize;
use upscale_client::Order;
use upscale_core::{Parameters, Scale};

/// Flags of every command that upscales.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ParameterFlags {
    /// Improve faces; lowers the size cap.
    #[arg(long)]
    pub(crate) face_enhance: bool,
}

/// Columns of a batch's CSV, each of which may be missing or empty. What they say is checked by the service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct ParameterColumns {
    #[serde(default)]
    pub(crate) scale: Option<u32>,
    #[serde(default)]
    pub(crate) face_enhance: Option<bool>,
}

impl ParameterFlags {
    /// With the scale that the command chose.
    pub(crate) fn at(self, scale: Scale) -> Parameters {
        Parameters {
            scale,
            face_enhance: self.face_enhance,
        }
    }
}

impl ParameterColumns {
    /// What a row orders: its columns say it, and the command's flags where they do not.
    pub(crate) fn order(self, image_url: String, flags: Parameters) -> Order {
        Order::new(image_url)
            .scale(self.scale.unwrap_or(flags.scale.factor() as u32))
            .face_enhance(self.face_enhance.unwrap_or(flags.face_enhance))
    }
}
