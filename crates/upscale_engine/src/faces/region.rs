//! Where a face's picture is computed and how it fades into the rest: geometry only.

use std::ops::Range;

use upscale_core::{Pixels, Scale};

use super::detect::Face;

/// An area is this many times as wide and high as the face's box: hair, chin and ears belong to a face too.
const GROWTH: f32 = 1.5;

/// Which networks draw a face. Between the two both do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The face networks, which were trained on portraits whose faces shrink to some 80 source pixels at 2x and to 40 at 4x.
    Small,
    /// Those that restore, at their crispest.
    Large,
}

/// How much of a small face's picture shows, at 2x and at 4x.
const SHARES: [Shares; 2] = [
    Shares {
        face: 1.0,
        eyes: 0.56,
        grows: 100.0..150.0,
    },
    Shares {
        face: 1.0,
        eyes: 0.4,
        grows: 50.0..100.0,
    },
];
/// Where the eyes and their brows are in a face's box, rows and columns, in sides of the box: in 108 portraits the middles of
/// eyes are at 0.27 to 0.48 of its height and at 0.22 to 0.84 of its width.
const EYES: [Range<f32>; 2] = [0.25..0.51, 0.12..0.90];
/// Over how much of the box's side the share changes around the eyes.
const EYES_SLOPE: f32 = 0.08;

/// Shares of the face's picture, 0 to 1. A face network guesses, and of eyes it guesses wrong most often: at 4x behind JPEG 50
/// and at 2x behind JPEG 30 5 % of the persons have eyes further from their own than without it, and 5 % are allowed (decision
/// 12). At 2x .6 is one person of 111 too many; before 2026-11-28 .64 made them 8 %.
#[derive(Debug, Clone, PartialEq)]
struct Shares {
    face: f32,
    eyes: f32,
    /// From which side of the box to which small becomes large, in source pixels: at 4x the face network made faces of 100
    /// pixels smoother than the general one does.
    grows: Range<f32>,
}

impl Shares {
    /// Those of a face with a box of `side` source pixels, in its box and over its eyes.
    fn of(&self, side: f32, kind: Kind) -> [f32; 2] {
        let Range { start, end } = self.grows;
        let largeness = ((side - start) / (end - start)).clamp(0.0, 1.0);
        match kind {
            Kind::Small => [self.face, self.eyes].map(|share| share * (1.0 - largeness)),
            Kind::Large => [largeness; 2],
        }
    }
}

/// A rectangle of pixels, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    pub(super) fn right(&self) -> usize {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> usize {
        self.top + self.height
    }

    fn between(columns: Range<usize>, rows: Range<usize>) -> Self {
        Self {
            left: columns.start,
            top: rows.start,
            width: columns.len(),
            height: rows.len(),
        }
    }

    /// With `by` pixels more on each side, as far as the picture reaches.
    pub(super) fn grown(&self, by: usize, width: usize, height: usize) -> Self {
        let columns = self.left.saturating_sub(by)..(self.right() + by).min(width);
        let rows = self.top.saturating_sub(by)..(self.bottom() + by).min(height);
        Self::between(columns, rows)
    }

    /// The same place in an enlarged picture.
    pub(super) fn enlarged(&self, factor: usize) -> Self {
        Self {
            left: self.left * factor,
            top: self.top * factor,
            width: self.width * factor,
            height: self.height * factor,
        }
    }

    /// The same place counted from the corner of `outer`, which holds it.
    pub(super) fn within(&self, outer: &Self) -> Self {
        Self {
            left: self.left - outer.left,
            top: self.top - outer.top,
            ..*self
        }
    }

    /// The same place in a mirrored picture of that width.
    pub(super) fn mirrored(&self, width: usize) -> Self {
        Self {
            left: width - self.right(),
            ..*self
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }

    fn joined(&self, other: &Self) -> Self {
        let columns = self.left.min(other.left)..self.right().max(other.right());
        let rows = self.top.min(other.top)..self.bottom().max(other.bottom());
        Self::between(columns, rows)
    }
}

/// The areas of all faces, cut to the picture; those that meet become one, so that no pixel is computed twice and
/// all faces of a crowd cost at most one more pass over the picture.
pub(super) fn areas(faces: &[Face], width: usize, height: usize) -> Vec<Area> {
    let mut apart: Vec<Area> = Vec::new();
    for face in faces {
        let columns = cut(face.left, face.side, width);
        let rows = cut(face.top, face.side, height);
        if columns.is_empty() || rows.is_empty() {
            continue;
        }
        let mut area = Area::between(columns, rows);
        while let Some(met) = apart.iter().position(|other| other.meets(&area)) {
            area = area.joined(&apart.swap_remove(met));
        }
        apart.push(area);
    }
    apart
}

