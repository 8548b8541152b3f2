//! What the layers of an ncnn model do to each other's results: a list of nodes in the order of the file, each with its
//! numbers. What only hands on is gone, and what several layers do together has the name that our own layers have for it.

use super::numbers::Numbers;
use super::text::{Line, Text};
use crate::architecture::CHANNELS_MAX;
use crate::error::{ModelError, refuse};

/// A node: index into [`Graph::nodes`].
pub(super) type NodeId = usize;

/// Channels that a convolution reads; ESRGAN's dense blocks have up to 192.
const READ_MAX: usize = 2_048;
/// Convolutions; ESRGAN with 23 blocks has 351.
const CONVS_MAX: usize = 2_048;
/// "As much as the kernel needs on every side", in two spellings.
const SAME: [i64; 2] = [-233, -234];

/// Every layer of a model that does something, and which of them makes the picture.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) output: NodeId,
}

pub(super) struct Node {
    /// Type and name, for messages.
    pub(super) name: String,
    pub(super) does: Does,
    pub(super) inputs: Vec<NodeId>,
    /// How many other nodes read it.
    pub(super) uses: usize,
}

/// Element-wise functions of one map.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Function {
    Relu,
    Leaky(f32),
    Prelu(Vec<f32>),
    Silu,
}

#[derive(Debug)]
pub(super) enum Does {
    /// The source picture, RGB within 0..1.
    Picture,
    /// The same numbers everywhere: one, or one for each channel.
    Constant(Vec<f32>),
    Conv {
        weights: Vec<f32>,
        bias: Vec<f32>,
        side: usize,
        then: Option<Function>,
    },
    Apply(Function),
    Sigmoid,
    Concat,
    /// Times and plus one number.
    Line {
        times: f32,
        plus: f32,
    },
    /// The sum of two, each times its number.
    Add([f32; 2]),
    Multiply,
    /// SPAN's `(v + h) * (sigmoid(v) - 0.5)` of `v` and `h`.
    Gate,
    /// Every pixel becomes a square of so many.
    Repeat(usize),
    Shuffle(usize),
    Unshuffle(usize),
    /// To 0..1.
    Clip,
}

impl Graph {
    pub(super) fn read(text: &Text<'_>, numbers: &mut Numbers<'_>) -> Result<Self, ModelError> {
        let mut nodes: Vec<Node> = Vec::new();
        // Which node makes a blob, and whether anyone reads it.
        let mut makers: Vec<NodeId> = vec![0; text.blobs];
        let mut is_read = vec![false; text.blobs];
        let mut convs = 0;
        for line in &text.lines {
            for &blob in &line.reads {
                is_read[blob] = true;
            }
            let inputs: Vec<NodeId> = line.reads.iter().map(|&blob| makers[blob]).collect();
            if let Some(maker) = handed_on(line, &inputs)? {
                line.writes.iter().for_each(|&blob| makers[blob] = maker);
                continue;
            }
            let does = does(line, numbers)?;
            convs += usize::from(matches!(does, Does::Conv { .. }));
            if convs > CONVS_MAX {
                return Err(refuse(format!("more than {CONVS_MAX} convolutions")));
            }
            makers[line.writes[0]] = nodes.len();
            nodes.push(Node {
                name: line.shown(),
                does,
                inputs,
                uses: 0,
            });
        }
        let ends: Vec<usize> = (0..text.blobs).filter(|&blob| !is_read[blob]).collect();
        let &[end] = &ends[..] else {
            let count = ends.len();
            return Err(refuse(format!(
                "{count} results that no layer reads; a picture is one"
            )));
        };
        let mut graph = Self {
            output: makers[end],
            nodes,
        };
        graph.count_uses();
        graph.join_what_belongs_together();
        graph.count_uses();
        Ok(graph)
    }

