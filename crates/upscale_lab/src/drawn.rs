//! Pictures drawn by this program: no one else's, so they may be shown, shipped and measured anywhere.

mod canvas;
mod harbour;
mod letters;
mod panel;
mod text;

use upscale_image::raster::Rgb8;

pub(crate) use text::pages;

/// A harbour town: brick, windows, rigging, water; what a photograph is to an upscaler.
pub(crate) fn harbour() -> Rgb8 {
    harbour::draw().finish()
}

/// A screenshot of a program that does not exist: text, thin lines, icons, a chart.
pub(crate) fn panel() -> Rgb8 {
    panel::draw().finish()
}
