//! How types of other rooms, which know no wire, go through a frame. The compiler holds each against its original.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(remote = "upscale_core::Parameters")]
pub(super) struct Parameters {
    #[serde(with = "Scale")]
    scale: upscale_core::Scale,
    face_enhance: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "upscale_core::Scale")]
pub(super) enum Scale {
    X2,
    X4,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "upscale_core::Look")]
pub(super) enum Look {
    Faithful,
    Natural,
    Crisp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "upscale_image::Format")]
pub(super) enum Format {
    Jpeg,
    Png,
    WebP,
}
