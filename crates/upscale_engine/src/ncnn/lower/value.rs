//! What a node of a graph results in, before any layer is made for it: numbers that are folded into a later layer's.

use super::Node;
use crate::error::ModelError;
use crate::network::Map;

/// The result of a node.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// `(picture - mean) * times`
    Picture {
        mean: [f32; 3],
        times: [f32; 3],
    },
    Constant(Vec<f32>),
    /// Squares of source pixels.
    Squares,
    /// The picture, every pixel of it repeated.
    Repeated(usize),
    Maps(Maps),
    /// A map whose channels are squares of pixels.
    Shuffled(Map, usize),
    /// The same onto a base: nothing can follow.
    Finished(Map, usize),
}

/// Maps side by side.
#[derive(Debug, Clone)]
pub(super) struct Maps {
    pub(super) maps: Vec<Map>,
    pub(super) times: f32,
    /// Read as if every pixel were two wide and two high.
    pub(super) is_repeated: bool,
    /// No one else reads it: its layer may do more.
    pub(super) is_open: bool,
}

impl Maps {
    pub(super) fn open(map: Map) -> Self {
        Self {
            maps: vec![map],
            times: 1.0,
            is_repeated: false,
            is_open: true,
        }
    }
}

pub(super) fn line(node: &Node, value: Value, times: f32, plus: f32) -> Result<Value, ModelError> {
    match value {
        Value::Picture { mean, times: by } => shift(node, (mean, by), [plus; 3], times),
        Value::Maps(maps) if plus == 0.0 => Ok(Value::Maps(Maps {
            times: maps.times * times,
            ..maps
        })),
        _ => Err(node.refuse("adds a number to what is not the picture")),
    }
}

pub(super) fn multiply(node: &Node, a: Value, b: Value) -> Result<Value, ModelError> {
    match (a, b) {
        (Value::Picture { mean, times }, Value::Constant(numbers))
        | (Value::Constant(numbers), Value::Picture { mean, times }) => {
            let Some(numbers) = per_colour(&numbers) else {
                return Err(node.refuse("multiplies with other than one number for each colour"));
            };
            let times = [0, 1, 2].map(|c| times[c] * numbers[c]);
            Ok(Value::Picture { mean, times })
        }
        _ => Err(node.refuse("multiplies two maps; only SiLU and SPAN's gate are supported")),
    }
}

pub(super) fn per_colour(numbers: &[f32]) -> Option<[f32; 3]> {
    match *numbers {
        [one] => Some([one; 3]),
        [r, g, b] => Some([r, g, b]),
        _ => None,
    }
}

/// `((picture - mean) * by) * times + plus`
pub(super) fn shift(
    node: &Node,
    (mean, by): ([f32; 3], [f32; 3]),
    plus: [f32; 3],
    times: f32,
) -> Result<Value, ModelError> {
    let by = by.map(|by| by * times);
    if plus != [0.0; 3] && by.contains(&0.0) {
        return Err(node.refuse("adds a number to a picture times 0"));
    }
    let mean = [0, 1, 2].map(|c| match plus[c] {
        0.0 => mean[c],
        plus => mean[c] - plus / by[c],
    });
    Ok(Value::Picture { mean, times: by })
}

pub(super) fn repeat(node: &Node, value: Value, side: usize) -> Result<Value, ModelError> {
    match (value, side) {
        (value, 1) => Ok(value),
        (Value::Picture { mean, times }, _) if mean == [0.0; 3] && times == [1.0; 3] => {
            Ok(Value::Repeated(side))
        }
        (Value::Maps(maps), 2) if !maps.is_repeated => Ok(Value::Maps(Maps {
            is_repeated: true,
            is_open: false,
            ..maps
        })),
        _ => Err(node.refuse(&format!("enlarges {side} times what is no map of a layer"))),
    }
}
