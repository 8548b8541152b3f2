//! Where a face's picture is computed and how it fades into the rest: geometry only.

use std::ops::Range;

use upscale_core::Pixels;

use super::detect::Face;

/// An area is this many times as wide and high as the face's box: hair, chin and ears belong to a face too.
const GROWTH: f32 = 1.5;

/// How much of the face's picture shows in the face's box, at 2x and at 4x. The mean of two networks is nearer to the
/// truth than either where they disagree: of more of it more eyes lose on held-out faces (decision 12).
const SHARES: [f32; 2] = [0.5, 0.42];

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
/// area on, a smooth slope between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Veil {
    left: f32,
    top: f32,
    side: f32,
    slope: f32,
    most: f32,
}

impl Veil {
    pub(super) fn over(face: &Face, factor: usize) -> Self {
        let most = SHARES[usize::from(factor == 4)];
        let factor = factor as f32;
        Self {
            most,
            left: face.left * factor,
            top: face.top * factor,
            side: face.side * factor,
            slope: face.side * factor * (GROWTH - 1.0) / 2.0,
        }
    }

    /// 0 to `most` at the centre of output pixel `x`, `y`.
    pub(super) fn share(&self, x: usize, y: usize) -> f32 {
        self.most * self.along(x, self.left) * self.along(y, self.top)
    }

    fn along(&self, at: usize, start: f32) -> f32 {
        let at = at as f32 + 0.5;
        let outside = (start - at).max(at - start - self.side).max(0.0);
        let t = (1.0 - outside / self.slope).clamp(0.0, 1.0);
        t * t * (3.0 - 2.0 * t)
    }
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
        let veil = Veil::over(&face(10.0, 10.0, 20.0), 2);
        let at_4x = Veil::over(&face(10.0, 10.0, 20.0), 4);
        assert_eq!(at_4x.share(80, 80), SHARES[1]);
        assert_eq!(veil.share(20, 59), SHARES[0]);
        assert_eq!(veil.share(40, 40), SHARES[0]);
        // The area reaches from 5 to 35, in output pixels from 10 to 70.
        assert_eq!((veil.share(9, 40), veil.share(70, 40)), (0.0, 0.0));
        let slope: Vec<f32> = (10..20).map(|x| veil.share(x, 40)).collect();
        assert!(slope.is_sorted() && slope[0] > 0.0, "{slope:?}");
    }
}
