//! A stroke alphabet for the demo's pictures, drawn for this project: capitals 7 units high, small letters 5,
//! the baseline at 0, y upward. A path is `M` (move), `L` (line) or `Q` (quadratic curve) with its points.

use super::canvas::{Canvas, Color, Point};

/// Space between letters, in units.
const GAP: f32 = 1.7;
const SPACE: f32 = 2.2;
/// Lines that a curve becomes.
const CURVE_STEPS: usize = 6;

/// Letter, width in units, path.
#[rustfmt::skip]
const LETTERS: [(char, f32, &str); 63] = [
    ('a', 4.0, "M 4,5 L 4,0 M 4,3.6 Q 4,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 4,0 4,1.4"),
    ('b', 4.0, "M 0,7 L 0,0 M 0,1.4 Q 0,0 2,0 Q 4,0 4,2.5 Q 4,5 2,5 Q 0,5 0,3.6"),
    ('c', 3.8, "M 3.8,4 Q 3.2,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 3.2,0 3.8,1"),
    ('d', 4.0, "M 4,7 L 4,0 M 4,3.6 Q 4,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 4,0 4,1.4"),
    ('e', 4.0, "M 0,2.6 L 4,2.6 Q 4,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 3.4,0 3.9,1"),
    ('f', 2.6, "M 3,7 Q 1.2,7.2 1.2,5.5 L 1.2,0 M 0,5 L 2.6,5"),
    ('g', 4.0, "M 4,5 L 4,-0.5 Q 4,-2 2,-2 Q 0.8,-2 0.2,-1.3 M 4,3.6 Q 4,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 4,0 4,1.4"),
    ('h', 4.0, "M 0,7 L 0,0 M 0,3 Q 0,5 2.2,5 Q 4,5 4,3 L 4,0"),
    ('i', 0.2, "M 0.1,5 L 0.1,0 M 0.1,6.8 L 0.1,7"),
    ('j', 1.0, "M 1,5 L 1,-0.8 Q 1,-2 -0.3,-2 M 1,6.8 L 1,7"),
    ('k', 3.6, "M 0,7 L 0,0 M 3.4,5 L 0,2 M 1.3,3.1 L 3.6,0"),
    ('l', 0.2, "M 0.1,7 L 0.1,0"),
    ('m', 6.0, "M 0,5 L 0,0 M 0,3.2 Q 0,5 1.6,5 Q 3,5 3,3.2 L 3,0 M 3,3.2 Q 3,5 4.6,5 Q 6,5 6,3.2 L 6,0"),
    ('n', 4.0, "M 0,5 L 0,0 M 0,3 Q 0,5 2.2,5 Q 4,5 4,3 L 4,0"),
    ('o', 4.0, "M 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 4,0 4,2.5 Q 4,5 2,5"),
    ('p', 4.0, "M 0,5 L 0,-2 M 0,1.4 Q 0,0 2,0 Q 4,0 4,2.5 Q 4,5 2,5 Q 0,5 0,3.6"),
    ('q', 4.0, "M 4,5 L 4,-2 M 4,3.6 Q 4,5 2,5 Q 0,5 0,2.5 Q 0,0 2,0 Q 4,0 4,1.4"),
    ('r', 2.4, "M 0,5 L 0,0 M 0,3 Q 0.3,5 2.4,5"),
    ('s', 3.7, "M 3.5,4.2 Q 3,5 1.9,5 Q 0.2,5 0.2,3.7 Q 0.2,2.7 1.9,2.5 Q 3.7,2.3 3.7,1.2 Q 3.7,0 1.9,0 Q 0.6,0 0,0.9"),
    ('t', 2.8, "M 1.2,6.6 L 1.2,1.4 Q 1.2,0 2.9,0.1 M 0,5 L 2.7,5"),
    ('u', 4.0, "M 0,5 L 0,2 Q 0,0 2,0 Q 4,0 4,2 M 4,5 L 4,0"),
    ('v', 4.0, "M 0,5 L 2,0 L 4,5"),
    ('w', 6.0, "M 0,5 L 1.5,0 L 3,5 L 4.5,0 L 6,5"),
    ('x', 4.0, "M 0,5 L 4,0 M 4,5 L 0,0"),
    ('y', 4.0, "M 0,5 L 2,0 M 4,5 L 1.2,-2"),
    ('z', 4.0, "M 0,5 L 3.8,5 L 0,0 L 4,0"),
    ('A', 5.0, "M 0,0 L 2.5,7 L 5,0 M 0.9,2.4 L 4.1,2.4"),
    ('B', 4.4, "M 0,0 L 0,7 L 2.4,7 Q 4.2,7 4.2,5.3 Q 4.2,3.7 2.4,3.7 L 0,3.7 M 2.4,3.7 Q 4.5,3.7 4.5,1.8 Q 4.5,0 2.4,0 L 0,0"),
    ('C', 4.8, "M 4.8,5.6 Q 4.2,7 2.6,7 Q 0,7 0,3.5 Q 0,0 2.6,0 Q 4.2,0 4.8,1.4"),
    ('D', 4.8, "M 0,0 L 0,7 L 2,7 Q 4.8,7 4.8,3.5 Q 4.8,0 2,0 L 0,0"),
    ('E', 4.0, "M 4,7 L 0,7 L 0,0 L 4,0 M 0,3.7 L 3.4,3.7"),
    ('F', 4.0, "M 4,7 L 0,7 L 0,0 M 0,3.6 L 3.4,3.6"),
    ('G', 5.0, "M 4.8,5.6 Q 4.2,7 2.6,7 Q 0,7 0,3.5 Q 0,0 2.6,0 Q 5,0 5,3.2 L 2.9,3.2"),
    ('H', 4.8, "M 0,7 L 0,0 M 4.8,7 L 4.8,0 M 0,3.6 L 4.8,3.6"),
    ('I', 0.2, "M 0.1,7 L 0.1,0"),
    ('L', 3.8, "M 0,7 L 0,0 L 3.8,0"),
    ('M', 6.0, "M 0,0 L 0,7 L 3,2 L 6,7 L 6,0"),
    ('N', 4.8, "M 0,0 L 0,7 L 4.8,0 L 4.8,7"),
    ('O', 5.2, "M 2.6,7 Q 0,7 0,3.5 Q 0,0 2.6,0 Q 5.2,0 5.2,3.5 Q 5.2,7 2.6,7"),
    ('P', 4.4, "M 0,0 L 0,7 L 2.4,7 Q 4.4,7 4.4,5.1 Q 4.4,3.2 2.4,3.2 L 0,3.2"),
    ('Q', 5.2, "M 2.6,7 Q 0,7 0,3.5 Q 0,0 2.6,0 Q 5.2,0 5.2,3.5 Q 5.2,7 2.6,7 M 3.4,1.6 L 5.4,-0.6"),
    ('R', 4.6, "M 0,0 L 0,7 L 2.4,7 Q 4.4,7 4.4,5.1 Q 4.4,3.3 2.4,3.3 L 0,3.3 M 2.4,3.3 L 4.6,0"),
    ('S', 4.5, "M 4.2,5.8 Q 3.6,7 2.2,7 Q 0.2,7 0.2,5.2 Q 0.2,3.8 2.2,3.5 Q 4.5,3.2 4.5,1.7 Q 4.5,0 2.2,0 Q 0.5,0 0,1.3"),
    ('T', 4.8, "M 0,7 L 4.8,7 M 2.4,7 L 2.4,0"),
    ('U', 4.8, "M 0,7 L 0,2.6 Q 0,0 2.4,0 Q 4.8,0 4.8,2.6 L 4.8,7"),
    ('W', 7.0, "M 0,7 L 1.7,0 L 3.5,6 L 5.3,0 L 7,7"),
    ('0', 4.4, "M 2.2,7 Q 0,7 0,3.5 Q 0,0 2.2,0 Q 4.4,0 4.4,3.5 Q 4.4,7 2.2,7"),
    ('1', 2.2, "M 0,5.4 L 2,7 L 2,0"),
    ('2', 4.2, "M 0.2,5.4 Q 0.4,7 2.2,7 Q 4.2,7 4.2,5.2 Q 4.2,3.9 2.6,2.5 L 0,0 L 4.3,0"),
    ('3', 4.2, "M 0.2,6 Q 0.8,7 2,7 Q 4,7 4,5.3 Q 4,3.8 1.8,3.7 Q 4.3,3.7 4.3,1.9 Q 4.3,0 2,0 Q 0.5,0 0,1.2"),
    ('4', 4.4, "M 3.3,0 L 3.3,7 L 0,2 L 4.4,2"),
    ('5', 4.2, "M 3.9,7 L 0.6,7 L 0.3,3.9 Q 1.2,4.6 2.2,4.6 Q 4.3,4.6 4.3,2.3 Q 4.3,0 2,0 Q 0.6,0 0,1.1"),
    ('6', 4.4, "M 3.9,6.2 Q 3.4,7 2.4,7 Q 0,7 0,2.8 Q 0,0 2.2,0 Q 4.4,0 4.4,2.2 Q 4.4,4.4 2.3,4.4 Q 0.6,4.4 0.1,2.8"),
    ('7', 4.2, "M 0,7 L 4.2,7 L 1.4,0"),
    ('8', 4.4, "M 2.2,3.8 Q 0.3,3.8 0.3,5.4 Q 0.3,7 2.2,7 Q 4.1,7 4.1,5.4 Q 4.1,3.8 2.2,3.8 Q 0,3.8 0,1.9 Q 0,0 2.2,0 Q 4.4,0 4.4,1.9 Q 4.4,3.8 2.2,3.8"),
    ('9', 4.4, "M 0.5,0.8 Q 1,0 2,0 Q 4.4,0 4.4,4.2 Q 4.4,7 2.2,7 Q 0,7 0,4.8 Q 0,2.6 2.1,2.6 Q 3.8,2.6 4.3,4.2"),
    ('.', 0.2, "M 0.1,0 L 0.1,0.2"),
    (',', 0.4, "M 0.4,0.3 L 0,-1.2"),
    (':', 0.2, "M 0.1,0.6 L 0.1,0.8 M 0.1,4 L 0.1,4.2"),
    ('-', 2.6, "M 0,2.8 L 2.6,2.8"),
    ('/', 3.0, "M 0,-0.8 L 3,7.6"),
    ('%', 5.4, "M 1.1,7 Q 0,7 0,5.6 Q 0,4.2 1.1,4.2 Q 2.2,4.2 2.2,5.6 Q 2.2,7 1.1,7 M 4.6,7 L 0.8,0 M 4.3,2.8 Q 3.2,2.8 3.2,1.4 Q 3.2,0 4.3,0 Q 5.4,0 5.4,1.4 Q 5.4,2.8 4.3,2.8"),
    ('+', 3.6, "M 1.8,1 L 1.8,4.6 M 0,2.8 L 3.6,2.8"),
];

