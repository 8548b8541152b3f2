//! Reads a network from a weight file of our own format (`upscale-1`): safetensors, tensors F16 or F32 in OIHW
//! order, the network's shape in the metadata. A file is hostile until proven otherwise: sizes are bounded before
//! anything is parsed, every tensor must have exactly the shape that the metadata demands, every value be finite.

use std::collections::HashMap;

use half::{f16, slice::HalfFloatSliceExt};
use safetensors::tensor::{Dtype, SafeTensors};

use crate::conditioning::{Conditioning, Inputs};
use crate::error::ModelError;
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

/// X, the largest of our own, is 5 MB in F32; ten times that is no one's honest file.
const FILE_BYTES_MAX: usize = 64 << 20;
/// 202 tensors at 64 blocks need 20 KB.
const HEADER_BYTES_MAX: u64 = 256 << 10;
const CHANNELS_MAX: usize = 256;
const BLOCKS_MAX: usize = 64;
/// A weight beyond this overflows within a few layers.
const WEIGHT_MAX: f32 = 1e6;
/// Half-precision numbers that are converted at once, in a kilobyte of the stack.
const HALVES: usize = 512;

/// Weights and bias.
type Weights = (Vec<f32>, Vec<f32>);

impl Network {
    /// Reads a weight file that is wholly in memory.
    ///
    /// # Errors
    /// [`ModelError`] with the rule that the file breaks. Memory stays below a small multiple of the file's size.
    pub fn read(file: &[u8]) -> Result<Self, ModelError> {
        check_size(file)?;
        let (_, header) = SafeTensors::read_metadata(file).map_err(|e| refuse(e.to_string()))?;
        let tensors = SafeTensors::deserialize(file).map_err(|e| refuse(e.to_string()))?;
        let none = HashMap::new();
        let shape = Shape::parse(header.metadata().as_ref().unwrap_or(&none))?;
        let wanted = shape.tensor_count();
        if tensors.len() != wanted {
            let given = tensors.len();
            return Err(refuse(format!("{given} tensors, this shape has {wanted}")));
        }
        let reader = Reader { tensors, shape };
        match reader.shape.family {
            Family::Compact => reader.compact(),
            _ => reader.four_taps(),
        }
    }
}

fn refuse(reason: String) -> ModelError {
    ModelError(reason)
}

fn check_size(file: &[u8]) -> Result<(), ModelError> {
    if file.len() > FILE_BYTES_MAX {
        let size = file.len();
        return Err(refuse(format!("{size} bytes, at most {FILE_BYTES_MAX}")));
    }
    let Some(length) = file.first_chunk::<8>() else {
        return Err(refuse(format!("{} bytes hold no header", file.len())));
    };
    let header = u64::from_le_bytes(*length);
    if header > HEADER_BYTES_MAX {
        return Err(refuse(format!(
            "a header of {header} bytes, at most {HEADER_BYTES_MAX}"
        )));
    }
    Ok(())
}

/// What the layers are and how they are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Residual blocks and four taps.
    Residual,
    /// The same with SPAN's gate.
    Span,
    /// A chain with PReLU.
    Compact,
}

/// The metadata, parsed.
struct Shape {
    name: String,
    family: Family,
    activation: Activation,
    channels: usize,
    blocks: usize,
    scale: usize,
    input_scale: f32,
    condition: Option<Inputs>,
}

impl Shape {
    fn parse(fields: &HashMap<String, String>) -> Result<Self, ModelError> {
        one_of(fields, "format", &["upscale-1"])?;
        let families = [Family::Residual, Family::Span, Family::Compact];
        let family = families[one_of(fields, "arch", &["residual", "span", "compact"])?];
        let activation = match family {
            // The slopes stand in the tensors.
            Family::Compact => {
                one_of(fields, "activation", &["prelu"]).map(|_| Activation::None)?
            }
            _ => [Activation::Relu, Activation::Silu]
                [one_of(fields, "activation", &["relu", "silu"])?]
            .clone(),
        };
        let input_scale = [1.0, 255.0][one_of(fields, "input_scale", &["1", "255"])?];
        let mut condition = None;
        if fields.contains_key("condition") {
            condition = Some(Inputs::ALL[one_of(fields, "condition", &Inputs::NAMES)?]);
            // A chain has no blocks, and it is the blocks that a condition sets.
            one_of(fields, "arch", &["residual", "span"])?;
        }
        Ok(Self {
            name: field(fields, "name")?.chars().take(64).collect(),
            family,
            activation,
            channels: number(fields, "channels", CHANNELS_MAX)?,
            blocks: number(fields, "blocks", BLOCKS_MAX)?,
            scale: [2, 4][one_of(fields, "scale", &["2", "4"])?],
            input_scale,
            condition,
        })
    }

