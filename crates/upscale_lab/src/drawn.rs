//! Pictures drawn by this program: no one else's, so they may be shown, shipped and measured anywhere.

mod canvas;
mod harbour;
mod labelled;
mod letters;
mod light;
mod panel;
mod still_life;
mod text;

use upscale_image::raster::Rgb8;

pub(crate) use self::{labelled::labelled, text::pages};

/// A harbour town: brick, windows, rigging, water; what a photograph is to an upscaler.
pub(crate) fn harbour() -> Rgb8 {
    harbour::draw().finish()
}

/// A screenshot of a program that does not exist: text, thin lines, icons, a chart.
pub(crate) fn panel() -> Rgb8 {
    panel::draw().finish()
}

/// A photograph of a table: a label to read, fruit, linen and wood in the light of a window. Takes a minute.
pub(crate) fn still_life() -> Rgb8 {
    still_life::draw(still_life::WIDTH, still_life::HEIGHT, 64)
}