/// A side of a face's box, grown, within `0..size`.
fn cut(start: f32, side: f32, size: usize) -> Range<usize> {
    let (low, high) = grown(start, side);
    // Negative numbers become 0.
    let end = (high.ceil() as usize).min(size);
    (low.floor() as usize).min(end)..end
}

fn grown(start: f32, side: f32) -> (f32, f32) {
    let more = side * (GROWTH - 1.0) / 2.0;
    (start - more, start + side + more)
}

/// How much of the face's picture shows at an output pixel: one of [`SHARES`] in the face's box, none from the edge of its
/// area on, smooth slopes between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Veil {
    left: f32,
    top: f32,
    side: f32,
    shares: [f32; 2],
}

impl Veil {
    pub(super) fn over(face: &Face, scale: Scale, kind: Kind) -> Self {
        let shares = SHARES[usize::from(scale == Scale::X4)].of(face.side, kind);
        let factor = scale.factor() as f32;
        Self {
            left: face.left * factor,
            top: face.top * factor,
            side: face.side * factor,
            shares,
        }
    }

    /// Whether anything of the face's picture shows.
    pub(super) fn shows(&self) -> bool {
        self.shares.iter().any(|share| *share > 0.0)
    }

    /// Rows that it reaches, in output pixels.
    pub(super) fn rows(&self) -> Range<usize> {
        self.reach(self.top)
    }

    /// The same of columns.
    pub(super) fn columns(&self) -> Range<usize> {
        self.reach(self.left)
    }

    fn reach(&self, start: f32) -> Range<usize> {
        let (low, high) = grown(start, self.side);
        // Negative numbers become 0.
        low.floor() as usize..high.ceil() as usize
    }

    /// Between 0 and the larger share at the centre of output pixel `x`, `y`.
    pub(super) fn share(&self, x: usize, y: usize) -> f32 {
        let at = |at: usize, start: f32| (at as f32 + 0.5 - start) / self.side;
        let (x, y) = (at(x, self.left), at(y, self.top));
        let slope = (GROWTH - 1.0) / 2.0;
        let face = inside(x, &(0.0..1.0), slope) * inside(y, &(0.0..1.0), slope);
        let [rows, columns] = &EYES;
        let eyes = inside(x, columns, EYES_SLOPE) * inside(y, rows, EYES_SLOPE);
        let [most, least] = self.shares;
        face * (most + (least - most) * eyes)
    }
}

/// 1 in `range`, 0 from `slope` beside it on, smooth between.
fn inside(at: f32, range: &Range<f32>, slope: f32) -> f32 {
    let outside = (range.start - at).max(at - range.end).max(0.0);
    eased(1.0 - outside / slope)
}

