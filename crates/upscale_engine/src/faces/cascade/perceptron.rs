//! The closer look: a multi-layer perceptron on SURF descriptors says whether a window is a face, and where the face is in it.

use super::SIDE;
use super::reader::Reader;
use super::surf::{Gradients, NUMBERS, Patch, patches};
use super::windows::Window;
use crate::faces::plane::Plane;

/// What the last layer says: how sure, how far right, how far down, how much larger; each 0 to 1, and 0.5 for no change.
const ANSWERS: usize = 4;

/// One judge of windows.
#[derive(Debug)]
pub(super) struct Perceptron {
    patches: Vec<Patch>,
    /// Least sureness of a face.
    threshold: f32,
    layers: Vec<Layer>,
}

/// `outputs = weights · inputs + biases`.
#[derive(Debug)]
struct Layer {
    /// For each input its weight in every output: so several outputs are summed up at a time, each in the inputs' order.
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Perceptron {
    pub(super) fn read(file: &mut Reader) -> Result<Self, String> {
        let layers = file.count()?;
        let count = file.count()?;
        let all = patches();
        let patch = |file: &mut Reader| {
            let number = file.count()?;
            let found = number.checked_sub(1).and_then(|index| all.get(index));
            found
                .copied()
                .ok_or_else(|| format!("patch {number} of {}", all.len()))
        };
        let patches: Vec<Patch> = (0..count).map(|_| patch(file)).collect::<Result<_, _>>()?;
        let threshold = file.float()?;
        file.expect("inputs", (count * NUMBERS) as i32)?;
        let mut inputs = count * NUMBERS;
        let mut read = Vec::new();
        for _ in 1..layers {
            let outputs = file.count()?;
            read.push(Layer::read(file, inputs, outputs)?);
            inputs = outputs;
        }
        match inputs == ANSWERS && !read.is_empty() {
            true => Ok(Self {
                patches,
                threshold,
                layers: read,
            }),
            false => Err(format!("{} layers end in {inputs} answers", read.len())),
        }
    }

    /// The windows that are faces, moved to where the face is, in their order.
    pub(super) fn judge(&self, picture: &Plane, windows: Vec<Window>) -> Vec<Window> {
        let judged = windows.into_iter();
        judged
            .filter_map(|window| self.moved(picture, window))
            .collect()
    }

    fn moved(&self, picture: &Plane, window: Window) -> Option<Window> {
        let (right, bottom) = (window.left + window.side, window.top + window.side);
        if right <= 0 || bottom <= 0 || window.side < 2 {
            return None;
        }
        let [sure, across, down, larger] = self.answers(&seen(picture, window));
        (sure > self.threshold).then(|| {
            // The model's authors move a window that sticks out to the edge first, and look at it before that.
            let (left, top) = (window.left.max(0) as f32, window.top.max(0) as f32);
            let side = window.side as f32;
            let next = ((larger * 2.0 - 1.0) * side + side + 0.5).floor();
            let placed = |by: f32, start: f32| {
                ((by * 2.0 - 1.0) * side + start + (side - next) * 0.5 + 0.5).floor() as i32
            };
            Window {
                left: placed(across, left),
                top: placed(down, top),
                side: next as i32,
                score: f64::from(sure),
            }
        })
    }

    fn answers(&self, window: &Plane) -> [f32; ANSWERS] {
        let gradients = Gradients::of(window);
        let described = self.patches.iter();
        let mut values: Vec<f32> = described
            .flat_map(|&patch| gradients.descriptor(patch))
            .collect();
        let (last, hidden) = self
            .layers
            .split_last()
            .map_or((None, &[][..]), |(last, hidden)| (Some(last), hidden));
        for layer in hidden {
            values = layer.of(&values);
            values.iter_mut().for_each(|value| *value = value.max(0.0));
        }
        let mut answers = [0.0; ANSWERS];
        for (answer, value) in answers
            .iter_mut()
            .zip(last.map_or(Vec::new(), |last| last.of(&values)))
        {
            *answer = 1.0 / (1.0 + (-value).exp());
        }
        answers
    }
}

/// The window's pixels at the size that the model knows.
fn seen(picture: &Plane, window: Window) -> Plane {
    let side = window.side.max(0) as usize;
    let square = picture.square(window.left.into(), window.top.into(), side);
    square.resized(SIDE, SIDE)
}

impl Layer {
    fn read(file: &mut Reader, inputs: usize, outputs: usize) -> Result<Self, String> {
        let by_output = file.floats(inputs * outputs)?;
        let biases = file.floats(outputs)?;
        let by_input = (0..inputs).flat_map(|input| by_output.iter().skip(input).step_by(inputs));
        Ok(Self {
            weights: by_input.copied().collect(),
            biases,
        })
    }

    fn of(&self, inputs: &[f32]) -> Vec<f32> {
        let mut sums = vec![0.0; self.biases.len()];
        let rows = self.weights.chunks_exact(self.biases.len().max(1));
        for (input, weights) in inputs.iter().zip(rows) {
            let weighed = sums.iter_mut().zip(weights);
            weighed.for_each(|(sum, weight)| *sum += input * weight);
        }
        let biased = sums.iter_mut().zip(&self.biases);
        biased.for_each(|(sum, bias)| *sum += bias);
        sums
    }
}
