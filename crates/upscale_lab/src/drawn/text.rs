//! Pages of text in known colours, so that what became of a stroke can be counted.

use upscale_image::raster::Rgb8;

use super::canvas::{Area, Canvas, Color, mix};
use super::letters::{Pen, write};

const WIDTH: usize = 480;
const HEIGHT: usize = 320;
/// From edge to text.
const MARGIN: f32 = 18.0;
/// Heights of capitals in pixels; a line each.
const HEIGHTS: [f32; 9] = [13.0, 16.0, 18.0, 21.0, 14.0, 24.0, 15.0, 28.0, 17.0];
const WORDS: [&str; 6] = [
    "Masters of vessels over 20 m report here before noon",
    "The north lock is closed from 18:30 to 06:15",
    "Quiet is kept on the inner quay; moor at Berth 14",
    "AaBbCcDdEeFfGgHh IiLlMmNnOoPp 0123456789",
    "Dues: 12% below the summer rate, paid in advance",
    "Wind from the west, the tide turns at 03:45",
];

/// A page and the two colours that it is made of.
pub(crate) struct Page {
    pub(crate) name: &'static str,
    pub(crate) ink: Color,
    pub(crate) paper: Color,
    pub(crate) picture: Rgb8,
}

/// Dark on light, light on dark, and colours that JPEG stores coarsely.
pub(crate) fn pages() -> Vec<Page> {
    let black = [0.0; 3];
    let white = [255.0; 3];
    let pages = [
        ("black-on-white", black, white),
        ("gray-on-gray", [90.0, 96.0, 104.0], [232.0, 234.0, 238.0]),
        ("white-on-night", [240.0, 242.0, 246.0], [24.0, 30.0, 44.0]),
        ("red-on-white", [200.0, 24.0, 32.0], white),
        ("blue-on-cream", [24.0, 64.0, 170.0], [250.0, 244.0, 228.0]),
    ];
    let drawn = pages.into_iter().enumerate();
    drawn
        .map(|(number, (name, ink, paper))| Page {
            name,
            ink,
            paper,
            picture: draw(ink, paper, number),
        })
        .collect()
}

fn draw(ink: Color, paper: Color, number: usize) -> Rgb8 {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    canvas.fill(Area(0.0, 0.0, WIDTH as f32, HEIGHT as f32), paper);
    let mut baseline = MARGIN;
    for (line, height) in HEIGHTS.into_iter().enumerate() {
        baseline += height * 1.15;
        let words = WORDS[(line + number) % WORDS.len()];
        let pen = Pen {
            height,
            width: height / if line % 3 == 2 { 5.5 } else { 8.0 },
            color: ink,
        };
        // Off whole pixels, each page and line differently, as text on a screen is.
        let shift = 0.37 * (line + 3 * number) as f32 % 1.0;
        write(&mut canvas, words, (MARGIN + shift, baseline + shift), pen);
        baseline += height * 0.55;
    }
    let rule = Area(MARGIN, baseline, WIDTH as f32 - MARGIN, baseline + 1.5);
    canvas.fill(rule, mix(paper, ink, 0.5));
    canvas.finish()
}