    /// What does not lead to the picture has no use.
    fn count_uses(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.uses = 0);
        self.nodes[self.output].uses = 1;
        for id in (0..self.nodes.len()).rev() {
            if self.nodes[id].uses == 0 {
                continue;
            }
            for input in self.nodes[id].inputs.clone() {
                self.nodes[input].uses += 1;
            }
        }
    }

    /// `v * sigmoid(v)`, and SPAN's gate.
    fn join_what_belongs_together(&mut self) {
        for id in 0..self.nodes.len() {
            let (&Does::Multiply, &[a, b]) = (&self.nodes[id].does, &self.nodes[id].inputs[..])
            else {
                continue;
            };
            let found = self.silu(a, b).or_else(|| self.silu(b, a));
            let found = found
                .or_else(|| self.gate(a, b))
                .or_else(|| self.gate(b, a));
            if let Some((does, inputs)) = found {
                let node = &mut self.nodes[id];
                (node.does, node.inputs) = (does, inputs);
            }
        }
    }

    fn silu(&self, value: NodeId, sigmoid: NodeId) -> Option<(Does, Vec<NodeId>)> {
        let is_silu = self.is_sigmoid_of(sigmoid, value);
        is_silu.then(|| (Does::Apply(Function::Silu), vec![value]))
    }

    fn gate(&self, sum: NodeId, gate: NodeId) -> Option<(Does, Vec<NodeId>)> {
        let (
            Does::Line {
                times: 1.0,
                plus: -0.5,
            },
            &[sigmoid],
        ) = self.only(gate)?
        else {
            return None;
        };
        let (Does::Add([1.0, 1.0]), &[a, b]) = self.only(sum)? else {
            return None;
        };
        let pairs = [(a, b), (b, a)];
        let mut pairs = pairs.into_iter();
        let (v, h) = pairs.find(|&(v, _)| self.is_sigmoid_of(sigmoid, v))?;
        Some((Does::Gate, vec![v, h]))
    }

    fn is_sigmoid_of(&self, sigmoid: NodeId, value: NodeId) -> bool {
        matches!(self.only(sigmoid), Some((Does::Sigmoid, &[of])) if of == value)
    }

    /// What a node does and reads, if no more than one other reads it.
    fn only(&self, id: NodeId) -> Option<(&Does, &[NodeId])> {
        let node = &self.nodes[id];
        (node.uses == 1).then_some((&node.does, &node.inputs[..]))
    }
}

/// The node whose result a layer passes on as it is; none where it makes something of it.
fn handed_on(line: &Line<'_>, inputs: &[NodeId]) -> Result<Option<NodeId>, ModelError> {
    let (read, written): (usize, usize) = match line.kind {
        "Split" => (1, line.writes.len().max(1)),
        "Input" | "MemoryData" => (0, 1),
        "Concat" => (line.reads.len().max(1), 1),
        "Eltwise" => (2, 1),
        "BinaryOp" => (line.reads.len().clamp(1, 2), 1),
        _ => (1, 1),
    };
    if (line.reads.len(), line.writes.len()) != (read, written) {
        let (reads, writes) = (line.reads.len(), line.writes.len());
        return Err(refuse(format!(
            "{} reads {reads} blobs and writes {writes}; {read} and {written} are supported",
            line.shown()
        )));
    }
    let passes = matches!(line.kind, "Split" | "Noop" | "Dropout");
    Ok(passes.then(|| inputs[0]))
}

