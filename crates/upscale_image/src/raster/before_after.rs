//! The picture that shows what was gained: for each source a row, on the left its bicubic enlargement, on the
//! right ours, the same place at the same size.

use super::Rgb8;

/// Side of a shown part, in pixels of the result.
const SIDE: usize = 440;
/// White between the parts.
const GAP: usize = 8;
/// How far apart the places are that are looked at for the best part.
const STEP: usize = 20;

/// Two enlargements of one picture, of one size.
#[derive(Debug, Clone)]
pub struct Pair {
    /// What anyone's program makes.
    pub bicubic: Rgb8,
    /// The result of our networks, of the same size as the others.
    pub ours: Rgb8,
}

impl Pair {
    /// The middle of the part in which the two differ most: column and row.
    #[must_use]
    pub fn most_telling(&self) -> (usize, usize) {
        let (left, top) = most_telling(&self.bicubic, &self.ours);
        let (width, height) = (self.ours.width(), self.ours.height());
        ((left + SIDE / 2).min(width), (top + SIDE / 2).min(height))
    }
}

/// All rows in one picture; none when there are no pairs.
#[must_use]
pub fn before_after(pairs: &[Pair]) -> Option<Rgb8> {
    let rows: Vec<(Rgb8, Rgb8)> = pairs.iter().map(row).collect();
    let width = rows.iter().map(|(left, _)| left.width()).max()?;
    let height: usize = rows.iter().map(|(left, _)| left.height() + GAP).sum();
    let white = Rgb8::paint(2 * width + GAP, height - GAP, |_, _| [255; 3]);
    let mut top = 0;
    let mut composed = white;
    for (left, right) in rows {
        composed = put(&composed, &left, 0, top);
        composed = put(&composed, &right, width + GAP, top);
        top += left.height() + GAP;
    }
    Some(composed)
}

fn row(pair: &Pair) -> (Rgb8, Rgb8) {
    let (left, top) = most_telling(&pair.bicubic, &pair.ours);
    (
        pair.bicubic.crop(left, top, SIDE, SIDE),
        pair.ours.crop(left, top, SIDE, SIDE),
    )
}

fn put(under: &Rgb8, over: &Rgb8, left: usize, top: usize) -> Rgb8 {
    Rgb8::paint(under.width(), under.height(), |x, y| {
        let inside =
            (left..left + over.width()).contains(&x) && (top..top + over.height()).contains(&y);
        if inside {
            over.pixel(x - left, y - top)
        } else {
            under.pixel(x, y)
        }
    })
}

/// Where the two differ most: summed squares over the part, by a table of sums.
fn most_telling(one: &Rgb8, other: &Rgb8) -> (usize, usize) {
    let (width, height) = (one.width(), one.height());
    let mut sums = vec![0u64; (width + 1) * (height + 1)];
    for y in 0..height {
        let mut line = 0;
        for x in 0..width {
            let pairs = one.pixel(x, y).into_iter().zip(other.pixel(x, y));
            line += pairs
                .map(|(a, b)| u64::from(a.abs_diff(b)).pow(2))
                .sum::<u64>();
            sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + line;
        }
    }
    let (shown_width, shown_height) = (SIDE.min(width), SIDE.min(height));
    let within = |&(x, y): &(usize, usize)| {
        let at = |x: usize, y: usize| sums[y * (width + 1) + x];
        let (right, bottom) = (x + shown_width, y + shown_height);
        at(right, bottom) + at(x, y) - at(right, y) - at(x, bottom)
    };
    let places = (0..=height - shown_height)
        .step_by(STEP)
        .flat_map(|y| (0..=width - shown_width).step_by(STEP).map(move |x| (x, y)));
    places.max_by_key(within).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_the_difference_is_shown() {
        let one = Rgb8::paint(1_000, 800, |_, _| [0; 3]);
        let other = Rgb8::paint(1_000, 800, |x, y| {
            [if x > 900 && y > 700 { 9 } else { 0 }; 3]
        });
        let (left, top) = most_telling(&one, &other);
        assert!(
            left + SIDE >= 1_000 - STEP && top + SIDE >= 800 - STEP,
            "{left} {top}"
        );
    }

    #[test]
    fn rows_stand_below_each_other_and_pairs_side_by_side() {
        let bicubic = Rgb8::paint(60, 40, |_, _| [10; 3]);
        let ours = Rgb8::paint(60, 40, |_, _| [200; 3]);
        let pairs = [
            Pair {
                bicubic: bicubic.clone(),
                ours: ours.clone(),
            },
            Pair { bicubic, ours },
        ];
        let composed = before_after(&pairs).unwrap();
        assert_eq!(
            (composed.width(), composed.height()),
            (2 * 60 + GAP, 2 * 40 + GAP)
        );
        assert_eq!(composed.pixel(0, 0), [10; 3]);
        assert_eq!(composed.pixel(60 + GAP, 40 + GAP), [200; 3]);
        assert_eq!(composed.pixel(61, 41), [255; 3]);
    }
}