/// How a text is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pen {
    /// Height of a capital, in pixels.
    pub(crate) height: f32,
    /// Width of a stroke, in pixels.
    pub(crate) width: f32,
    pub(crate) color: Color,
}

/// Draws a line of text with its baseline's left end at the place; where it ends. Letters that the alphabet lacks
/// are left out.
pub(crate) fn write(canvas: &mut Canvas, text: &str, (mut x, y): Point, pen: Pen) -> f32 {
    let unit = pen.height / 7.0;
    for letter in text.chars() {
        let Some((_, width, path)) = LETTERS.iter().find(|(known, ..)| *known == letter) else {
            x += SPACE * unit;
            continue;
        };
        for stroke in strokes(path) {
            let place = |&(px, py): &Point| (x + px * unit, y - py * unit);
            let points: Vec<Point> = stroke.iter().map(place).collect();
            canvas.lines(&points, pen.width, pen.color);
        }
        x += (width + GAP) * unit;
    }
    x
}

/// The polylines of a path.
fn strokes(path: &str) -> Vec<Vec<Point>> {
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    let mut words = path.split_whitespace();
    while let Some(word) = words.next() {
        let mut point = || words.next().and_then(parse_point).unwrap_or_default();
        match (word, strokes.last_mut()) {
            ("L", Some(stroke)) => stroke.push(point()),
            ("Q", Some(stroke)) => {
                let (bend, end) = (point(), point());
                curve(stroke, bend, end);
            }
            _ => strokes.push(vec![point()]),
        }
    }
    strokes
}

fn parse_point(word: &str) -> Option<Point> {
    let (x, y) = word.split_once(',')?;
    Some((x.parse().ok()?, y.parse().ok()?))
}

fn curve(stroke: &mut Vec<Point>, bend: Point, end: Point) {
    let start = stroke.last().copied().unwrap_or_default();
    stroke.extend((1..=CURVE_STEPS).map(|step| {
        let t = step as f32 / CURVE_STEPS as f32;
        let at = |a: f32, b: f32, c: f32| {
            (1.0 - t) * (1.0 - t) * a + 2.0 * t * (1.0 - t) * b + t * t * c
        };
        (at(start.0, bend.0, end.0), at(start.1, bend.1, end.1))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_strokes_within_its_box() {
        for (letter, width, path) in LETTERS {
            let strokes = strokes(path);
            assert!(strokes.iter().all(|stroke| stroke.len() > 1), "{letter}");
            for (x, y) in strokes.concat() {
                assert!(
                    (-0.5..=width + 0.5).contains(&x) && (-2.1..=7.7).contains(&y),
                    "{letter} {x} {y}"
                );
            }
        }
    }
}