fn does(line: &Line<'_>, numbers: &mut Numbers<'_>) -> Result<Does, ModelError> {
    match line.kind {
        "Input" => line.check_known(&[0, 1, 2, 11]).map(|()| Does::Picture),
        "MemoryData" => constant(line, numbers),
        "Convolution" => conv(line, numbers),
        "ReLU" => {
            line.check_known(&[0])?;
            Ok(Does::Apply(relu(line.number(0, 0.0)?)))
        }
        "PReLU" => {
            line.check_known(&[0])?;
            let count = channels(line, 0)?;
            let slopes = numbers.plain(&line.shown(), count)?;
            Ok(Does::Apply(Function::Prelu(slopes)))
        }
        "Swish" => line.check_known(&[]).map(|()| Does::Apply(Function::Silu)),
        "Sigmoid" => line.check_known(&[]).map(|()| Does::Sigmoid),
        "Concat" => {
            line.check_known(&[0])?;
            line.check_is(0, 0).map(|()| Does::Concat)
        }
        "BinaryOp" => binary(line),
        "Eltwise" => eltwise(line),
        "Interp" => interp(line),
        "PixelShuffle" => {
            line.check_known(&[0, 1])?;
            line.check_is(1, 0)?;
            square(line, 0).map(Does::Shuffle)
        }
        "Reorg" => {
            line.check_known(&[0, 1])?;
            line.check_is(1, 0)?;
            square(line, 0).map(Does::Unshuffle)
        }
        "Clip" => {
            line.check_known(&[0, 1])?;
            match (line.number(0, f64::MIN)?, line.number(1, f64::MAX)?) {
                (0.0, 1.0) => Ok(Does::Clip),
                (low, high) => Err(line.wrong(0, &format!("{low}, and to {high}; only 0 and 1"))),
            }
        }
        _ => Err(refuse(format!(
            "the layer {} is of a type that is not supported; {SUPPORTED}",
            line.shown()
        ))),
    }
}

/// What is told of any other.
const SUPPORTED: &str = "supported are Input, Split, Noop, Dropout, MemoryData, Convolution, ReLU, PReLU, Swish, \
    Sigmoid, Concat, BinaryOp, Eltwise, Interp, PixelShuffle, Reorg and Clip: ESRGAN, Compact and SPAN";

fn relu(slope: f64) -> Function {
    if slope == 0.0 {
        Function::Relu
    } else {
        Function::Leaky(slope as f32)
    }
}

/// A number of channels.
fn channels(line: &Line<'_>, id: i64) -> Result<usize, ModelError> {
    let count = line.whole(id, 0)?;
    match usize::try_from(count) {
        Ok(count) if (1..=CHANNELS_MAX).contains(&count) => Ok(count),
        _ => Err(line.wrong(
            id,
            &format!("{count}, from 1 to {CHANNELS_MAX} are supported"),
        )),
    }
}

/// Side of a square of pixels.
fn square(line: &Line<'_>, id: i64) -> Result<usize, ModelError> {
    let side = line.whole(id, 1)?;
    match side {
        1..=16 => Ok(side as usize),
        _ => Err(line.wrong(id, &format!("{side}, from 1 to 16 are supported"))),
    }
}

/// The mean of SPAN's pictures: a row of numbers, or pixels of one.
fn constant(line: &Line<'_>, numbers: &mut Numbers<'_>) -> Result<Does, ModelError> {
    line.check_known(&[0, 1, 2, 11, 21])?;
    let sides = [0, 1, 2, 11].map(|id| line.whole(id, 0));
    let sides = sides.into_iter().collect::<Result<Vec<_>, _>>()?;
    let count: i64 = sides.iter().map(|&side| side.max(1)).product();
    if !(1..=3).contains(&count) {
        return Err(refuse(format!(
            "{} holds {count} numbers, from 1 to 3 are supported",
            line.shown()
        )));
    }
    let (name, count) = (line.shown(), count as usize);
    match line.whole(21, 1)? {
        1 => numbers.plain(&name, count),
        0 => numbers.tagged(&name, count),
        other => Err(line.wrong(21, &format!("{other}, only 0 and 1 are supported"))),
    }
    .map(Does::Constant)
}