/// From 0 to 1 as `t` goes, flat at both ends (Hermite's cubic).
pub(super) fn eased(t: f32) -> f32 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// The pixels of `area`.
pub(super) fn crop(source: &Pixels, area: &Area) -> Pixels {
    let channels = source.channels();
    let columns = area.left * channels..area.right() * channels;
    let rows = (area.top..area.bottom()).map(|y| &source.row(y)[columns.clone()]);
    let samples = rows.flatten().copied().collect();
    Pixels::new(area.width, area.height, channels, samples)
        .unwrap_or_else(|_| unreachable!("as many samples as the area has"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orientation::Orientation;

    fn face(left: f32, top: f32, side: f32) -> Face {
        Face {
            left,
            top,
            side,
            score: 3.0,
        }
    }

    #[test]
    fn an_area_is_half_as_large_again_and_stays_in_the_picture() {
        let whole = areas(&[face(40.0, 60.0, 20.0)], 200, 200);
        let expected = Area::between(35..65, 55..85);
        assert_eq!(whole, [expected]);
        let at_the_corner = areas(&[face(-8.0, 190.0, 40.0)], 200, 200);
        assert_eq!(at_the_corner, [Area::between(0..42, 180..200)]);
        assert_eq!(areas(&[face(300.0, 10.0, 40.0)], 200, 200), []);
    }

    #[test]
    fn areas_that_meet_become_one_and_the_others_stay_apart() {
        let near = [face(10.0, 10.0, 20.0), face(32.0, 10.0, 20.0)];
        let far = face(120.0, 10.0, 20.0);
        let bridge = face(60.0, 10.0, 46.0);
        assert_eq!(areas(&[near[0], near[1], far], 200, 60).len(), 2);
        let all = areas(&[near[0], far, near[1], bridge], 200, 60);
        assert_eq!(all, [Area::between(5..145, 0..60)]);
    }

    #[test]
    fn a_picture_and_an_area_in_it_are_mirrored_alike() {
        let samples = (0..5 * 2 * 3).map(|i| i as f32).collect();
        let picture = Pixels::new(5, 2, 3, samples).unwrap();
        let area = Area::between(1..3, 0..2);
        let mirror = |picture: &Pixels| Orientation::MIRRORED.of(picture);
        let part = crop(&mirror(&picture), &area.mirrored(5));
        assert_eq!(part, mirror(&crop(&picture, &area)));
    }

    #[test]
    fn a_veil_is_whole_in_the_box_and_gone_at_the_edge_of_the_area() {
        let veil = Veil::over(&face(10.0, 10.0, 20.0), Scale::X2, Kind::Small);
        let at_4x = Veil::over(&face(10.0, 10.0, 20.0), Scale::X4, Kind::Small);
        assert_eq!(at_4x.share(80, 90), SHARES[1].face);
        assert_eq!(veil.share(20, 59), SHARES[0].face);
        assert_eq!(veil.share(40, 50), SHARES[0].face);
        // The area reaches from 5 to 35, in output pixels from 10 to 70.
        assert_eq!((veil.share(9, 40), veil.share(70, 40)), (0.0, 0.0));
        let slope: Vec<f32> = (10..20).map(|x| veil.share(x, 40)).collect();
        assert!(slope.is_sorted() && slope[0] > 0.0, "{slope:?}");
        assert_eq!((veil.rows(), veil.columns()), (10..70, 10..70));
    }

    #[test]
    fn less_of_it_shows_over_the_eyes() {
        let veil = Veil::over(&face(100.0, 50.0, 50.0), Scale::X4, Kind::Small);
        for (x, y, expected) in [
            // Eyes and brows, the middle between them.
            (116, 69, SHARES[1].eyes),
            (135, 69, SHARES[1].eyes),
            (125, 63, SHARES[1].eyes),
            // Forehead, mouth, chin, an ear.
            (125, 54, SHARES[1].face),
            (125, 90, SHARES[1].face),
            (125, 99, SHARES[1].face),
            (101, 70, SHARES[1].face),
        ] {
            let share = veil.share(4 * x, 4 * y);
            assert!((share - expected).abs() < 1e-6, "{x}, {y}: {share}");
        }
        let down: Vec<f32> = (232..252).map(|y| veil.share(500, y)).collect();
        assert!(
            down.is_sorted_by(|above, below| above >= below) && down[0] > down[19],
            "{down:?}"
        );
    }

    #[test]
    fn a_face_that_grows_passes_from_one_network_to_the_other() {
        let at = |side: f32, scale: Scale, kind: Kind| {
            let middle = (side as usize * scale.factor()) / 2;
            Veil::over(&face(0.0, 0.0, side), scale, kind).share(middle, middle * 3 / 2)
        };
        for (scale, sides) in [
            (Scale::X2, [99.0, 125.0, 150.0]),
            (Scale::X4, [50.0, 75.0, 160.0]),
        ] {
            let of = |kind| sides.map(|side| at(side, scale, kind));
            let near = |found: [f32; 3], expected: [f32; 3]| {
                let pairs = found.into_iter().zip(expected);
                pairs
                    .into_iter()
                    .all(|(one, other)| (one - other).abs() < 1e-6)
            };
            assert!(near(of(Kind::Small), [1.0, 0.5, 0.0]));
            assert!(near(of(Kind::Large), [0.0, 0.5, 1.0]));
        }
        let shows = |side, kind| Veil::over(&face(0.0, 0.0, side), Scale::X4, kind).shows();
        let both = [Kind::Small, Kind::Large];
        assert_eq!(both.map(|kind| shows(50.0, kind)), [true, false]);
        assert_eq!(both.map(|kind| shows(75.0, kind)), [true, true]);
        assert_eq!(both.map(|kind| shows(100.0, kind)), [false, true]);
    }
}
