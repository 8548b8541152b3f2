//! Where the faces are. `cascade/` finds boxes; which of them are believed is decided here. Why this detector:
//! docs/decisions/0012-faces.md.

use upscale_core::{Condition, Estimate, Pixels};

use super::cascade::{Cascade, DETECTOR_MODEL, Window};
use super::plane::Plane;
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

/// Least score of a box that is looked at again. Measured, like the next two, on held-out faces and face-free
/// pictures, see the decision.
const CANDIDATE_MIN: f64 = 1.0;
/// Least score in the mirror: what the detector takes for a face by chance, it rarely does both ways.
const MIRRORED_MIN: f64 = 0.3;
/// Least sum of both.
const SCORE_MIN: f32 = 5.0;
/// Boxes looked at again, the surest; a crowd of more keeps its least sure faces as the ordinary network makes them.
const CANDIDATES_MAX: usize = 256;
/// Larger pictures are halved first: a face of 40 pixels is small in them, and looking takes time.
const PIXELS_MAX: usize = 4_000_000;
/// Share of a box that must lie within the picture.
const INSIDE_MIN: f32 = 0.6;
/// Two boxes are one face when they share this much of the smaller one.
const SHARED_MAX: f32 = 0.5;

/// Levels of noise from which on faces are looked for in a smoothed copy as well: the detector was trained on clean pictures.
/// Not in the copy alone, which hides faces of 40 pixels: of 24 under noise of 5 it found 20, the picture itself 22.
const SMOOTHED_NOISE_MIN: f32 = 4.0;
/// Pixels of softness from which on they are looked for in a sharpened copy as well. Of 111 portraits shrunk by 4 and blurred by
/// one pixel it took the faces found from 98 to 106, and in 700 photographs and paintings blurred alike from 80 to 93; the
/// new ones looked at were faces.
const SHARPENED_SOFTNESS_MIN: f32 = 0.5;

/// The faces of a picture of 1 or 3 channels, the surest first.
///
/// # Errors
/// [`UpscaleError::Face`] when the detector's model cannot be read.
pub fn find_faces(source: &Pixels, condition: Condition) -> Result<Vec<Face>, UpscaleError> {
    let mut plane = Plane::of(source);
    let mut pixel = 1.0;
    while plane.width() * plane.height() > PIXELS_MAX {
        plane = plane.halved();
        pixel *= 2.0;
    }
    let cascade = Cascade::read(DETECTOR_MODEL).map_err(|reason| UpscaleError::Face { reason })?;
    let mut faces = believed(&cascade, &plane);
    if let Some(copy) = condition.estimate.and_then(|read| copy(&plane, read)) {
        faces.extend(believed(&cascade, &copy));
        faces.sort_by(|one, other| other.score.total_cmp(&one.score));
        faces = apart(faces);
    }
    for face in &mut faces {
        face.left *= pixel;
        face.top *= pixel;
        face.side *= pixel;
    }
    Ok(faces)
}

/// Where faces are looked for beside the picture itself; none where it reads clean and sharp.
fn copy(plane: &Plane, read: Estimate) -> Option<Plane> {
    let is_noisy = read.noise >= SMOOTHED_NOISE_MIN;
    let is_soft = read.softness >= SHARPENED_SOFTNESS_MIN;
    match (is_noisy, is_soft) {
        (true, _) => Some(plane.smoothed()),
        (false, true) => Some(plane.sharpened()),
        (false, false) => None,
    }
}

/// The faces that are found in the picture and again in its mirror image, without boxes in boxes.
fn believed(cascade: &Cascade, plane: &Plane) -> Vec<Face> {
    let mut candidates = detect(cascade, plane, CANDIDATE_MIN);
    candidates.retain(|face| inside(face, plane) >= INSIDE_MIN);
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    candidates.truncate(CANDIDATES_MAX);
    for face in &mut candidates {
        match mirrored_score(cascade, plane, face) {
            Some(score) => face.score += score,
            None => face.score = 0.0,
        }
    }
    candidates.retain(|face| face.score >= SCORE_MIN);
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    apart(candidates)
}

/// The score of the same face when left and right are exchanged; none where it is not found.
fn mirrored_score(cascade: &Cascade, plane: &Plane, face: &Face) -> Option<f32> {
    let room = face.side / 2.0;
    let cut = |start: f32, size: usize| {
        let end = ((start + face.side + room).max(0.0) as usize).min(size);
        ((start - room).max(0.0) as usize).min(end)..end
    };
    let (columns, rows) = (cut(face.left, plane.width()), cut(face.top, plane.height()));
    let expected = Face {
        left: columns.end as f32 - face.left - face.side,
        top: face.top - rows.start as f32,
        ..*face
    };
    let again = detect(cascade, &plane.mirrored(columns, rows), MIRRORED_MIN);
    let same = again
        .iter()
        .filter(|other| shared(&expected, other) > SHARED_MAX);
    same.map(|other| other.score).max_by(f32::total_cmp)
}

fn detect(cascade: &Cascade, plane: &Plane, score_min: f64) -> Vec<Face> {
    let found = cascade.windows(plane).into_iter();
    let sure = found.filter(|window| window.score >= score_min);
    sure.map(face).collect()
}

fn face(window: Window) -> Face {
    Face {
        left: window.left as f32,
        top: window.top as f32,
        side: window.side as f32,
        score: window.score as f32,
    }
}

/// Share of the box that lies within the picture.
fn inside(face: &Face, plane: &Plane) -> f32 {
    let along = |start: f32, size: usize| (start + face.side).min(size as f32) - start.max(0.0);
    let (width, height) = (
        along(face.left, plane.width()),
        along(face.top, plane.height()),
    );
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
        Plane::new(width, vec![0; width * height]).unwrap()
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
    fn a_noisy_picture_is_smoothed_a_soft_one_sharpened() {
        let picture = Plane::new(4, vec![9, 200, 30, 90, 50, 7, 120, 60]).unwrap();
        let read = |noise, softness| Estimate {
            noise,
            softness,
            ..Estimate::NONE
        };
        for soft in [0.0, 1.5] {
            assert_eq!(copy(&picture, read(4.0, soft)), Some(picture.smoothed()));
        }
        assert_eq!(copy(&picture, read(3.9, 0.5)), Some(picture.sharpened()));
        assert_eq!(copy(&picture, read(3.9, 0.49)), None);
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
                assert_eq!(
                    find_faces(&source, Condition::UNKNOWN),
                    Ok(Vec::new()),
                    "{width} x {height}"
                );
            }
        }
    }
}