fn conv(line: &Line<'_>, numbers: &mut Numbers<'_>) -> Result<Does, ModelError> {
    line.check_known(&[
        0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19,
    ])?;
    let out = channels(line, 0)?;
    let side = line.whole(1, 0)?;
    if ![1, 3].contains(&side) {
        return Err(line.wrong(1, &format!("{side}, kernels of 1 and 3 are supported")));
    }
    for (id, wanted) in [
        (11, side),
        (2, 1),
        (12, 1),
        (3, 1),
        (13, 1),
        (8, 0),
        (18, 0),
        (19, 0),
    ] {
        line.check_is(id, wanted)?;
    }
    let pad = line.whole(4, 0)?;
    for id in [4, 14, 15, 16] {
        let given = line.whole(id, pad)?;
        if given != side / 2 && !SAME.contains(&given) {
            return Err(line.wrong(id, &format!("{given}, {} is needed", side / 2)));
        }
    }
    let (side, count) = (side as usize, line.whole(6, 0)?);
    let row = out * side * side;
    let read = usize::try_from(count).map_or(0, |count| count / row);
    if read == 0 || read > READ_MAX || (read * row) as i64 != count {
        return Err(line.wrong(
            6,
            &format!("{count}, not {row} times 1 to {READ_MAX} channels"),
        ));
    }
    let name = line.shown();
    let weights = numbers.tagged(&name, read * row)?;
    let bias = match line.whole(5, 0)? {
        0 => vec![0.0; out],
        _ => numbers.plain(&name, out)?,
    };
    Ok(Does::Conv {
        weights,
        bias,
        side,
        then: fused(line)?,
    })
}

/// The function that an optimizer put into a convolution.
fn fused(line: &Line<'_>) -> Result<Option<Function>, ModelError> {
    match (line.whole(9, 0)?, line.list(10)) {
        (0, _) => Ok(None),
        (1, _) => Ok(Some(Function::Relu)),
        (2, &[slope]) => Ok(Some(relu(slope))),
        (kind, list) => {
            let count = list.len();
            let message =
                format!("{kind} of {count} numbers: none, ReLU and leaky ReLU are supported");
            Err(line.wrong(9, &message))
        }
    }
}

fn binary(line: &Line<'_>) -> Result<Does, ModelError> {
    line.check_known(&[0, 1, 2])?;
    let kind = line.whole(0, 0)?;
    let has_number = line.whole(1, 0)? != 0;
    if has_number == (line.reads.len() == 2) {
        let reads = line.reads.len();
        return Err(line.wrong(
            1,
            &format!("{}, and {reads} blobs are read", i32::from(has_number)),
        ));
    }
    let number = line.number(2, 0.0)? as f32;
    let with = |times, plus| Ok(Does::Line { times, plus });
    match (kind, has_number) {
        (0, true) => with(1.0, number),
        (1, true) => with(1.0, -number),
        (2, true) => with(number, 0.0),
        (3, true) if number != 0.0 => with(1.0 / number, 0.0),
        (0, false) => Ok(Does::Add([1.0, 1.0])),
        (1, false) => Ok(Does::Add([1.0, -1.0])),
        (2, false) => Ok(Does::Multiply),
        _ => Err(line.wrong(
            0,
            &format!("{kind}; add, subtract and multiply are supported, and divide by a number"),
        )),
    }
}

fn eltwise(line: &Line<'_>) -> Result<Does, ModelError> {
    line.check_known(&[0, 1])?;
    match (line.whole(0, 0)?, line.list(1)) {
        (0, []) => Ok(Does::Multiply),
        (1, []) => Ok(Does::Add([1.0, 1.0])),
        (1, &[a, b]) => Ok(Does::Add([a as f32, b as f32])),
        (kind, list) => {
            let count = list.len();
            let message =
                format!("{kind} with {count} numbers: product, and sum with 0 or 2, are supported");
            Err(line.wrong(0, &message))
        }
    }
}

fn interp(line: &Line<'_>) -> Result<Does, ModelError> {
    line.check_known(&[0, 1, 2, 3, 4, 5, 6])?;
    for id in [3, 4, 5, 6] {
        line.check_is(id, 0)?;
    }
    let sides = (line.number(1, 1.0)?, line.number(2, 1.0)?);
    match (line.whole(0, 0)?, sides) {
        (1, (high, wide)) if high == wide && [1.0, 2.0, 4.0].contains(&high) => {
            Ok(Does::Repeat(high as usize))
        }
        (kind, (high, wide)) => {
            let name = match kind {
                1 => "nearest",
                2 => "bilinear",
                3 => "bicubic",
                _ => "of another kind",
            };
            let message = format!("{name} by {high} and {wide}: nearest by 2 and 4 is supported");
            Err(refuse(format!("{} resizes {message}", line.shown())))
        }
    }
}