    /// Tensors that a file of this shape has.
    fn tensor_count(&self) -> usize {
        let convolutions = match self.family {
            Family::Compact => 3 * (self.blocks + 1) + 2,
            _ => 2 * (4 + 3 * self.blocks),
        };
        convolutions + if self.condition.is_some() { 4 } else { 0 }
    }
}

fn field<'a>(fields: &'a HashMap<String, String>, name: &str) -> Result<&'a str, ModelError> {
    match fields.get(name) {
        Some(value) => Ok(value),
        None => Err(refuse(format!("the metadata lack {name:?}"))),
    }
}

/// The index of the field's value among those allowed.
fn one_of(
    fields: &HashMap<String, String>,
    name: &str,
    allowed: &[&str],
) -> Result<usize, ModelError> {
    let value = field(fields, name)?;
    let found = allowed.iter().position(|&one| one == value);
    found.ok_or_else(|| {
        let shown: String = value.chars().take(40).collect();
        refuse(format!("{name} is {shown:?}, known are {allowed:?}"))
    })
}

fn number(fields: &HashMap<String, String>, name: &str, most: usize) -> Result<usize, ModelError> {
    let parsed = field(fields, name)?.parse::<usize>();
    match parsed {
        Ok(value) if (1..=most).contains(&value) => Ok(value),
        _ => Err(refuse(format!("{name} must be a number from 1 to {most}"))),
    }
}

struct Reader<'a> {
    tensors: SafeTensors<'a>,
    shape: Shape,
}

