//! Where the faces are. The detector is SeetaFace's funnel-structured cascade (Wu et al., Neurocomputing 2017)
//! through the crate `rustface`; which boxes are believed is decided here. Why this detector:
//! docs/decisions/0012-faces.md.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustface::{FaceInfo, ImageData, Model};
use upscale_core::Pixels;

use crate::error::UpscaleError;

/// A face in a picture, in source pixels; the box is square and may stick out of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Face {
    /// Left edge of the box.
    pub left: f32,
    /// Upper edge of the box.
    pub top: f32,
    /// Width and height of the box: from the forehead to below the mouth.
    pub side: f32,
    /// The detector's trust in the face and in its mirror image together; clear faces have 20 and more.
    pub score: f32,
}

/// The model, copied here by the build script.
const MODEL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/face_detector.bin"));
/// Least side of a face's box in source pixels: below it an eye is two pixels.
const SIDE_MIN: u32 = 20;
/// Least score of a box that is looked at again. Measured, like the next two, on held-out faces and face-free
/// pictures, see the decision.
const CANDIDATE_MIN: f64 = 1.0;
/// Least score in the mirror: what the detector takes for a face by chance, it rarely does both ways.
const MIRRORED_MIN: f64 = 0.3;
/// Least sum of both.
const SCORE_MIN: f32 = 5.0;
/// Boxes looked at again, the surest; a crowd of more keeps its least sure faces as the ordinary network makes them.
const CANDIDATES_MAX: usize = 256;
/// Window step in pixels of each pyramid level. 4, the crate's own, finds 3 % fewer faces of 35 pixels.
const STEP: u32 = 2;
/// Sizes searched are this far apart.
const PYRAMID: f32 = 0.8;
/// Larger pictures are halved first: the detector's sums are 32-bit.
const PIXELS_MAX: usize = 4_000_000;
/// Share of a box that must lie within the picture.
const INSIDE_MIN: f32 = 0.6;
/// Two boxes are one face when they share this much of the smaller one.
const SHARED_MAX: f32 = 0.5;

/// The faces of a picture of 1 or 3 channels, the surest first.
///
/// # Errors
/// [`UpscaleError::Face`] when the detector fails.
pub fn find_faces(source: &Pixels) -> Result<Vec<Face>, UpscaleError> {
    let mut plane = Plane::of(source);
    let mut pixel = 1.0;
    while plane.width * plane.height > PIXELS_MAX {
        plane = plane.halved();
        pixel *= 2.0;
    }
    let failed = |reason: String| UpscaleError::Face { reason };
    let model = rustface::read_model(MODEL).map_err(|error| failed(error.to_string()))?;
    let found = catch_unwind(AssertUnwindSafe(|| believed(&model, &plane)));
    let mut faces = found.map_err(|_| failed(format!("the detector panicked on {plane}")))?;
    for face in &mut faces {
        face.left *= pixel;
        face.top *= pixel;
        face.side *= pixel;
    }
    Ok(faces)
}

/// The faces that are found in the picture and again in its mirror image, without boxes in boxes.
fn believed(model: &Model, plane: &Plane) -> Vec<Face> {
    let mut candidates = detect(model, plane, SIDE_MIN, CANDIDATE_MIN);
    candidates.retain(|face| inside(face, plane) >= INSIDE_MIN);
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    candidates.truncate(CANDIDATES_MAX);
    for face in &mut candidates {
        match mirrored_score(model, plane, face) {
            Some(score) => face.score += score,
            None => face.score = 0.0,
        }
    }
    candidates.retain(|face| face.score >= SCORE_MIN);
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    apart(candidates)
}

/// The score of the same face when left and right are exchanged; none where it is not found.
fn mirrored_score(model: &Model, plane: &Plane, face: &Face) -> Option<f32> {
    let room = face.side / 2.0;
    let cut = |start: f32, size: usize| {
        let end = ((start + face.side + room).max(0.0) as usize).min(size);
        ((start - room).max(0.0) as usize).min(end)..end
    };
    let (columns, rows) = (cut(face.left, plane.width), cut(face.top, plane.height));
    let expected = Face {
        left: columns.end as f32 - face.left - face.side,
        top: face.top - rows.start as f32,
        ..*face
    };
    let side_min = ((face.side * 0.6) as u32).max(SIDE_MIN);
    let again = detect(
        model,
        &plane.mirrored(columns, rows),
        side_min,
        MIRRORED_MIN,
    );
    let same = again
        .iter()
        .filter(|other| shared(&expected, other) > SHARED_MAX);
    same.map(|other| other.score).max_by(f32::total_cmp)
}

/// The eight-bit luma that the detector reads.
struct Plane {
    width: usize,
    height: usize,
    luma: Vec<u8>,
}

