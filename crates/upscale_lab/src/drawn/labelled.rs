//! Enlargements of one picture, two side by side in each row, with what each is written on it, and under them a line
//! about all.

use upscale_image::raster::Rgb8;

use super::{
    canvas::{Area, Canvas},
    letters::{Pen, write},
};

/// Width of each panel.
const PANEL: usize = 430;
/// White between the panels.
const GAP: usize = 8;
/// Height of the line below.
const LINE: usize = 30;

/// `shown` are left, top and height of parts of each; they stand below each other.
pub(crate) fn labelled(
    pictures: &[(&str, &Rgb8)],
    shown: &[(usize, usize, usize)],
    line: &str,
) -> Rgb8 {
    let width = 2 * PANEL + GAP;
    let row: usize = shown.iter().map(|(_, _, height)| height + GAP).sum();
    let height = pictures.len().div_ceil(2) * row + LINE;
    let mut canvas = Canvas::new(width, height);
    canvas.fill(area(0, 0, width, height), [255.0; 3]);
    for (place, &(name, picture)) in pictures.iter().enumerate() {
        let (left, first) = (place % 2 * (PANEL + GAP), place / 2 * row);
        let mut top = first;
        for &(from_left, from_top, part) in shown {
            canvas.paint(area(left, top, PANEL, part), |x, y| {
                let (x, y) = (x as usize - left + from_left, y as usize - top + from_top);
                Some(picture.pixel(x, y).map(f32::from))
            });
            top += part + GAP;
        }
        let pen = |color| Pen {
            height: 14.0,
            width: 2.2,
            color,
        };
        let wide = write(&mut Canvas::new(1, 1), name, (0.0, 0.0), pen([0.0; 3]));
        let (at, above) = (left as f32 + 10.0, first as f32);
        canvas.round(
            Area(at, above + 10.0, at + wide + 18.0, above + 40.0),
            15.0,
            [16.0, 20.0, 26.0],
        );
        let start = (at + 11.0, above + 32.0);
        write(&mut canvas, name, start, pen([255.0; 3]));
    }
    let pen = Pen {
        height: 11.0,
        width: 1.6,
        color: [70.0, 76.0, 86.0],
    };
    write(&mut canvas, line, (2.0, height as f32 - 10.0), pen);
    canvas.finish()
}

fn area(left: usize, top: usize, width: usize, height: usize) -> Area {
    let [left, top, width, height] = [left, top, width, height].map(|value| value as f32);
    Area(left, top, left + width, top + height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_stands_beside_its_counterpart_under_its_name() {
        let plain = |level| Rgb8::paint(PANEL, 90, |_, _| [level; 3]);
        let (dark, bright) = (plain(40), plain(200));
        let composed = labelled(
            &[("One", &dark), ("Two", &bright), ("Three", &bright)],
            &[(0, 0, 60), (0, 30, 60)],
            "Both",
        );
        let (right, below) = (PANEL + GAP, 2 * (60 + GAP));
        assert_eq!(
            (composed.width(), composed.height()),
            (right + PANEL, 2 * below + LINE)
        );
        for (x, y, level) in [
            (5, 55, 40),
            (right + 5, 55, 200),
            (5, 70, 40),
            (right + 5, 70, 200),
            (5, below + 55, 200),
            (right + 5, below + 55, 255),
        ] {
            assert_eq!(composed.pixel(x, y), [level; 3], "{x}, {y}");
        }
        for y in [25, below + 25] {
            assert_eq!(composed.pixel(14, y), [16, 20, 26], "behind a name");
        }
        assert_eq!(composed.pixel(PANEL + 2, 20), [255; 3]);
    }
}