impl Reader<'_> {
    /// SRVGGNetCompact: a chain of convolutions onto the repeated source.
    fn compact(&self) -> Result<Network, ModelError> {
        let Shape {
            channels: c, scale, ..
        } = self.shape;
        let mut network = Network::empty(&self.shape.name, scale, Base::Nearest);
        let names = (0..self.shape.blocks).map(|i| format!("body.{i}"));
        let mut map = PICTURE;
        for name in std::iter::once("head".to_owned()).chain(names) {
            let conv = self.conv(&name, c, network.maps[map], 3)?;
            let slopes = self.tensor(&format!("{name}.slope"), &[c])?;
            map = network.push(&[map], conv, Activation::Prelu(slopes), &[]);
        }
        let up = self.conv("up", 3 * scale * scale, c, 3)?;
        network.push(&[map], up, Activation::None, &[]);
        Ok(network)
    }

    /// The taps of `fuse` are the head, the tail, the first block, the last block's first activation.
    fn four_taps(&self) -> Result<Network, ModelError> {
        let Shape {
            channels: c,
            scale,
            input_scale,
            ..
        } = self.shape;
        let mut network = Network::empty(&self.shape.name, scale, Base::Bicubic);
        let mut head = self.conv("head", c, 3, 3)?;
        // The network is fed `input_scale * x` and its output is divided by it: both fold into the weights.
        head.0.iter_mut().for_each(|w| *w *= input_scale);
        let f0 = network.push(&[PICTURE], head, Activation::None, &[]);
        let (mut h, mut first, mut o1) = (f0, f0, f0);
        let first_conditioned = network.layers.len();
        for block in 0..self.shape.blocks {
            (h, o1) = self.block(&mut network, block, h)?;
            if block == 0 {
                first = h;
            }
        }
        let conditioned = first_conditioned..network.layers.len();
        let tail = self.conv("tail", c, c, 3)?;
        let g = network.push(&[h], tail, Activation::None, &[]);
        let fuse = self.conv("fuse", c, 4 * c, 1)?;
        let fused = network.push(&[f0, g, first, o1], fuse, Activation::None, &[]);
        let (mut weights, mut bias) = self.conv("up", 3 * scale * scale, c, 3)?;
        let values = weights.iter_mut().chain(&mut bias);
        values.for_each(|w| *w /= input_scale);
        network.push(&[fused], (weights, bias), Activation::None, &[]);
        if let Some(inputs) = self.shape.condition {
            let outputs = 2 * c * conditioned.len();
            network.conditioning = Some(Conditioning {
                layers: conditioned,
                inputs,
                hidden: self.dense("cond.0", inputs.hidden(), inputs.count())?,
                output: self.dense("cond.2", outputs, inputs.hidden())?,
            });
        }
        Ok(network)
    }

    /// A fully connected layer of the condition's own small network.
    fn dense(&self, name: &str, out: usize, read: usize) -> Result<Weights, ModelError> {
        let weights = self.tensor(&format!("{name}.weight"), &[out, read])?;
        Ok((weights, self.tensor(&format!("{name}.bias"), &[out])?))
    }

    /// One block; gives its output and its first activation.
    fn block(&self, network: &mut Network, block: usize, h: Map) -> Result<(Map, Map), ModelError> {
        let c = self.shape.channels;
        let conv = |part: usize| self.conv(&format!("blocks.{block}.conv{part}"), c, c, 3);
        let o1 = network.push(&[h], conv(1)?, self.shape.activation.clone(), &[]);
        let o2 = network.push(&[o1], conv(2)?, self.shape.activation.clone(), &[]);
        let join = if self.shape.family == Family::Span {
            Combine::Gate { map: h }
        } else {
            Combine::Add { map: h, scale: 1.0 }
        };
        Ok((network.push(&[o2], conv(3)?, Activation::None, &[join]), o1))
    }

    fn conv(
        &self,
        name: &str,
        out: usize,
        read: usize,
        side: usize,
    ) -> Result<Weights, ModelError> {
        let weights = self.tensor(&format!("{name}.weight"), &[out, read, side, side])?;
        let bias = self.tensor(&format!("{name}.bias"), &[out])?;
        Ok((weights, bias))
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let Ok(tensor) = self.tensors.tensor(name) else {
            return Err(refuse(format!("the tensor {name} is missing")));
        };
        if tensor.shape() != shape {
            let given = tensor.shape();
            return Err(refuse(format!("{name} has shape {given:?}, not {shape:?}")));
        }
        let values: Vec<f32> = match tensor.dtype() {
            Dtype::F32 => tensor.data().chunks_exact(4).map(f32_of).collect(),
            Dtype::F16 => halves(tensor.data()),
            other => return Err(refuse(format!("{name} is {other:?}, not F16 or F32"))),
        };
        // Whole numbers compare in vectors; those of infinities and NaN are larger than any other's.
        let magnitudes = values.iter().map(|value| value.to_bits() & 0x7fff_ffff);
        if magnitudes.fold(0, u32::max) > WEIGHT_MAX.to_bits() {
            return Err(refuse(format!("{name} has a value that is not within 1e6")));
        }
        Ok(values)
    }
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Many at once: one by one they took 5 % of a picture of 64 x 64 pixels.
fn halves(bytes: &[u8]) -> Vec<f32> {
    let mut values = Vec::with_capacity(bytes.len() / 2);
    let (mut halves, mut floats) = ([f16::ZERO; HALVES], [0.0; HALVES]);
    for bytes in bytes.chunks(2 * HALVES) {
        let (two_each, _) = bytes.as_chunks::<2>();
        let (halves, floats) = (&mut halves[..two_each.len()], &mut floats[..two_each.len()]);
        for (half, two) in halves.iter_mut().zip(two_each) {
            *half = f16::from_le_bytes(*two);
        }
        halves.convert_to_f32_slice(floats);
        values.extend_from_slice(floats);
    }
    values
}