impl Plane {
    fn of(source: &Pixels) -> Self {
        let level = |value: f32| (value * 255.0 + 0.5) as u8;
        let luma = match source.channels() {
            1 => source.samples().iter().map(|&v| level(v)).collect(),
            _ => {
                let pixels = source.samples().chunks_exact(3);
                // BT.601, as the detector's own training pictures.
                pixels
                    .map(|p| level(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]))
                    .collect()
            }
        };
        Self {
            width: source.width(),
            height: source.height(),
            luma,
        }
    }

    /// A part of the picture, left and right exchanged.
    fn mirrored(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
        let (width, height) = (columns.len(), rows.len());
        let row = |y: usize| &self.luma[y * self.width..][columns.clone()];
        Self {
            width,
            height,
            luma: rows.flat_map(|y| row(y).iter().rev().copied()).collect(),
        }
    }

    /// Means of 2 x 2 pixels; an odd last row or column is left out.
    fn halved(&self) -> Self {
        let (width, height) = (self.width / 2, self.height / 2);
        let at = |x: usize, y: usize| u16::from(self.luma[y * self.width + x]);
        let mean = |x: usize, y: usize| {
            let sum = at(x, y) + at(x + 1, y) + at(x, y + 1) + at(x + 1, y + 1);
            ((sum + 2) / 4) as u8
        };
        let rows = (0..height).flat_map(|y| (0..width).map(move |x| (2 * x, 2 * y)));
        Self {
            width,
            height,
            luma: rows.map(|(x, y)| mean(x, y)).collect(),
        }
    }
}

impl fmt::Display for Plane {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} x {} pixels", self.width, self.height)
    }
}

fn detect(model: &Model, plane: &Plane, side_min: u32, score_min: f64) -> Vec<Face> {
    if plane.width.min(plane.height) < SIDE_MIN as usize {
        return Vec::new();
    }
    let mut detector = rustface::create_detector_with_model(model.clone());
    detector.set_min_face_size(side_min);
    detector.set_score_thresh(score_min);
    detector.set_slide_window_step(STEP, STEP);
    detector.set_pyramid_scale_factor(PYRAMID);
    let (width, height) = (plane.width as u32, plane.height as u32);
    let found = detector.detect(&ImageData::new(&plane.luma, width, height));
    found.iter().map(face).collect()
}

fn face(info: &FaceInfo) -> Face {
    let square = info.bbox();
    Face {
        left: square.x() as f32,
        top: square.y() as f32,
        side: square.width() as f32,
        score: info.score() as f32,
    }
}

/// Share of the box that lies within the picture.
fn inside(face: &Face, plane: &Plane) -> f32 {
    let along = |start: f32, size: usize| (start + face.side).min(size as f32) - start.max(0.0);
    let (width, height) = (along(face.left, plane.width), along(face.top, plane.height));
    width.max(0.0) * height.max(0.0) / (face.side * face.side)
}

/// Leaves out boxes in surer boxes.
fn apart(found: Vec<Face>) -> Vec<Face> {
    let mut kept: Vec<Face> = Vec::new();
    for face in found {
        if kept.iter().all(|other| shared(&face, other) <= SHARED_MAX) {
            kept.push(face);
        }
    }
    kept
}

/// Share of the smaller box that lies in the other one.
fn shared(one: &Face, other: &Face) -> f32 {
    let along = |a: f32, b: f32| (a + one.side).min(b + other.side) - a.max(b);
    let (width, height) = (along(one.left, other.left), along(one.top, other.top));
    let least = one.side.min(other.side);
    width.max(0.0) * height.max(0.0) / (least * least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(left: f32, top: f32, side: f32, score: f32) -> Face {
        Face {
            left,
            top,
            side,
            score,
        }
    }

    fn plane(width: usize, height: usize) -> Plane {
        let luma = (0..width * height).map(|i| (i % 251) as u8).collect();
        Plane {
            width,
            height,
            luma,
        }
    }

    #[test]
    fn boxes_in_boxes_go_and_neighbours_stay() {
        let large = at(10.0, 10.0, 100.0, 9.0);
        let inner = at(40.0, 40.0, 30.0, 6.0);
        let beside = at(100.0, 10.0, 40.0, 5.5);
        assert_eq!(apart(vec![large, inner, beside]), [large, beside]);
    }

    #[test]
    fn a_box_counts_by_the_share_that_lies_in_the_picture() {
        let picture = plane(100, 50);
        assert_eq!(inside(&at(10.0, 10.0, 40.0, 0.0), &picture), 1.0);
        assert_eq!(inside(&at(-10.0, 0.0, 40.0, 0.0), &picture), 0.75);
        assert_eq!(inside(&at(200.0, 0.0, 40.0, 0.0), &picture), 0.0);
    }

    #[test]
    fn halving_and_mirroring_keep_the_right_pixels() {
        let picture = plane(7, 4);
        let half = picture.halved();
        assert_eq!((half.width, half.height), (3, 2));
        // 0, 1 over 7, 8.
        assert_eq!(half.luma[0], 4);
        let part = picture.mirrored(1..4, 2..4);
        assert_eq!((part.width, part.height), (3, 2));
        assert_eq!(part.luma, [17, 16, 15, 24, 23, 22]);
    }

    #[test]
    fn no_face_is_found_where_none_is_and_no_size_breaks_the_detector() {
        let sizes = [
            (1, 1),
            (19, 400),
            (20, 20),
            (23, 61),
            (41, 40),
            (130, 97),
            (2_000, 20),
        ];
        for (width, height) in sizes {
            for channels in [1, 3] {
                let count = width * height * channels;
                let samples = (0..count).map(|i| (i * 7_919 % 1_009) as f32 / 1_009.0);
                let source = Pixels::new(width, height, channels, samples.collect()).unwrap();
                assert_eq!(find_faces(&source), Ok(Vec::new()), "{width} x {height}");
            }
        }
    }
}
