//! The face detector: SeetaFace's funnel-structured cascade (Wu et al.: "Funnel-structured cascade for
//! multi-view face detection with alignment awareness", Neurocomputing 221, 2017) as its published frontal model has it.
//! Three boosted views look at every window of a pyramid (`boosted.rs`); three perceptrons judge in turn what these let
//! through, and move the box (`perceptron.rs`). Box by box it finds what the crate `rustface` finds; a test compares them.

mod boosted;
mod perceptron;
mod reader;
mod surf;
mod windows;

use boosted::{Patterns, View};
use perceptron::Perceptron;
use reader::Reader;
use windows::merged;

pub use windows::Window;

use super::plane::Plane;

/// The published frontal model, copied here by the build script.
pub const DETECTOR_MODEL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/face_detector.bin"));
/// Side of the window that the model was trained on, in pixels.
const SIDE: usize = 40;
/// Step of the window in pixels of each level. The 4 of the authors finds 3 % fewer faces of 35 pixels.
const STEP: usize = 2;
/// Each level's size, as a share of the one before.
const PYRAMID: f32 = 0.8;
/// Windows of the first two rounds are one when they share this much of what both cover.
const SAME: f32 = 0.8;
/// And those of the last round.
const SAME_AT_LAST: f32 = 0.3;

/// The detector's model, ready to look.
#[derive(Debug)]
pub struct Cascade {
    views: [View; 3],
    perceptrons: [Perceptron; 3],
}

impl Cascade {
    /// Reads a model file: little-endian 32-bit numbers, level by level.
    ///
    /// # Errors
    /// A file of another shape, or one cut off, is refused in words.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let mut file = Reader::of(file);
        file.expect("levels", 3)?;
        file.expect("views", 3)?;
        let views = [view(&mut file)?, view(&mut file)?, view(&mut file)?];
        file.expect("branches", 1)?;
        file.expect("stages", 2)?;
        let (first, second) = (perceptron(&mut file)?, perceptron(&mut file)?);
        file.expect_list("views", &[0, 1, 2])?;
        file.expect("branches", 1)?;
        file.expect("stages", 1)?;
        let last = perceptron(&mut file)?;
        file.expect_list("branches", &[0])?;
        file.end()?;
        Ok(Self {
            views,
            perceptrons: [first, second, last],
        })
    }

    /// The windows of `picture` that pass the whole cascade. A window's score is the sum of all that fell onto it. What is
    /// smaller than 40 pixels is not seen.
    #[must_use]
    pub fn windows(&self, picture: &Plane) -> Vec<Window> {
        let [first, second, last] = &self.perceptrons;
        let proposed = self.proposed(picture).into_iter();
        let windows: Vec<Window> = proposed.flat_map(|found| merged(found, SAME)).collect();
        let windows = merged(first.judge(picture, windows), SAME);
        let windows = last.judge(picture, second.judge(picture, windows));
        merged(windows, SAME_AT_LAST)
    }

    /// What each view takes for a face, at every size.
    fn proposed(&self, picture: &Plane) -> [Vec<Window>; 3] {
        let mut proposed = [Vec::new(), Vec::new(), Vec::new()];
        let smallest = SIDE as f32 / picture.width().min(picture.height()) as f32;
        let mut scale = 1.0_f32;
        while scale >= smallest {
            let size = |length: usize| (length as f32 * scale) as usize;
            let level = picture.resized(size(picture.width()), size(picture.height()));
            self.scan(&level, scale, &mut proposed);
            scale *= PYRAMID;
        }
        proposed
    }

    fn scan(&self, level: &Plane, scale: f32, proposed: &mut [Vec<Window>; 3]) {
        let (Some(right), Some(bottom)) = (
            level.width().checked_sub(SIDE),
            level.height().checked_sub(SIDE),
        ) else {
            return;
        };
        let patterns = Patterns::of(level);
        let in_picture = |length: usize| (length as f32 / scale + 0.5) as i32;
        for y in (0..=bottom).step_by(STEP) {
            for x in (0..=right).step_by(STEP) {
                let corner = patterns.at(x, y);
                let scores = self.views.each_ref().map(|view| view.score(corner));
                if scores.iter().all(Option::is_none) || !boosted::is_lively(level, x, y) {
                    continue;
                }
                for (score, found) in scores.iter().zip(proposed.iter_mut()) {
                    found.extend(score.map(|score| Window {
                        left: in_picture(x),
                        top: in_picture(y),
                        side: in_picture(SIDE),
                        score: f64::from(score),
                    }));
                }
            }
        }
    }
}

/// One view, which is one stage without a source.
fn view(file: &mut Reader) -> Result<View, String> {
    file.expect("stages", 1)?;
    file.expect("kind of stage", 0)?;
    let view = View::read(file)?;
    // -1 for none.
    file.expect("sources of a view", -1)?;
    Ok(view)
}

fn perceptron(file: &mut Reader) -> Result<Perceptron, String> {
    file.expect("kind of stage", 1)?;
    Perceptron::read(file)
}

#[cfg(test)]
mod tests;
